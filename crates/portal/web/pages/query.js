// Queries: tabs of text, parameters found in it, pages of rows, what it cost and how it was done.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { query, keyPaths, send } from "../api/client.js";
import { parse, write } from "../api/json.js";
import { announce, databases, definitionOf, loadTree, readOnly, READ_ONLY } from "../state.js";
import { Choice, Copy, ErrorBox, Loading, count, download, duration, plural } from "../parts/ui.js";
import { Table, columnsOf } from "../parts/table.js";
import { Editor } from "../parts/editor.js";
import { completer, pathsOf } from "../parts/sql-mode.js";
import { toCsv, toNdjson } from "../api/files.js";
import { Plan } from "../parts/plan.js";

const HISTORY_MAX = 30;
const PAGE_ROWS = 100;
/** Items that are looked at to learn which paths there are. */
const SAMPLE = 50;
/** Rows shown as JSON text at once. */
const JSON_ROWS_MAX = 500;

/** What was asked in this tab of the browser; gone with it. @param {string} name @param {any} otherwise */
function kept(name, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

export default function Query({ db, coll }) {
  const store = `orrery-query:${db}/${coll}`;
  const [tabs, setTabs] = useState(() => kept(store, [{ id: 1, text: "SELECT * FROM c", values: {} }]));
  const [active, setActive] = useState(() => tabs[0].id);
  const [history, setHistory] = useState(() => kept(`${store}:history`, []));
  const [sample, setSample] = useState(/** @type {any[]} */ ([]));
  const [functions, setFunctions] = useState(/** @type {any[]} */ ([]));
  const [run, setRun] = useState(/** @type {any} */ (null));
  const [view, setView] = useState("table");
  const controller = useRef(/** @type {AbortController | null} */ (null));
  const editor = useRef(/** @type {any} */ (null));
  const definition = definitionOf(db, coll);
  const tab = tabs.find((/** @type {any} */ one) => one.id === active) ?? tabs[0];
  useEffect(() => sessionStorage.setItem(store, JSON.stringify(tabs)), [tabs]);
  useEffect(() => {
    query(db, coll, `SELECT TOP ${SAMPLE} * FROM c`, { count: SAMPLE, quiet: true }).then((answer) => setSample(answer.value.Documents), () => {});
    fetch(new URL("../api/functions.json", import.meta.url)).then((response) => response.json()).then(setFunctions, () => {});
    return () => controller.current?.abort();
  }, []);
  const known = useRef({ paths: new Map(), functions: [] });
  known.current = { paths: pathsOf(sample), functions };
  const complete = useRef(completer(() => known.current.paths, () => known.current.functions));

  const change = (/** @type {object} */ part) => setTabs((all) => all.map((one) => (one.id === tab.id ? { ...one, ...part } : one)));
  const names = [...new Set(tab.text.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--.*$/gm, "").match(/@\w+/g) ?? [])];
  const parameters = () => names.map((name) => {
    const text = tab.values[name] ?? "";
    try {
      return { name, value: parse(text) };
    } catch {
      return { name, value: text };
    }
  });

  const ask = async (/** @type {string} */ text, /** @type {any} */ before = null) => {
    controller.current?.abort();
    const mine = (controller.current = new AbortController());
    const first = !before;
    const base = before ?? { text, rows: [], charge: 0, ms: 0, pages: 0, next: "", plan: null, error: null, perPage: [] };
    setRun({ ...base, busy: true, error: null });
    if (first && text.trim()) {
      const next = [text, ...history.filter((/** @type {string} */ one) => one !== text)].slice(0, HISTORY_MAX);
      setHistory(next);
      sessionStorage.setItem(`${store}:history`, JSON.stringify(next));
    }
    try {
      const wishes = { "x-orrery-explain": "true", "x-ms-documentdb-populatequerymetrics": "true", "x-ms-cosmos-populateindexmetrics-v2": "true" };
      const answer = await query(db, coll, text, { parameters: parameters(), continuation: base.next, count: PAGE_ROWS, signal: mine.signal, headers: wishes });
      const result = {
        ...base,
        rows: base.rows.concat(answer.value.Documents),
        charge: base.charge + answer.charge,
        ms: base.ms + answer.ms,
        pages: base.pages + 1,
        next: answer.headers.get("x-ms-continuation") ?? "",
        plan: { explain: answer.headers.get("x-orrery-explain"), metrics: answer.headers.get("x-ms-documentdb-query-metrics"), indexes: answer.headers.get("x-ms-cosmos-index-utilization") },
        busy: false,
        error: null,
      };
      setRun(result);
      if (first) announce(`${plural(result.rows.length, "row")}, ${answer.charge.toFixed(2)} RU`);
      mark(null);
      return result;
    } catch (error) {
      if (mine.signal.aborted) setRun((now) => now && { ...now, busy: false, cancelled: true });
      else setRun({ ...base, busy: false, error }), mark(error);
      return null;
    }
  };
  /** Underlines where the server found an error. */
  const mark = async (/** @type {any} */ error) => {
    if (!editor.current) return;
    const { view: at, cm } = editor.current;
    const found = /"?start"?\s*:\s*(\d+).*?"?end"?\s*:\s*(\d+)/s.exec(error?.raw ?? "");
    const length = at.state.doc.length;
    const diagnostics = found ? [{ from: Math.min(Number(found[1]), length), to: Math.min(Math.max(Number(found[2]), Number(found[1]) + 1), length), severity: "error", message: error.message }] : [];
    at.dispatch(cm.setDiagnostics(at.state, diagnostics));
  };
  const start = () => ask(tab.text);
  const startSelection = () => {
    const state = editor.current?.view.state;
    const text = state ? state.sliceDoc(state.selection.main.from, state.selection.main.to) : "";
    ask(text || tab.text);
  };
  const more = () => run && !run.busy && run.next && ask(run.text, run);
  const exportAll = async (/** @type {string} */ kind) => {
    let result = run;
    while (result?.next) {
      result = await ask(result.text, result);
      if (!result) return;
    }
    const columns = columnsOf(result.rows, [], 1000);
    if (kind === "csv") download(`${coll}.csv`, [toCsv(result.rows, columns)], "text/csv");
    else if (kind === "ndjson") download(`${coll}.ndjson`, [toNdjson(result.rows)], "application/x-ndjson");
    else download(`${coll}.json`, [write(result.rows)], "application/json");
  };
  const addTab = (/** @type {string} */ text = "SELECT * FROM c") => {
    const id = Math.max(...tabs.map((/** @type {any} */ one) => one.id)) + 1;
    setTabs([...tabs, { id, text, values: {} }]);
    setActive(id);
    setRun(null);
  };
  const closeTab = (/** @type {number} */ id) => {
    const rest = tabs.filter((/** @type {any} */ one) => one.id !== id);
    setTabs(rest.length ? rest : [{ id: 1, text: "SELECT * FROM c", values: {} }]);
    if (id === active) setActive(rest[0]?.id ?? 1), setRun(null);
  };
  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no container <strong>${coll}</strong> in <strong>${db}</strong>. <a href="#/">Home</a></p>`;
  const examples = examplesFor(known.current.paths, keyPaths(definition), sample);

  return html`<h1 class="small">${coll}</h1>
    <div class="toolbar" role="group" aria-label="Queries">
      ${tabs.map((/** @type {any} */ one, /** @type {number} */ n) => html`<span key=${one.id} class="choice"><button aria-pressed=${one.id === tab.id ? "true" : "false"} onClick=${() => (setActive(one.id), setRun(null))}>Query ${n + 1}</button>${tabs.length > 1 && html`<button aria-label=${`Close query ${n + 1}`} onClick=${() => closeTab(one.id)}>✕</button>`}</span>`)}
      <button class="plain" onClick=${() => addTab()} aria-label="New query">+</button>
      <span class="grow"></span>
      <label class="small muted">Earlier <select aria-label="Earlier queries" value="" onChange=${(/** @type {any} */ event) => event.target.value && addTab(event.target.value)}><option value="">…</option>${history.map((/** @type {string} */ one) => html`<option key=${one} value=${one}>${one.slice(0, 80)}</option>`)}</select></label>
      <label class="small muted">Examples <select aria-label="Example queries" value="" onChange=${(/** @type {any} */ event) => event.target.value && change({ text: event.target.value })}><option value="">…</option>${examples.map(([title, text]) => html`<option key=${title} value=${text}>${title}</option>`)}</select></label>
    </div>
    <${Editor} key=${tab.id} label="Query text" language="sql" size="short" focus=${true} value=${tab.text} onChange=${(/** @type {string} */ text) => change({ text })} complete=${complete.current} handle=${(/** @type {any} */ view, /** @type {any} */ cm) => (editor.current = { view, cm })}
      keys=${{ "Mod-Enter": start, "Mod-Shift-Enter": startSelection, "Mod-Shift-e": () => setView("plan") }} />
    ${names.length > 0 && html`<div class="toolbar parameters">${names.map((name) => html`<label key=${name} class="row small"><code>${name}</code> <input value=${tab.values[name] ?? ""} placeholder="JSON or text" onInput=${(/** @type {any} */ event) => change({ values: { ...tab.values, [name]: event.target.value } })} /></label>`)}</div>`}
    <div class="toolbar run-bar">
      ${run?.busy ? html`<button class="danger" onClick=${() => controller.current?.abort()}>Cancel</button>` : html`<button class="primary" onClick=${start}>Run <kbd class="on-primary">Ctrl ⏎</kbd></button>`}
      <${Choice} label="Show the answer as" value=${view} options=${[["table", "Table"], ["json", "JSON"], ["plan", "Plan"]]} onChange=${setView} />
      <span class="grow"></span>
      ${run?.rows.length > 0 && html`<span class="small muted">All pages as</span>${["JSON", "NDJSON", "CSV"].map((kind) => html`<button key=${kind} class="small" disabled=${run.busy} onClick=${() => exportAll(kind.toLowerCase())}>${kind}</button>`)}`}
    </div>
    <${ErrorBox} error=${run?.error} title="The query was not answered" />
    ${run?.error && !run.rows.length ? null : run ? html`<div class="results" aria-live="off">
      ${view === "plan" ? html`<${Plan} plan=${run.plan} rows=${run.rows.length} definition=${definition} onIndex=${readOnly.value ? null : (/** @type {any} */ policy) => applyPolicy(db, definition, policy)} />`
        : view === "json" ? html`<div class="row"><${Copy} what="rows" label="Copy" text=${() => write(run.rows)} />${run.rows.length > JSON_ROWS_MAX && html`<span class="muted small">the first ${JSON_ROWS_MAX} rows</span>`}</div><pre tabindex="0" aria-label="Rows as JSON">${write(run.rows.slice(0, JSON_ROWS_MAX))}</pre>`
        : html`<${Table} label="Rows of the query" columns=${columnsOf(run.rows)} rows=${run.rows} onEnd=${more} empty=${run.busy ? html`<${Loading} what="Asking" />` : html`<p class="pad muted">No rows.</p>`} />`}
      <div class="status" role="status"><span><strong>${count(run.rows.length)}</strong> rows${run.next ? " so far" : ""}</span><span><strong>${run.charge.toFixed(2)}</strong> RU</span><span>${duration(run.ms)}</span><span>${plural(run.pages, "page")}</span>${run.cancelled && html`<span class="badge warn">cancelled</span>`}
        ${run.next && !run.busy && html`<button class="small" onClick=${more}>Next page</button>`}</div>
    </div>` : html`<p class="muted pad">Ctrl+Enter runs the query; Ctrl+Space shows what can be typed: ${known.current.paths.size ? `${plural(known.current.paths.size, "path")} of your items` : "keywords"} and ${plural(functions.length, "function")}.</p>`}`;
}

/** @param {string} db @param {any} definition @param {any} indexingPolicy */
async function applyPolicy(db, definition, indexingPolicy) {
  const { _rid, _self, _etag, _ts, _docs, _sprocs, _triggers, _udfs, _conflicts, ...rest } = definition;
  await send("PUT", ["dbs", db, "colls", definition.id], { body: { ...rest, indexingPolicy } });
  announce("The index is being built");
  await loadTree();
}

/** Queries that say something about these very items. @param {Map<string, any>} paths @param {string[]} keys @param {any[]} sample */
function examplesFor(paths, keys, sample) {
  const numbers = [...paths].filter(([path, { kind }]) => kind === "number" && !path.startsWith("_") && !path.includes("[")).map(([path]) => path);
  const texts = [...paths].filter(([path, { kind }]) => kind === "string" && !path.startsWith("_") && path !== "id" && !path.includes("[")).map(([path]) => path);
  const key = keys[0]?.slice(1).replaceAll("/", ".");
  const examples = [["Count the items", "SELECT VALUE COUNT(1) FROM c"]];
  if (key) examples.push(["Items by partition key", `SELECT c.${key}, COUNT(1) AS items FROM c GROUP BY c.${key}`]);
  if (numbers[0]) examples.push([`Largest ${numbers[0]}`, `SELECT TOP 10 * FROM c ORDER BY c.${numbers[0]} DESC`]);
  if (numbers[0] && texts[0]) examples.push([`${numbers[0]} by ${texts[0]}`, `SELECT c.${texts[0]}, AVG(c.${numbers[0]}) AS mean, COUNT(1) AS items\nFROM c\nGROUP BY c.${texts[0]}`]);
  if (texts[0] && typeof sample[0]?.[texts[0]] === "string") examples.push([`By ${texts[0]}`, `SELECT * FROM c WHERE c.${texts[0]} = ${JSON.stringify(sample[0][texts[0]])}`]);
  return examples;
}
