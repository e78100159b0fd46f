// Files into a container: what is in them, what each member becomes, a dry run, then upserts a few at a time.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { send, keyHeader } from "../api/client.js";
import { at, cell, own, write } from "../api/json.js";
import { itemsOf } from "../api/files.js";
import { CELL_TYPES, dryRun, isObject, mapped, sourcesOf } from "../api/mapping.js";
import { readOnly, READ_ONLY } from "../state.js";
import { Dialog, ErrorBox, Field, count, download, plural } from "./ui.js";
import { useJob } from "./job.js";

const PARALLEL = 16;
/** What one drop may be; larger files are for the command line. */
const FILE_BYTES_MAX = 200 * 1024 * 1024;
const ITEM_BYTES_MAX = 2 * 1024 * 1024;
/** Rows that the list of a dry run shows; all of them can be saved. */
const BAD_SHOWN_MAX = 50, ROWS_COUNTED_MAX = 20_000;

/** Writes items one by one. @param {string} db @param {string} coll @param {string[]} paths @returns {Sink} */
const upserts = (db, coll, paths) => ({
  noun: "item", id: "/id", batch: 1, bytesMax: ITEM_BYTES_MAX,
  async write([first], signal) {
    first.id ??= crypto.randomUUID();
    const item = own(first);
    if (typeof item.id !== "string") item.id = write(item.id, 0);
    return await send("POST", ["dbs", db, "colls", coll, "docs"], { quiet: true, signal, headers: { "x-ms-documentdb-is-upsert": "true", "x-ms-documentdb-partitionkey": keyHeader(item, paths), prefer: "return=minimal" }, body: write(item, 0) });
  },
});

/**
 * Where the items go: how many at once, and what became of those that were refused.
 * @typedef {{noun: string, id: string, batch: number, bytesMax: number, write: (items: any[], signal: AbortSignal) => Promise<import("./job.js").Did>}} Sink
 * @param {{db: string, coll: string, paths: string[], files: File[], onClose: () => void, sink?: Sink}} properties
 */
function Import({ db, coll, paths, files, onClose, sink = upserts(db, coll, paths) }) {
  const [rows, setRows] = useState(null);
  const [error, setError] = useState(null);
  const [plan, setPlan] = useState(() => /** @type {import("../api/mapping.js").Plan} */ ({ columns: new Map(), keys: new Map() }));
  const [found, setFound] = useState(null);
  const [looked, setLooked] = useState(-1);
  const [without, setWithout] = useState(false);
  const looking = useRef(new AbortController());
  const { noun } = sink;
  const { state, busy, start, view, buttons } = useJob({ noun, name: coll, done: " written", parallel: PARALLEL, again: true });

  const read = async (chosen) => {
    setError(null);
    try {
      const all = [];
      for (const file of chosen) {
        if (file.size > FILE_BYTES_MAX) throw new Error(`${file.name} is too large for the browser.`);
        for (const item of itemsOf(file.name, await file.text())) all.push(item);
      }
      setRows(all);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    if (files.length) read(files);
    return () => looking.current.abort();
  }, []);

  const objects = useMemo(() => rows?.filter(isObject) ?? [], [rows]);
  const sources = useMemo(() => sourcesOf(objects), [objects]);
  // How many have nothing at a path that needs something. Where many rows are mapped, only the dry run counts.
  const missing = useMemo(() => {
    const need = [...new Set([sink.id, ...paths])].map((path) => /** @type {[string, number]} */ ([path, 0]));
    if (objects.length > ROWS_COUNTED_MAX && plan.columns.size + plan.keys.size) return need;
    for (const row of objects) {
      try {
        const item = mapped(row, plan);
        for (const one of need) if (at(item, one[0]) === undefined) one[1] += 1;
      } catch {
        // The dry run says what is wrong with it.
      }
    }
    return need;
  }, [objects, plan]);
  const map = (/** @type {"columns" | "keys"} */ part, name, value) => {
    const next = new Map(/** @type {Map<string, any>} */ (plan[part]));
    value ? next.set(name, value) : next.delete(name);
    looking.current.abort();
    setLooked(-1);
    setFound(null);
    setWithout(false);
    setPlan({ ...plan, [part]: next });
  };
  const look = async () => {
    looking.current.abort();
    const { signal } = (looking.current = new AbortController());
    setLooked(0);
    const seen = await dryRun(rows ?? [], plan, { id: sink.id, paths, bytesMax: sink.bytesMax, signal, onRow: setLooked });
    if (!seen) return;
    setLooked(-1);
    setFound(seen);
  };
  const bad = found?.bad ?? [];
  const wanted = useMemo(() => {
    if (!without) return objects;
    const out = new Set(bad.map((one) => one.row - 1));
    return (rows ?? []).filter((row, n) => isObject(row) && !out.has(n));
  }, [objects, without, found]);
  const example = () => {
    try {
      return write(mapped(objects[0], plan)).slice(0, 800);
    } catch (problem) {
      return problem.message;
    }
  };
  const others = (rows?.length ?? 0) - objects.length;
  return html`<${Dialog} title=${`Import into ${coll}`} onClose=${onClose}>
    ${!rows && html`<p>JSON (an array or one object), JSON lines, or CSV with a line of names. Items with the same id and partition key are replaced.</p>
      <label class="button">Choose files<input class="file" type="file" multiple accept=".json,.ndjson,.jsonl,.csv" onChange=${(event) => read([...event.target.files])} /></label>`}
    <${ErrorBox} error=${error} title="The file cannot be read" />
    ${rows && html`<p><strong>${plural(objects.length, noun)}</strong>${others ? `, and ${plural(others, "value")} that ${others === 1 ? "is" : "are"} no object and will be left out` : ""}.</p>
      ${state === "ready" && html`${missing.map(([path, n], at) => n > 0 && (at ? html`<p class="badge warn">${plural(n, noun)} without the partition key ${path}</p>` : html`<p class="muted">${plural(n, noun)} without an id will get one.</p>`))}
      ${objects[0] && html`<${Mapping} ids=${missing.map(([path]) => path)} sources=${sources} plan=${plan} map=${map} /><pre class="card small first" tabindex="0" role="region" aria-label="The first as it will be written">${example()}</pre>`}
      <div aria-live="polite">${looked >= 0 ? html`<p>Looking at row ${count(looked)}…</p>` : found && html`<p><strong>Dry run: ${count(found.items)} of ${plural(found.rows, "row")} would be written</strong>${sink.id === "/id" && found.items ? `, about ${found.charge.toFixed(0)} RU if all are new and every path is indexed` : ""}. Nothing was written.</p>`}</div>
      ${bad.length > 0 && html`<div class="bad-rows" tabindex="0" role="region" aria-label="Rows with something against them"><table class="plain-table"><thead><tr><th>Row</th><th>Would be</th><th>Why</th></tr></thead><tbody>${bad.slice(0, BAD_SHOWN_MAX).map((one) => html`<tr key=${one.row}><td>${one.row}</td><td><span class=${`badge ${one.refused ? "bad" : "warn"}`}>${one.refused ? "refused" : "written"}</span></td><td>${one.reason}</td></tr>`)}</tbody></table></div>
        <p class="row"><label><input type="checkbox" checked=${without} onChange=${(event) => setWithout(event.target.checked)} /> Leave out ${bad.length === 1 ? "this row" : `these ${plural(bad.length, "row")}`}</label><button class="small" onClick=${() => download(`${coll}-rows.json`, [write(bad)], "application/json")}>Save the list</button></p>`}`}
      ${view}
      <div class="actions">${buttons}${state === "ready" ? html`<button onClick=${onClose}>Cancel</button><button disabled=${!rows.length} onClick=${look}>Dry run</button><button class="primary" disabled=${!wanted.length} onClick=${() => start(() => wanted, sink.write, sink.batch, (row) => mapped(row, plan))}>Import ${plural(wanted.length, noun)}</button>` : !busy && html`<button key="close" class="primary" onClick=${onClose}>Close</button>`}</div>`}
  </${Dialog}>`;
}

