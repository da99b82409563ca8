// Removes something after a while in which it can be taken back; leaving the page does it at once.

import { byId, foreign, make, plain } from "/static/dom.js";

const WHILE = 8000; // ms

const waiting = new Set(); // what is to be done yet

/** Says that `name` is removed; `remove()` does it, unless `back()` is called before. */
export function removeSoon(name, remove, back) {
  const note = make("p", {}, "Removed ", foreign(name), ". ", plain("Undo", undo));
  const timer = setTimeout(done, WHILE);
  waiting.add(done);
  notes().append(note);

  function ended() {
    clearTimeout(timer);
    note.remove();
    return waiting.delete(done);
  }
  function done() {
    if (ended()) remove();
  }
  function undo() {
    if (ended()) back();
  }
}

function notes() {
  if (!byId("undo")) document.body.append(make("div", { id: "undo", class: "undo", role: "status" }));
  return byId("undo");
}

addEventListener("pagehide", () => {
  for (const done of [...waiting]) done();
});
