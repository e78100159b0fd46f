// A collection of the MongoDB API: its documents in the types that they have, a filter as drivers take it, an editor, indexes.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { documentPages, numberOf, run, write } from "../api/mongo.js";
import { newObjectId, plain, read, shown, typeOf } from "../api/mongo-values.js";
import { RowPages } from "../api/row-pages.js";
import { announce, databases, definitionOf, readOnly, READ_ONLY } from "../state.js";
import { Choice, Confirm, ErrorBox, Loading, plural } from "../parts/ui.js";
import { Table } from "../parts/table.js";
import { DocumentEditor } from "../parts/document-editor.js";
import { Indexes } from "../parts/mongo-indexes.js";
import { Import } from "../parts/import.js";
import { pagesOf, useExport } from "../parts/exporting.js";

const COLUMNS_MAX = 14, UNDO_MS = 10_000;
const BLOCK_LINES = 7, BLOCK_PX = 148;

/** A document in a few lines. @param {any} row */
const lines = (row) => {
  const all = shown(row).split("\n");
  return all.length > BLOCK_LINES ? `${all.slice(0, BLOCK_LINES - 1).join("\n")}\n  … ${all.length - BLOCK_LINES} lines more` : all.join("\n");
};

/** Documents of a file: replaced by their ids, or new. @param {string} db @param {string} coll */
const replaces = (db, coll) => ({
  noun: "document", id: "/_id", batch: 100,
  async write(/** @type {any[]} */ items, /** @type {AbortSignal} */ signal) {
    const all = items.map((one) => ("_id" in one ? one : { _id: newObjectId(), ...one }));
    const { reply, charge } = await run(db, { update: coll, updates: all.map((one) => ({ q: { _id: one._id }, u: one, upsert: true })), ordered: false }, { signal, quiet: true });
    return { charge, failed: (reply.writeErrors ?? []).map((/** @type {any} */ one) => ({ item: items[numberOf(one.index)], problem: new Error(one.errmsg) })) };
  },
});

