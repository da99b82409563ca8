// Which documents of a corpus are asked: a folder's or a tag's, each with how many they are.

import { client } from "/static/client.js";
import { byId, count, make } from "/static/dom.js";

const KINDS = { folder: (source) => ({ source }), tag: (tags) => ({ metadata: { tags } }) };
const select = byId("part");

/** `kind:name` of what is chosen, empty for all. */
export const part = () => select.value;

/** The filter of a part. */
export function filterOf(chosen) {
  const kind = chosen.split(":", 1)[0];
  return chosen ? KINDS[kind](chosen.slice(kind.length + 1)) : {};
}

/** Offers the folders and tags of one corpus, where they are parts of it; `wanted` is chosen. */
export async function offerParts(corpora, wanted) {
  const every = make("option", { value: "" }, "all documents");
  const option = (value, text) => make("option", { value }, text);
  select.replaceChildren(every, wanted ? option(wanted, wanted.replace(/^\w+:/, "")) : "");
  select.value = wanted;
  select.hidden = !wanted;
  const address = `/v1/corpora/${encodeURIComponent(corpora[0])}/facets`;
  const found = corpora.length === 1 && (await client.call("GET", address).catch(() => null)); // a help
  if (!found || select.value !== wanted) return;
  const whole = found.folders.filter((one) => one.documents === found.documents).map((one) => one.name.length);
  const common = Math.max(0, ...whole); // of all sources, which says nothing
  const group = (label, kind, facets, cut) => {
    const own = facets.filter((one) => one.documents < found.documents);
    const options = own.map((one) => option(`${kind}:${one.name}`, `${one.name.slice(cut)} (${count(one.documents)})`));
    return options.length > 0 ? make("optgroup", { label }, options) : "";
  };
  select.append(group("Folders", "folder", found.folders, common), group("Tags", "tag", found.tags, 0));
  const known = [...select.options].findLast((one) => one.value === wanted);
  if (wanted && known !== select.options[1]) select.options[1].remove(); // it has its count now
  select.value = wanted;
  select.hidden = select.options.length < 2;
}
