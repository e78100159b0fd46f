// The items of a container: a table of any length, an editor beside it, and what is done with several at once.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send, query, keyHeader, keyPaths } from "../api/client.js";
import { own, pathSteps, write } from "../api/json.js";
import { RowPages } from "../api/row-pages.js";
import { announce, databases, definitionOf, readOnly, unsaved, READ_ONLY } from "../state.js";
import { Choice, Dialog, ErrorBox, Loading, plural } from "../parts/ui.js";
import { Table, columnsOf } from "../parts/table.js";
import { ItemEditor, opened } from "../parts/item-editor.js";
import { Import } from "../parts/import.js";
import { Bulk } from "../parts/bulk.js";
import { pagesOf, useExport } from "../parts/exporting.js";

const COLUMNS_MAX = 12, COLUMNS_KNOWN_MAX = 100;
const UNDO_MS = 10_000;
/** Lines of an item in the view of JSON, and what they take. */
const BLOCK_LINES = 7, BLOCK_PX = 148;
const JSON_COLUMN = [{ name: "Item as JSON", of: (/** @type {any} */ row) => lines(row) }];
const lines = (/** @type {any} */ row) => {
  const all = write(own(row)).split("\n");
  return all.length > BLOCK_LINES ? `${all.slice(0, BLOCK_LINES - 1).join("\n")}\n  … ${all.length - BLOCK_LINES} lines more` : all.join("\n");
};

