// The indexes of a collection: what they are, one more, one less.
import { html, useEffect, useState } from "../vendor/preact.js";
import { addIndex, indexes, numberOf, run } from "../api/mongo.js";
import { read, shown } from "../api/mongo-values.js";
import { announce, readOnly, READ_ONLY } from "../state.js";
import { Confirm, Dialog, ErrorBox, Field, Loading } from "./ui.js";

/** What an index is beside its key. @param {any} index */
const traits = (index) => [index.unique && "unique", index.sparse && "sparse", index.hidden && "hidden", index.partialFilterExpression && `only where ${shown(index.partialFilterExpression, 0)}`, index.expireAfterSeconds !== undefined && `expires after ${numberOf(index.expireAfterSeconds)} s`].filter(Boolean);

export function Indexes({ db, coll, onClose }) {
  const [all, setAll] = useState(null);
  const [key, setKey] = useState("{ }");
  const [unique, setUnique] = useState(false);
  const [expires, setExpires] = useState("");
  const [error, setError] = useState(null);
  const [dropping, setDropping] = useState("");
  const [busy, setBusy] = useState(false);
  const load = () => indexes(db, coll).then(setAll, (problem) => (setAll([]), setError(problem)));
  useEffect(() => void load(), []);
  const add = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const wanted = read(key);
      if (!Object.keys(wanted ?? {}).length) throw new Error("Which field? { customer: 1 } is ascending, { customer: 1, when: -1 } has two, { $**: 1 } all of them.");
      await addIndex(db, coll, wanted, { ...(unique && { unique: true }), ...(expires && { expireAfterSeconds: Number(expires) }) });
      announce("The index is there");
      setKey("{ }");
      await load();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<${Dialog} title=${`Indexes of ${coll}`} wide=${true} onClose=${onClose}>
    ${!all ? html`<${Loading} />` : html`<table class="plain-table"><thead><tr><th>Name</th><th>Key</th><th>And</th><th><span class="muted">Remove</span></th></tr></thead>
      <tbody>${all.map((one) => html`<tr key=${one.name}><td>${one.name}</td><td><code>${shown(one.key, 0)}</code></td><td>${traits(one).map((text) => html`<span key=${text} class="badge">${text}</span> `)}</td>
        <td>${one.name !== "_id_" && html`<button class="plain small" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} aria-label=${`Remove the index ${one.name}`} onClick=${() => setDropping(one.name)}>✕</button>`}</td></tr>`)}</tbody></table>`}
    <form class="toolbar gap" onSubmit=${add}>
      <${Field} label="One more">${(id) => html`<input id=${id} class="mono" autocomplete="off" spellcheck="false" value=${key} onInput=${(event) => setKey(event.target.value)} />`}</${Field}>
      <${Field} label="Expires after, in seconds">${(id) => html`<input id=${id} type="number" min="0" value=${expires} onInput=${(event) => setExpires(event.target.value)} />`}</${Field}>
      <label class="row"><input type="checkbox" checked=${unique} onChange=${(event) => setUnique(event.target.checked)} /> Unique</label>
      <button class="primary" disabled=${busy || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined}>${busy ? "Making…" : "Make the index"}</button>
    </form>
    <${ErrorBox} error=${error} title="That was refused" />
    ${dropping && html`<${Confirm} title="Remove this index?" text=${`${dropping} will be removed. Queries that used it may become slower.`} action="Remove" onDo=${async () => (await run(db, { dropIndexes: coll, index: dropping }), load())} onClose=${() => setDropping("")} />`}
  </${Dialog}>`;
}
