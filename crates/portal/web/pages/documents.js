// A collection of the MongoDB API: its documents in the types that they have, a filter as drivers take it, an editor, indexes.
import { html, useState } from "../vendor/preact.js";
import { documentPages, numberOf, run, write } from "../api/mongo.js";
import { newObjectId, plain, read, shown, typeOf } from "../api/mongo-values.js";
import { announce, databases, definitionOf, readOnly, READ_ONLY } from "../state.js";
import { Choice, Confirm, ErrorBox, Loading, plural } from "../parts/ui.js";
import { Table } from "../parts/table.js";
import { DocumentEditor } from "../parts/document-editor.js";
import { Indexes } from "../parts/mongo-indexes.js";
import { BLOCK_PX, block, useRows } from "../parts/list.js";
import { useImport } from "../parts/import.js";
import { pagesOf, useExport } from "../parts/exporting.js";

const COLUMNS_MAX = 14;
/** Of the text of a document. */
const DOCUMENT_BYTES_MAX = 16 * 1024 * 1024;

/** Documents of a file: replaced by their ids, or new. @param {string} db @param {string} coll */
const replaces = (db, coll) => ({
  noun: "document", id: "/_id", batch: 100, bytesMax: DOCUMENT_BYTES_MAX,
  async write(items, signal) {
    const all = items.map((one) => ("_id" in one ? one : { _id: newObjectId(), ...one }));
    const { reply, charge } = await run(db, { update: coll, updates: all.map((one) => ({ q: { _id: one._id }, u: one, upsert: true })), ordered: false }, { signal, quiet: true });
    return { charge, failed: (reply.writeErrors ?? []).map((one) => ({ item: items[numberOf(one.index)], problem: new Error(one.errmsg) })) };
  },
});

export default function Documents({ db, coll }) {
  const definition = definitionOf(db, coll);
  const [filter, setFilter] = useState("");
  const [asked, setAsked] = useState("");
  const [view, setView] = useState("table");
  const [open, setOpen] = useState(/** @type {{document: any, at: number} | null} */ (null));
  const [deleting, setDeleting] = useState(false);
  const [indexing, setIndexing] = useState(false);
  const file = useExport(coll);
  const asker = (text = asked, order = sorted) => documentPages(db, coll, text.trim() ? read(text) : {}, order && { [order.name]: order.descending ? -1 : 1 });
  const { rows, load, error, setError, selected, setSelected, undo, setUndo, sorted, sort, chosen, table, status } = useRows(asker, () => setOpen({ document: null, at: -1 }));
  const files = useImport("Extended JSON, lines or an array", { db, coll, paths: [], sink: replaces(db, coll) }, load);
  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no collection <strong>${coll}</strong>. <a href="#/">Home</a></p>`;
  const types = new Map();
  for (const one of rows?.sample() ?? []) for (const [name, value] of Object.entries(one)) types.set(name, (types.get(name) ?? new Set()).add(typeOf(value)));
  const columns = view === "json" ? [{ name: "Document", of: (row) => block(shown(row)) }] : [...types].slice(0, COLUMNS_MAX).map(([name, kinds]) => ({ name, title: `${name} · ${[...kinds].join(" | ")}`, of: (row) => plain(row[name]) }));
  const remove = async () => {
    const all = await chosen();
    for (let at = 0; at < all.length; at += 100) await write(db, { delete: coll, deletes: all.slice(at, at + 100).map((one) => ({ q: { _id: one._id }, limit: 1 })) });
    rows?.remove(selected);
    setUndo(all);
    setSelected(new Set());
    setOpen(null);
    announce(`Deleted ${plural(all.length, "document")}`);
  };
  const putBack = async () => {
    try {
      await write(db, { insert: coll, documents: undo });
      announce(`${plural(undo.length, "document")} put back`);
      setUndo([]);
      load();
    } catch (problem) {
      setError(problem);
    }
  };
  /** What is selected, or everything that the filter finds. */
  const save = async () => {
    async function* some() {
      yield await chosen();
    }
    try {
      await file.start("json", selected.size ? some : (signal) => pagesOf(asker(), signal));
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<div ...${files.place}><div class="list"><h1 class="small">${coll} <span class="badge">collection</span></h1>
      <form class="toolbar" onSubmit=${(event) => (event.preventDefault(), setAsked(filter), load(filter))}>
        <input type="search" class="mono" data-filter aria-label="Filter: as find() takes it" placeholder="Filter: { total: { $gt: 100 }, city: 'Rome' }" spellcheck="false" value=${filter} onInput=${(event) => setFilter(event.target.value)} /><button>Apply</button>
        <button type="button" class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Alt+N"} onClick=${() => setOpen({ document: null, at: -1 })}>New document</button>
        ${files.button}
        ${file.view ?? html`<button type="button" disabled=${!rows?.length} title="As Extended JSON" onClick=${save}>Export${selected.size ? ` ${selected.size}` : ""}</button>`}
        <button type="button" onClick=${() => setIndexing(true)}>Indexes</button></form>
      <div class="toolbar"><${Choice} label="Show documents as" value=${view} options=${[["table", "Table"], ["json", "JSON"]]} onChange=${setView} />
        ${selected.size > 0 && html`<span role="region" aria-label="Selected documents" class="row"><strong>${plural(selected.size, "document")} selected</strong><button class="danger" disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button><button class="plain" onClick=${() => setSelected(new Set())}>Clear</button></span>`}</div>
      ${undo.length > 0 && html`<div class="banner warn" role="status">${undo.length === 1 ? `${shown(undo[0]._id, 0)} is deleted.` : `${plural(undo.length, "document")} are deleted.`} <button onClick=${putBack}>Undo</button></div>`}
      <${ErrorBox} error=${error} title="The documents could not be read" onRetry=${() => load()} />
      <${Table} key=${view} label=${`Documents of ${coll}`} columns=${columns} ...${table} rowPx=${view === "json" ? BLOCK_PX : 30} onOpen=${(at) => rows?.at(at) && setOpen({ document: rows.at(at), at })} onDelete=${() => selected.size && setDeleting(true)} remember=${view === "json" ? "" : `${db}/${coll}`} sorted=${sorted} onSort=${view === "table" ? sort : undefined}
        empty=${!rows || (!rows.done && !error) ? html`<${Loading} />` : error ? null : html`<p class="pad muted">${asked ? "Nothing matches the filter." : "No documents yet. Make one, drop a file here, or write with any driver: the page Home has snippets."}</p>`} />
      ${status("document")}</div>
    ${open && html`<${DocumentEditor} key=${open.document ? JSON.stringify(open.document) : "new"} db=${db} coll=${coll} document=${open.document} onClose=${() => setOpen(null)}
      onSaved=${(document) => {
        if (open.document) rows?.replace(open.at, document);
        else rows?.unshift(document);
        setOpen({ document, at: open.document ? open.at : 0 });
      }} onDeleted=${(document) => (rows?.remove([open.at]), setUndo([document]), setOpen(null))} />`}
    ${indexing && html`<${Indexes} db=${db} coll=${coll} onClose=${() => setIndexing(false)} />`}
    ${files.dialog}
    ${deleting && html`<${Confirm} title="Delete documents" text=${`${plural(selected.size, "document")} will be deleted. They can be put back for ten seconds.`} action="Delete" onDo=${remove} onClose=${() => setDeleting(false)} />`}
  </div>`;
}