export default function Items({ db, coll }) {
  const definition = definitionOf(db, coll);
  const memory = `orrery-columns:${db}/${coll}`;
  const [filter, setFilter] = useState("");
  const [asked, setAsked] = useState("");
  const [sorted, setSorted] = useState(/** @type {{name: string, descending: boolean} | null} */ (null));
  const [view, setView] = useState("table");
  const [wanted, setWanted] = useState(() => /** @type {string[] | null} */ (JSON.parse(localStorage.getItem(memory) ?? "null")));
  const [choosing, setChoosing] = useState(false);
  const [, again] = useState(0);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [selected, setSelected] = useState(() => new Set());
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const [bulk, setBulk] = useState(/** @type {any} */ (null));
  const [undo, setUndo] = useState(/** @type {any[]} */ ([]));
  const [files, setFiles] = useState(/** @type {File[] | null} */ (null));
  const [over, setOver] = useState(false);
  const file = useExport(coll);
  const pages = useRef(/** @type {RowPages | null} */ (null));
  const paths = keyPaths(definition);
  const where = (/** @type {string} */ text) => (text.trim() ? ` WHERE ${text.trim().replace(/^where\s/i, "")}` : "");

  /** One page of what the filter finds. */
  const ask = async (/** @type {string} */ continuation, /** @type {number} */ count, /** @type {AbortSignal} */ signal, text = asked, order = sorted) => {
    const by = order ? ` ORDER BY c[${JSON.stringify(order.name)}] ${order.descending ? "DESC" : "ASC"}` : "";
    const answer = await query(db, coll, `SELECT * FROM c${where(text)}${by}`, { continuation, count, signal });
    return { rows: answer.value.Documents, next: answer.headers.get("x-ms-continuation") ?? "", charge: answer.charge };
  };
  const load = (text = asked, order = sorted) => {
    pages.current?.stop();
    setError(null);
    setSelected(new Set());
    const mine = (pages.current = new RowPages((next, count, signal) => ask(next, count, signal, text, order), (problem) => {
      if (mine !== pages.current) return;
      if (problem) setError(problem);
      again((n) => n + 1);
    }));
    mine.loadMore();
    again((n) => n + 1);
  };
  useEffect(() => {
    load();
    return () => (pages.current?.stop(), (unsaved.value = false));
  }, []);
  useEffect(() => {
    if (!undo.length) return;
    const timer = setTimeout(() => setUndo([]), UNDO_MS);
    return () => clearTimeout(timer);
  }, [undo]);
  useEffect(() => {
    const key = (/** @type {KeyboardEvent} */ event) => {
      if (event.altKey && event.key.toLowerCase() === "n" && !readOnly.value) event.preventDefault(), create();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  });

  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no container <strong>${coll}</strong> in <strong>${db}</strong>. <a href="#/">Home</a></p>`;
  const rows = pages.current;
  const create = () => setOpen({ fresh: true, item: null, text: write(template(paths)), base: "" });
  const show = (/** @type {number} */ n) => {
    const item = rows?.at(n);
    if (item) setOpen({ ...opened(item), at: n });
  };
  const sort = (/** @type {string} */ name) => {
    const next = sorted?.name !== name ? { name, descending: false } : sorted.descending ? null : { name, descending: true };
    setSorted(next);
    load(asked, next);
  };
  const chosen = async () => (await Promise.all([...selected].map((n) => rows?.read(n)))).filter(Boolean);
  const act = async (/** @type {string} */ work) => setBulk({ work, rows: await chosen() });
  const putBack = async () => {
    try {
      for (const item of undo) await send("POST", ["dbs", db, "colls", coll, "docs"], { headers: { "x-ms-documentdb-partitionkey": keyHeader(item, paths) }, body: write(own(item), 0) });
      announce(`${plural(undo.length, "item")} put back`);
      setUndo([]);
      load();
    } catch (problem) {
      setError(problem);
    }
  };
  const sample = rows?.sample() ?? [];
  const leading = ["id", ...paths.map((/** @type {string} */ path) => pathSteps(path)[0]).filter((/** @type {string} */ name, /** @type {number} */ n, /** @type {string[]} */ all) => name !== "id" && all.indexOf(name) === n)];
  const known = columnsOf(sample, leading, COLUMNS_KNOWN_MAX);
  const columns = view === "json" ? JSON_COLUMN : wanted ? known.filter(({ name }) => wanted.includes(name)) : known.slice(0, COLUMNS_MAX);
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer?.files.length && !readOnly.value) setFiles([...event.dataTransfer.files]);
  };
  /** What is selected, or everything that the filter finds, however much that is. */
  const save = async () => {
    const bare = (/** @type {any[]} */ some) => some.map(own);
    async function* some() {
      yield bare(await chosen());
    }
    async function* all(/** @type {AbortSignal} */ signal) {
      for await (const page of pagesOf(ask, signal)) yield bare(page);
    }
    try {
      await file.start("ndjson", selected.size ? some : all);
    } catch (problem) {
      setError(problem);
    }
  };

  return html`<div class="split ${over ? "dropping" : ""}" onDragOver=${(/** @type {Event} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <div class="list">
      <h1 class="small">${coll}</h1>
      <form class="toolbar" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), setAsked(filter), load(filter))}>
        <input type="search" data-filter aria-label="Filter: a condition as after WHERE" placeholder="Filter: c.total > 100 AND c.city = 'Rome'" value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} />
        <button>Apply</button>
        <button type="button" class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Alt+N"} onClick=${create}>New item</button>
        <button type="button" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "JSON, NDJSON or CSV; you can also drop files here"} onClick=${() => setFiles([])}>Import</button>
        ${file.view ?? html`<button type="button" disabled=${!rows?.length} title=${selected.size ? "What is selected, as JSON lines" : "All that the filter finds, as JSON lines"} onClick=${save}>Export${selected.size ? ` ${selected.size}` : ""}</button>`}
      </form>
      <div class="toolbar"><${Choice} label="Show items as" value=${view} options=${[["table", "Table"], ["json", "JSON"]]} onChange=${setView} />${view === "table" && html`<button class="plain" onClick=${() => setChoosing(true)}>Columns</button>`}
        ${selected.size > 0 ? html`<span role="region" aria-label="Selected items" class="row"><strong>${plural(selected.size, "item")} selected</strong><button class="danger" disabled=${readOnly.value} onClick=${() => act("delete")}>Delete</button><button disabled=${readOnly.value} onClick=${() => act("patch")}>Patch</button><button class="plain" onClick=${() => setSelected(new Set())}>Clear</button></span>`
          : rows?.length ? html`<span class="grow"></span><button class="plain" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "All items that the filter finds"} onClick=${() => setBulk({ work: "patch", rows: null })}>Patch all…</button><button class="plain" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "All items that the filter finds"} onClick=${() => setBulk({ work: "delete", rows: null })}>Delete all…</button>` : null}</div>
      ${undo.length > 0 && html`<div class="banner warn" role="status">${undo.length === 1 ? `${undo[0].id} is deleted.` : `${plural(undo.length, "item")} are deleted.`} <button onClick=${putBack}>Undo</button></div>`}
      <${ErrorBox} error=${error} title="The items could not be read" onRetry=${() => load()} />
      <${Table} label=${`Items of ${coll}`} key=${view} columns=${columns} rows=${[]} length=${rows?.length ?? 0} rowAt=${(/** @type {number} */ n) => rows?.at(n)} rowPx=${view === "json" ? BLOCK_PX : 30} selected=${selected} onSelect=${setSelected} onOpen=${show} remember=${view === "json" ? "" : `${db}/${coll}`}
        sorted=${sorted} onSort=${view === "table" ? sort : undefined} onEnd=${() => rows && !rows.done && rows.loadMore()} onDelete=${() => (selected.size ? act("delete") : null)}
        empty=${!rows || (!rows.done && !error) ? html`<${Loading} />` : error ? null : asked ? html`<p class="pad muted">Nothing matches the filter.</p>` : html`<div class="pad"><p><strong>No items yet.</strong></p><p class="muted">Make one with New item, drop a JSON, NDJSON or CSV file here, or write with any SDK: the page Home has snippets.</p></div>`} />
      <div class="status"><span>${plural(rows?.length ?? 0, "item")}${rows?.done ? "" : " so far; more come as you scroll"}</span><span>${(rows?.charge ?? 0).toFixed(2)} RU</span></div>
    </div>
    ${open && html`<${ItemEditor} undo=${true} key=${open.fresh ? "new" : open.item._self ?? open.item.id} db=${db} coll=${coll} paths=${paths} opened=${open} onClose=${() => (setOpen(null), (unsaved.value = false))}
      onSaved=${(/** @type {any} */ item) => {
        if (open.fresh) rows?.unshift(item);
        else rows?.replace(open.at, item);
        setOpen({ ...opened(item), at: open.fresh ? 0 : open.at });
      }}
      onDeleted=${() => (rows?.remove([open.at]), setUndo([open.item]), setOpen(null))} />`}
    ${bulk && html`<${Bulk} db=${db} coll=${coll} paths=${paths} ...${bulk} where=${where(asked)} onClose=${(/** @type {number} */ done) => {
      setBulk(null);
      if (done) load(), setOpen(null), announce(bulk.work === "delete" ? `Deleted ${plural(done, "item")}` : `Patched ${plural(done, "item")}`);
    }} />`}
    ${choosing && html`<${Columns} known=${known.map(({ name }) => name)} shown=${columns.map(({ name }) => name)} onClose=${() => setChoosing(false)} onChange=${(/** @type {string[] | null} */ names) => {
      setWanted(names);
      names ? localStorage.setItem(memory, JSON.stringify(names)) : localStorage.removeItem(memory);
    }} />`}
    ${files && html`<${Import} db=${db} coll=${coll} paths=${paths} files=${files} onClose=${() => (setFiles(null), load())} />`}
  </div>`;
}

function Columns({ known, shown, onChange, onClose }) {
  const toggle = (/** @type {string} */ name) => onChange(known.filter((/** @type {string} */ one) => (one === name ? !shown.includes(name) : shown.includes(one))));
  return html`<${Dialog} title="Columns" onClose=${onClose}><p class="muted small">Of the items seen so far. Kept in this browser.</p>
    ${known.map((/** @type {string} */ name) => html`<label key=${name} class="row"><input type="checkbox" checked=${shown.includes(name)} onChange=${() => toggle(name)} /> ${name}</label>`)}
    <div class="actions"><button onClick=${() => onChange(null)}>As they come</button><button class="primary" onClick=${onClose}>Done</button></div></${Dialog}>`;
}

/** @param {string[]} paths */
function template(paths) {
  const item = { id: crypto.randomUUID() };
  for (const path of paths) {
    let inner = /** @type {any} */ (item);
    const steps = pathSteps(path);
    steps.forEach((step, n) => (inner = inner[step] ??= n === steps.length - 1 ? "" : {}));
  }
  return item;
}
