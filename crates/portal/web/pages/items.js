// The items of a container: a table of any length, an editor beside it, and what is done with several at once.
import { html, useEffect, useState } from "../vendor/preact.js";
import { send, query, keyHeader, keyPaths } from "../api/client.js";
import { own, pathSteps, write } from "../api/json.js";
import { announce, databases, definitionOf, readOnly, unsaved, READ_ONLY } from "../state.js";
import { Choice, Dialog, ErrorBox, Loading, plural } from "../parts/ui.js";
import { Table, columnsOf } from "../parts/table.js";
import { ItemEditor, opened } from "../parts/item-editor.js";
import { BLOCK_PX, block, useRows } from "../parts/list.js";
import { useImport } from "../parts/import.js";
import { Bulk } from "../parts/bulk.js";
import { pagesOf, useExport } from "../parts/exporting.js";

const COLUMNS_MAX = 12, COLUMNS_KNOWN_MAX = 100;
const JSON_COLUMN = [{ name: "Item as JSON", of: (row) => block(write(own(row))) }];

export default function Items({ db, coll }) {
  const definition = definitionOf(db, coll);
  const memory = `orrery-columns:${db}/${coll}`;
  const [filter, setFilter] = useState("");
  const [asked, setAsked] = useState("");
  const [view, setView] = useState("table");
  const [wanted, setWanted] = useState(() => /** @type {string[] | null} */ (JSON.parse(localStorage.getItem(memory) ?? "null")));
  const [choosing, setChoosing] = useState(false);
  const [open, setOpen] = useState(null);
  const [bulk, setBulk] = useState(null);
  const file = useExport(coll);
  const paths = keyPaths(definition);
  const where = (text) => (text.trim() ? ` WHERE ${text.trim().replace(/^where\s/i, "")}` : "");

  /** One page of what the filter finds. */
  const ask = async (continuation, count, signal, text = asked, order = sorted) => {
    const by = order ? ` ORDER BY c[${JSON.stringify(order.name)}] ${order.descending ? "DESC" : "ASC"}` : "";
    const answer = await query(db, coll, `SELECT * FROM c${where(text)}${by}`, { continuation, count, signal });
    return { rows: answer.value.Documents, next: answer.headers.get("x-ms-continuation") ?? "", charge: answer.charge };
  };
  const create = () => setOpen({ fresh: true, item: null, text: write(template(paths)), base: "" });
  const { rows, load, error, setError, selected, setSelected, undo, setUndo, sorted, sort, chosen, table, status } = useRows((text, order) => (next, count, signal) => ask(next, count, signal, text, order), create);
  const files = useImport("JSON, NDJSON or CSV", { db, coll, paths }, load);
  useEffect(() => () => (unsaved.value = false), []);

  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no container <strong>${coll}</strong> in <strong>${db}</strong>. <a href="#/">Home</a></p>`;
  const show = (n) => {
    const item = rows?.at(n);
    if (item) setOpen({ ...opened(item), at: n });
  };
  const act = async (work) => setBulk({ work, rows: await chosen() });
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
  const leading = ["id", ...paths.map((path) => pathSteps(path)[0]).filter((name, n, all) => name !== "id" && all.indexOf(name) === n)];
  const known = columnsOf(sample, leading, COLUMNS_KNOWN_MAX);
  const columns = view === "json" ? JSON_COLUMN : wanted ? known.filter(({ name }) => wanted.includes(name)) : known.slice(0, COLUMNS_MAX);
  /** What is selected, or everything that the filter finds, however much that is. */
  const save = async () => {
    const bare = (some) => some.map(own);
    async function* some() {
      yield bare(await chosen());
    }
    async function* all(signal) {
      for await (const page of pagesOf(ask, signal)) yield bare(page);
    }
    try {
      await file.start("ndjson", selected.size ? some : all);
    } catch (problem) {
      setError(problem);
    }
  };

  return html`<div ...${files.place}>
    <div class="list">
      <h1 class="small">${coll}</h1>
      <form class="toolbar" onSubmit=${(event) => (event.preventDefault(), setAsked(filter), load(filter))}>
        <input type="search" data-filter aria-label="Filter: a condition as after WHERE" placeholder="Filter: c.total > 100 AND c.city = 'Rome'" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
        <button>Apply</button>
        <button type="button" class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Alt+N"} onClick=${create}>New item</button>
        ${files.button}
        ${file.view ?? html`<button type="button" disabled=${!rows?.length} title=${selected.size ? "What is selected, as JSON lines" : "All that the filter finds, as JSON lines"} onClick=${save}>Export${selected.size ? ` ${selected.size}` : ""}</button>`}
      </form>
      <div class="toolbar"><${Choice} label="Show items as" value=${view} options=${[["table", "Table"], ["json", "JSON"]]} onChange=${setView} />${view === "table" && html`<button class="plain" onClick=${() => setChoosing(true)}>Columns</button>`}
        ${selected.size > 0 ? html`<span role="region" aria-label="Selected items" class="row"><strong>${plural(selected.size, "item")} selected</strong><button class="danger" disabled=${readOnly.value} onClick=${() => act("delete")}>Delete</button><button disabled=${readOnly.value} onClick=${() => act("patch")}>Patch</button><button class="plain" onClick=${() => setSelected(new Set())}>Clear</button></span>`
          : rows?.length ? html`<span class="grow"></span><button class="plain" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "All items that the filter finds"} onClick=${() => setBulk({ work: "patch", rows: null })}>Patch all…</button><button class="plain" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "All items that the filter finds"} onClick=${() => setBulk({ work: "delete", rows: null })}>Delete all…</button>` : null}</div>
      ${undo.length > 0 && html`<div class="banner warn" role="status">${undo.length === 1 ? `${undo[0].id} is deleted.` : `${plural(undo.length, "item")} are deleted.`} <button onClick=${putBack}>Undo</button></div>`}
      <${ErrorBox} error=${error} title="The items could not be read" onRetry=${() => load()} />
      <${Table} label=${`Items of ${coll}`} key=${view} columns=${columns} ...${table} rowPx=${view === "json" ? BLOCK_PX : 30} onOpen=${show} remember=${view === "json" ? "" : `${db}/${coll}`}
        sorted=${sorted} onSort=${view === "table" ? sort : undefined} onDelete=${() => (selected.size ? act("delete") : null)}
        empty=${!rows || (!rows.done && !error) ? html`<${Loading} />` : error ? null : asked ? html`<p class="pad muted">Nothing matches the filter.</p>` : html`<div class="pad"><p><strong>No items yet.</strong></p><p class="muted">Make one with New item, drop a JSON, NDJSON or CSV file here, or write with any SDK: the page Home has snippets.</p></div>`} />
      ${status("item")}
    </div>
    ${open && html`<${ItemEditor} undo=${true} key=${open.fresh ? "new" : open.item._self ?? open.item.id} db=${db} coll=${coll} paths=${paths} opened=${open} onClose=${() => (setOpen(null), (unsaved.value = false))}
      onSaved=${(item) => {
        if (open.fresh) rows?.unshift(item);
        else rows?.replace(open.at, item);
        setOpen({ ...opened(item), at: open.fresh ? 0 : open.at });
      }}
      onDeleted=${() => (rows?.remove([open.at]), setUndo([open.item]), setOpen(null))} />`}
    ${bulk && html`<${Bulk} db=${db} coll=${coll} paths=${paths} ...${bulk} where=${where(asked)} onClose=${(done) => {
      setBulk(null);
      if (done) load(), setOpen(null), announce(bulk.work === "delete" ? `Deleted ${plural(done, "item")}` : `Patched ${plural(done, "item")}`);
    }} />`}
    ${choosing && html`<${Columns} known=${known.map(({ name }) => name)} shown=${columns.map(({ name }) => name)} onClose=${() => setChoosing(false)} onChange=${(/** @type {string[] | null} */ names) => {
      setWanted(names);
      names ? localStorage.setItem(memory, JSON.stringify(names)) : localStorage.removeItem(memory);
    }} />`}
    ${files.dialog}
  </div>`;
}

function Columns({ known, shown, onChange, onClose }) {
  const toggle = (name) => onChange(known.filter((one) => (one === name ? !shown.includes(name) : shown.includes(one))));
  return html`<${Dialog} title="Columns" onClose=${onClose}><p class="muted small">Of the items seen so far. Kept in this browser.</p>
    ${known.map((name) => html`<label key=${name} class="row"><input type="checkbox" checked=${shown.includes(name)} onChange=${() => toggle(name)} /> ${name}</label>`)}
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