export default function Documents({ db, coll }) {
  const definition = definitionOf(db, coll);
  const [filter, setFilter] = useState("");
  const [sort, setSort] = useState(/** @type {{name: string, descending: boolean} | null} */ (null));
  const [asked, setAsked] = useState("");
  const [view, setView] = useState("table");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [open, setOpen] = useState(/** @type {{document: any, at: number} | null} */ (null));
  const [selected, setSelected] = useState(() => new Set());
  const [deleting, setDeleting] = useState(false);
  const [undo, setUndo] = useState(/** @type {any[]} */ ([]));
  const [indexing, setIndexing] = useState(false);
  const [files, setFiles] = useState(/** @type {File[] | null} */ (null));
  const [over, setOver] = useState(false);
  const file = useExport(coll);
  const [, again] = useState(0);
  const pages = useRef(/** @type {RowPages | null} */ (null));
  const load = (text = asked, order = sort) => {
    pages.current?.stop();
    setError(null);
    setSelected(new Set());
    let condition = {};
    try {
      if (text.trim()) condition = read(text);
    } catch (problem) {
      return setError(problem);
    }
    const mine = (pages.current = new RowPages(documentPages(db, coll, condition, order && { [order.name]: order.descending ? -1 : 1 }), (problem) => {
      if (mine !== pages.current) return;
      if (problem) setError(problem);
      again((n) => n + 1);
    }));
    mine.loadMore();
    again((n) => n + 1);
  };
  useEffect(() => {
    load();
    return () => pages.current?.stop();
  }, []);
  useEffect(() => {
    if (!undo.length) return;
    const timer = setTimeout(() => setUndo([]), UNDO_MS);
    return () => clearTimeout(timer);
  }, [undo]);
  useEffect(() => {
    const key = (/** @type {KeyboardEvent} */ event) => event.altKey && event.key.toLowerCase() === "n" && !readOnly.value && (event.preventDefault(), setOpen({ document: null, at: -1 }));
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no collection <strong>${coll}</strong>. <a href="#/">Home</a></p>`;
  const rows = pages.current;
  const types = new Map();
  for (const one of rows?.sample() ?? []) for (const [name, value] of Object.entries(one)) types.set(name, (types.get(name) ?? new Set()).add(typeOf(value)));
  const columns = view === "json" ? [{ name: "Document", of: lines }] : [...types].slice(0, COLUMNS_MAX).map(([name, kinds]) => ({ name, title: `${name} · ${[...kinds].join(" | ")}`, of: (/** @type {any} */ row) => plain(row[name]) }));
  const order = (/** @type {string} */ name) => {
    const next = sort?.name !== name ? { name, descending: false } : sort.descending ? null : { name, descending: true };
    setSort(next);
    load(asked, next);
  };
  const remove = async () => {
    const chosen = (await Promise.all([...selected].map((n) => rows?.read(n)))).filter(Boolean);
    for (let at = 0; at < chosen.length; at += 100) await write(db, { delete: coll, deletes: chosen.slice(at, at + 100).map((one) => ({ q: { _id: one._id }, limit: 1 })) });
    rows?.remove(selected);
    setUndo(chosen);
    setSelected(new Set());
    setOpen(null);
    announce(`Deleted ${plural(chosen.length, "document")}`);
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
      yield (await Promise.all([...selected].map((n) => rows?.read(n)))).filter(Boolean);
    }
    try {
      await file.start("json", selected.size ? some : (signal) => pagesOf(documentPages(db, coll, asked.trim() ? read(asked) : {}, sort && { [sort.name]: sort.descending ? -1 : 1 }), signal));
    } catch (problem) {
      setError(problem);
    }
  };
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer?.files.length && !readOnly.value) setFiles([...event.dataTransfer.files]);
  };
  return html`<div class="split ${over ? "dropping" : ""}" onDragOver=${(/** @type {Event} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}><div class="list"><h1 class="small">${coll} <span class="badge">collection</span></h1>
      <form class="toolbar" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), setAsked(filter), load(filter))}>
        <input type="search" class="mono" data-filter aria-label="Filter: as find() takes it" placeholder="Filter: { total: { $gt: 100 }, city: 'Rome' }" spellcheck="false" value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} /><button>Apply</button>
        <button type="button" class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Alt+N"} onClick=${() => setOpen({ document: null, at: -1 })}>New document</button>
        <button type="button" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Extended JSON, lines or an array; you can also drop files here"} onClick=${() => setFiles([])}>Import</button>
        ${file.view ?? html`<button type="button" disabled=${!rows?.length} title="As Extended JSON" onClick=${save}>Export${selected.size ? ` ${selected.size}` : ""}</button>`}
        <button type="button" onClick=${() => setIndexing(true)}>Indexes</button></form>
      <div class="toolbar"><${Choice} label="Show documents as" value=${view} options=${[["table", "Table"], ["json", "JSON"]]} onChange=${setView} />
        ${selected.size > 0 && html`<span role="region" aria-label="Selected documents" class="row"><strong>${plural(selected.size, "document")} selected</strong><button class="danger" disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button><button class="plain" onClick=${() => setSelected(new Set())}>Clear</button></span>`}</div>
      ${undo.length > 0 && html`<div class="banner warn" role="status">${undo.length === 1 ? `${shown(undo[0]._id, 0)} is deleted.` : `${plural(undo.length, "document")} are deleted.`} <button onClick=${putBack}>Undo</button></div>`}
      <${ErrorBox} error=${error} title="The documents could not be read" onRetry=${() => load()} />
      <${Table} key=${view} label=${`Documents of ${coll}`} columns=${columns} rows=${[]} length=${rows?.length ?? 0} rowAt=${(/** @type {number} */ n) => rows?.at(n)} rowPx=${view === "json" ? BLOCK_PX : 30} selected=${selected} onSelect=${setSelected} onOpen=${(/** @type {number} */ at) => rows?.at(at) && setOpen({ document: rows.at(at), at })} onEnd=${() => rows && !rows.done && rows.loadMore()} onDelete=${() => selected.size && setDeleting(true)} remember=${view === "json" ? "" : `${db}/${coll}`} sorted=${sort} onSort=${view === "table" ? order : undefined}
        empty=${!rows || (!rows.done && !error) ? html`<${Loading} />` : error ? null : html`<p class="pad muted">${asked ? "Nothing matches the filter." : "No documents yet. Make one, drop a file here, or write with any driver: the page Home has snippets."}</p>`} />
      <div class="status"><span>${plural(rows?.length ?? 0, "document")}${rows?.done ? "" : " so far; more come as you scroll"}</span><span>${(rows?.charge ?? 0).toFixed(2)} RU</span></div></div>
    ${open && html`<${DocumentEditor} key=${open.document ? JSON.stringify(open.document) : "new"} db=${db} coll=${coll} document=${open.document} onClose=${() => setOpen(null)}
      onSaved=${(/** @type {any} */ document) => {
        if (open.document) rows?.replace(open.at, document);
        else rows?.unshift(document);
        setOpen({ document, at: open.document ? open.at : 0 });
      }} onDeleted=${(/** @type {any} */ document) => (rows?.remove([open.at]), setUndo([document]), setOpen(null))} />`}
    ${indexing && html`<${Indexes} db=${db} coll=${coll} onClose=${() => setIndexing(false)} />`}
    ${files && html`<${Import} db=${db} coll=${coll} paths=${[]} sink=${replaces(db, coll)} files=${files} onClose=${() => (setFiles(null), load())} />`}
    ${deleting && html`<${Confirm} title="Delete documents" text=${`${plural(selected.size, "document")} will be deleted. They can be put back for ten seconds.`} action="Delete" onDo=${remove} onClose=${() => setDeleting(false)} />`}
  </div>`;
}
