// The page's own client: the published one, which tells a busy server at once rather than trying again.

import { Client } from "/static/shardqa.js";

const KEY = "shardqa.key"; // of a server that asks for one; kept until the tab is closed

function keptKey() {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined; // the browser keeps nothing for this site
  }
}

export let client = new Client({ retries: 0, key: keptKey() });

/** Headers with this visitor's key, where there is one. */
export const withKey = (headers) => (keptKey() ? { ...headers, Authorization: `Bearer ${keptKey()}` } : headers);

/** From now on calls go with this key. */
export function useKey(key) {
  sessionStorage.setItem(KEY, key);
  client = new Client({ retries: 0, key });
}