/** Where id and partition key come from, and what each column becomes. */
function Mapping({ ids, sources, plan, map }) {
  const columns = [...sources.columns];
  return html`<details><summary>Mapping: what each member becomes</summary>
    ${ids.map((path) => html`<${Field} key=${path} label=${`Value of ${path}`}>${(id) => html`<select id=${id} value=${plan.keys.get(path) ?? ""} onChange=${(event) => map("keys", path, event.target.value)}><option value="">as the file has it</option>${sources.paths.filter((one) => one !== path).map((one) => html`<option key=${one} value=${one}>a copy of ${one}</option>`)}</select>`}</${Field}>`)}
    <div class="scroll-x entity"><table class="plain-table"><thead><tr><th>Take</th><th>Example</th><th>Name, or a /path</th>${columns.some(([, one]) => one.cells) && html`<th>Type</th>`}</tr></thead><tbody>${columns.map(([name, { example, cells }]) => {
      const rule = plan.columns.get(name) ?? {}, put = (part) => map("columns", name, { ...rule, ...part });
      return html`<tr key=${name}><td><label class="row"><input type="checkbox" checked=${!rule.out} onChange=${(event) => put({ out: !event.target.checked })} /> ${name}</label></td><td class="small">${cell(example).slice(0, 40)}</td>
        <td><input aria-label=${`Name of ${name}`} placeholder=${name} disabled=${rule.out} value=${rule.to ?? ""} onInput=${(event) => put({ to: event.target.value })} /></td>
        ${cells && html`<td><select aria-label=${`Type of ${name}`} disabled=${rule.out} value=${rule.type ?? (name === "id" ? "text" : "auto")} onChange=${(event) => put({ type: event.target.value })}>${CELL_TYPES.map((type) => html`<option key=${type}>${type}</option>`)}</select></td>`}</tr>`;
    })}</tbody></table></div></details>`;
}

/** A page that takes files: where they are dropped, the button that asks for them, the dialog. @param {string} title of the button @param {any} properties of the import @param {() => void} onDone */
export function useImport(title, properties, onDone) {
  const [files, setFiles] = useState(/** @type {File[] | null} */ (null));
  const [over, setOver] = useState(false);
  const place = { class: `split ${over ? "dropping" : ""}`, onDragOver: (event) => (event.preventDefault(), setOver(true)), onDragLeave: () => setOver(false), onDrop: (event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer?.files.length && !readOnly.value) setFiles([...event.dataTransfer.files]);
  } };
  return { place, button: html`<button type="button" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : `${title}; you can also drop files here`} onClick=${() => setFiles([])}>Import</button>`,
    dialog: files && html`<${Import} ...${properties} files=${files} onClose=${() => (setFiles(null), onDone())} />` };
}
