// One document of MongoDB as text, in the types that it has. It is saved if it is still what was opened; where somebody else was first,
// both versions stand beside each other.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { write, run } from "../api/mongo.js";
import { newObjectId, read, shown } from "../api/mongo-values.js";
import { announce, readOnly, unsaved, READ_ONLY } from "../state.js";
import { Confirm, ErrorBox } from "./ui.js";
import { Editor } from "./editor.js";
import { Conflict } from "./conflict.js";

/** What finds a document only if it is what it was. @param {any} document */
const asItWas = (document) => ({ _id: document._id, $expr: { $eq: ["$$ROOT", { $literal: document }] } });

/** @param {{db: string, coll: string, document: any, onClose: () => void, onSaved: (document: any) => void, onDeleted: (document: any) => void}} properties */
export function DocumentEditor({ db, coll, document, onClose, onSaved, onDeleted }) {
  const fresh = document === null;
  const base = useRef(shown(document ?? { _id: newObjectId() }));
  const [text, setText] = useState(base.current);
  const [error, setError] = useState(null);
  const [conflict, setConflict] = useState(null);
  const [busy, setBusy] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const place = useRef(null);
  const changed = text !== base.current;
  useEffect(() => void (matchMedia("(max-width: 760px)").matches && place.current?.scrollIntoView({ block: "start" })), []);
  useEffect(() => {
    unsaved.value = changed && !readOnly.value;
    return () => void (unsaved.value = false);
  }, [changed]);

  const save = async (body = text, before = document) => {
    if (readOnly.value) return;
    setError(null);
    setBusy(true);
    try {
      const next = read(body);
      if (next === null || typeof next !== "object" || Array.isArray(next)) throw new Error("A document is an object: { … }");
      if (fresh) await write(db, { insert: coll, documents: [next] });
      else {
        if (JSON.stringify(next._id) !== JSON.stringify(document._id)) throw new Error("The _id of a document cannot be changed. Make a new document and delete this one.");
        const { reply } = await write(db, { update: coll, updates: [{ q: asItWas(before), u: next }] });
        if (Number(reply.n.$numberInt) === 0) {
          const theirs = (await run(db, { find: coll, filter: { _id: document._id }, limit: 1, singleBatch: true })).reply.cursor.firstBatch[0];
          if (!theirs) throw new Error("Somebody deleted this document meanwhile. What you typed is still here.");
          setBusy(false);
          return setConflict(theirs);
        }
      }
      announce("Saved");
      setConflict(null);
      onSaved(next);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const remove = async () => {
    await write(db, { delete: coll, deletes: [{ q: { _id: document._id }, limit: 1 }] });
    announce("Deleted");
    unsaved.value = false;
    onDeleted(document);
  };
  const name = fresh ? "New document" : shown(document._id, 0);
  return html`<section class="side" ref=${place} aria-label=${fresh ? name : `Document ${name}`}>
    <div class="row"><strong title=${name}>${name}</strong>${changed && !fresh && html`<span class="badge warn">changed</span>`}<span class="grow"></span>
      <button class="primary" disabled=${busy || readOnly.value || (!changed && !fresh)} title=${readOnly.value ? READ_ONLY : "Ctrl+S"} onClick=${() => save()}>${busy ? "Saving…" : "Save"}</button>
      ${!fresh && html`<button disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button>`}
      <button class="plain" onClick=${onClose} aria-label="Close the document">✕</button></div>
    <${ErrorBox} error=${error} title="Not saved" onClose=${() => setError(null)} />
    <${Editor} label="The document" language="mongo" value=${text} onChange=${setText} readOnly=${readOnly.value} size="fill" focus=${fresh} keys=${{ "Mod-s": () => save(), Escape: onClose }} />
    ${conflict && html`<${Conflict} noun="document" theirs=${shown(conflict)} mine=${text} busy=${busy} error=${error} onKeep=${(merged) => save(merged, conflict)} onTheirs=${() => (setConflict(null), onSaved(conflict))} onClose=${() => setConflict(null)} />`}
    ${deleting && html`<${Confirm} title="Delete this document?" text=${`${name} will be deleted. It can be put back for ten seconds.`} action="Delete" onDo=${remove} onClose=${() => setDeleting(false)} />`}
  </section>`;
}
