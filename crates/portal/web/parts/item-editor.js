// One item as text: saved with its etag, and where somebody else was first, both versions beside each other.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send, keyHeader } from "../api/client.js";
import { parse, write, own } from "../api/json.js";
import { announce, readOnly, unsaved, READ_ONLY } from "../state.js";
import { Confirm, ErrorBox } from "./ui.js";
import { Editor } from "./editor.js";
import { Conflict } from "./conflict.js";

/** What the editor opens: an item that is there. @param {any} item */
export const opened = (item) => ({ fresh: false, item, text: write(item), base: write(item) });

export function ItemEditor({ db, coll, paths, opened, onClose, onSaved, onDeleted, undo = false }) {
  const [text, setText] = useState(opened.text);
  const [error, setError] = useState(null);
  const [conflict, setConflict] = useState(null);
  const [busy, setBusy] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const changed = text !== opened.base;
  const place = useRef(null);
  // Below the list, on a narrow screen, nobody would see that it opened.
  useEffect(() => void (matchMedia("(max-width: 760px)").matches && place.current?.scrollIntoView({ block: "start" })), [opened.item?._self]);
  useEffect(() => setText(opened.text), [opened]);
  useEffect(() => void (unsaved.value = changed && !readOnly.value), [changed]);

  const save = async (body = text, etag = opened.item?._etag) => {
    if (readOnly.value) return;
    setError(null);
    let item;
    try {
      item = parse(body);
      if (item === null || typeof item !== "object" || Array.isArray(item)) throw new Error("an item is an object: { … }");
    } catch (problem) {
      return setError(new Error(`This is not JSON: ${problem.message}`));
    }
    setBusy(true);
    try {
      const headers = { "x-ms-documentdb-partitionkey": keyHeader(item, paths) };
      const docs = ["dbs", db, "colls", coll, "docs"];
      const sent = write(own(item), 0);
      let answer;
      if (opened.fresh) answer = await send("POST", docs, { headers, body: sent });
      else if (keyHeader(item, paths) !== keyHeader(opened.item, paths)) throw new Error("The partition key of an item cannot be changed. Make a new item with the other key and delete this one.");
      else answer = await send("PUT", [...docs, opened.item.id], { headers: { ...headers, ...(etag && { "if-match": etag }) }, body: sent });
      unsaved.value = false;
      setConflict(null);
      announce(`Saved, ${answer.charge.toFixed(2)} RU`);
      onSaved(answer.value);
    } catch (problem) {
      if (problem.status === 412) await askTheirs(problem);
      else setError(problem);
    }
    setBusy(false);
  };
  const askTheirs = async (problem) => {
    try {
      const theirs = await send("GET", ["dbs", db, "colls", coll, "docs", opened.item.id], { headers: { "x-ms-documentdb-partitionkey": keyHeader(opened.item, paths) } });
      setConflict(theirs.value);
    } catch (gone) {
      setError(gone.status === 404 ? new Error("Somebody deleted this item meanwhile. To keep yours, make a new item with this text.") : problem);
    }
  };
  const remove = async () => {
    await removeItem(db, coll, opened.item, paths, opened.item._etag);
    announce("Deleted");
    unsaved.value = false;
    onDeleted();
  };
  return html`<section class="side" ref=${place} aria-label=${opened.fresh ? "New item" : `Item ${opened.item.id}`}>
    <div class="row"><strong>${opened.fresh ? "New item" : opened.item.id}</strong>${changed && !opened.fresh && html`<span class="badge warn">changed</span>`}<span class="grow"></span>
      <button class="primary" disabled=${busy || readOnly.value || (!changed && !opened.fresh)} title=${readOnly.value ? READ_ONLY : "Ctrl+S"} onClick=${() => save()}>${busy ? "Saving…" : "Save"}</button>
      ${!opened.fresh && html`<button disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button>`}
      <button class="plain" onClick=${onClose} aria-label="Close the item">✕</button></div>
    <${ErrorBox} error=${error} title="Not saved" onClose=${() => setError(null)} />
    <${Editor} label="The item as JSON" value=${text} onChange=${setText} readOnly=${readOnly.value} size="fill" focus=${opened.fresh} keys=${{ "Mod-s": () => save(), Escape: onClose }} />
    ${conflict && html`<${Conflict} noun="item" mine=${tidied(text)} theirs=${write(own(conflict))} onKeep=${(merged) => save(merged, conflict._etag)} onTheirs=${() => (setConflict(null), onSaved(conflict))} onClose=${() => setConflict(null)} busy=${busy} error=${error} />`}
    ${deleting && html`<${Confirm} title="Delete this item?" text=${`${opened.item.id} will be deleted. ${undo ? "It can be put back for ten seconds." : "This cannot be undone."}`} action="Delete" onDo=${remove} onClose=${() => setDeleting(false)} />`}
  </section>`;
}

/** What was typed as it would be saved; text that is no JSON stays as it is. @param {string} text */
function tidied(text) {
  try {
    return write(own(parse(text)));
  } catch {
    return text;
  }
}

/** @param {any} item @param {string[]} paths */
export function removeItem(db, coll, item, paths, etag = "") {
  return send("DELETE", ["dbs", db, "colls", coll, "docs", item.id], { headers: { "x-ms-documentdb-partitionkey": keyHeader(item, paths), ...(etag && { "if-match": etag }) } });
}
