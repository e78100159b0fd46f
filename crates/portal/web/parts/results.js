// The answer of a query: as a table, as JSON, as a chart where there are numbers, as a graph where there are vertices, and how it came.
import { html, useMemo } from "../vendor/preact.js";
import { write } from "../api/json.js";
import { areElements, elementsIn } from "../api/kinds.js";
import { Picture } from "../api/graph.js";
import { Copy, Loading, count, duration, plural } from "./ui.js";
import { Table, columnsOf } from "./table.js";
import { Plan } from "./plan.js";
import { ResultChart, isNumeric } from "./result-chart.js";
import { GraphView } from "./graph-view.js";

/** Rows shown as JSON text at once. */
const JSON_ROWS_MAX = 500;
/** Results that are looked at for vertices. */
const LOOKED_AT = 50;

/** The views that an answer can be given in. @param {any} run @returns {[string, string][]} */
export function viewsOf(run) {
  const rows = run?.rows ?? [];
  return [["table", "Table"], ["json", "JSON"],
    ...(isNumeric(rows) ? [/** @type {[string, string]} */ (["chart", "Chart"])] : []),
    ...(elementsIn(rows.slice(0, LOOKED_AT)).length ? [/** @type {[string, string]} */ (["graph", "Graph"])] : []),
    ...(run?.plan || !run ? [/** @type {[string, string]} */ (["plan", "Plan"])] : [])];
}

/** Columns of whatever a language answers. @param {any[]} rows */
function columns(rows) {
  if (!areElements(rows) || !rows[0].type) return columnsOf(rows);
  const names = [...new Set(rows.slice(0, 200).flatMap((row) => Object.keys(row.properties ?? {})))].slice(0, 10);
  const value = (/** @type {any} */ property) => (Array.isArray(property) ? (property.length === 1 ? property[0].value : property.map((one) => one.value)) : property);
  return [...columnsOf(rows.map(({ properties, ...rest }) => rest)), ...names.map((name) => ({ name, of: (/** @type {any} */ row) => value(row.properties?.[name]) }))];
}

export function Results({ run, view, definition, onMore, onIndex, onOpen }) {
  const graph = useMemo(() => {
    const picture = new Picture();
    if (view === "graph") picture.add(run.rows);
    return picture;
  }, [run.rows, view]);
  const body = view === "plan" ? html`<${Plan} plan=${run.plan} definition=${definition} onIndex=${onIndex} />`
    : view === "json" ? html`<div class="row"><${Copy} what="rows" label="Copy" text=${() => write(run.rows)} />${run.rows.length > JSON_ROWS_MAX && html`<span class="muted small">the first ${JSON_ROWS_MAX} rows</span>`}</div><pre tabindex="0" aria-label="Rows as JSON">${write(run.rows.slice(0, JSON_ROWS_MAX))}</pre>`
    : view === "chart" ? html`<${ResultChart} rows=${run.rows} />`
    : view === "graph" ? html`<${GraphView} picture=${graph} version=${run.rows.length} onChange=${() => {}} />`
    : html`<${Table} label="Rows of the query" columns=${columns(run.rows)} rows=${run.rows} onEnd=${onMore} onOpen=${onOpen} empty=${run.busy ? html`<${Loading} what="Asking" />` : html`<p class="pad muted">No rows.</p>`} />`;
  return html`<div class="results" aria-live="off">${body}
    <div class="status" role="status"><span><strong>${count(run.rows.length)}</strong> rows${run.next ? " so far" : ""}</span><span><strong>${run.charge.toFixed(2)}</strong> RU</span><span>${duration(run.ms)}</span><span>${plural(run.pages, "page")}</span>
      ${run.before && !run.next && !run.busy && html`<span class="muted">the run before: ${run.before.charge.toFixed(2)} RU, ${duration(run.before.ms)}</span>`}
      ${run.cancelled && html`<span class="badge warn">cancelled; what came is kept</span>`}${run.next && !run.busy && html`<button class="small" onClick=${onMore}>Next page</button>`}</div>
  </div>`;
}
