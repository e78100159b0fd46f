// The answer of a query: as a table, as JSON, as trees, as a chart where there are numbers, as a graph where there are vertices, and how it came.
import { html, useMemo } from "../vendor/preact.js";
import { write } from "../api/json.js";
import { areElements, elementsIn } from "../api/kinds.js";
import { Picture } from "../api/graph.js";
import { Copy, Loading, count, duration, plural } from "./ui.js";
import { Table, columnsOf } from "./table.js";
import { Plan } from "./plan.js";
import { ResultChart, isNumeric } from "./result-chart.js";
import { GraphView } from "./graph-view.js";
import { MongoPlan } from "./mongo-plan.js";
import { ValueTree } from "./value-tree.js";
import { deep, plainRow, shown } from "../api/mongo-values.js";

/** Rows shown as JSON text at once. */
const JSON_ROWS_MAX = 500;
/** Results that are looked at for vertices. */
const LOOKED_AT = 50;

/** Rows as tables and charts show them. @param {any} run @returns {any[]} */
export const valuesOf = (run) => (run?.language === "mongo" ? run.rows.map(plainRow) : (run?.rows ?? []));

/** Rows as text, in the form of their language. @param {any} run @param {any[]} rows */
const textOf = (run, rows) => (run.language === "mongo" ? rows.map((row) => shown(row)).join("\n") : write(rows));

/** The views that an answer can be given in. @param {any} run @returns {[string, string][]} */
export function viewsOf(run) {
  const rows = valuesOf(run);
  return [["table", "Table"], ["json", "JSON"], ["tree", "Tree"],
    ...(isNumeric(rows) ? [/** @type {[string, string]} */ (["chart", "Chart"])] : []),
    ...(elementsIn(rows.slice(0, LOOKED_AT)).length ? [/** @type {[string, string]} */ (["graph", "Graph"])] : []),
    ...(run?.plan || !run ? [/** @type {[string, string]} */ (["plan", "Plan"])] : [])];
}

/** Columns of whatever a language answers. @param {any[]} rows */
function columns(rows) {
  if (!areElements(rows) || !rows[0].type) return columnsOf(rows);
  const names = [...new Set(rows.slice(0, 200).flatMap((row) => Object.keys(row.properties ?? {})))].slice(0, 10);
  const value = (property) => (Array.isArray(property) ? (property.length === 1 ? property[0].value : property.map((one) => one.value)) : property);
  return [...columnsOf(rows.map(({ properties, ...rest }) => rest)), ...names.map((name) => ({ name, of: (row) => value(row.properties?.[name]) }))];
}

export function Results({ run, view, db, definition, onMore, onIndex, onOpen }) {
  const graph = useMemo(() => {
    const picture = new Picture();
    if (view === "graph") picture.add(run.rows);
    return picture;
  }, [run.rows, view]);
  const values = useMemo(() => valuesOf(run), [run.rows]);
  const body = view === "plan" && run.plan?.mongo ? html`<${MongoPlan} plan=${run.plan.mongo} db=${db} coll=${definition.id} />`
    : view === "plan" ? html`<${Plan} plan=${run.plan} definition=${definition} onIndex=${onIndex} />`
    : view === "json" ? html`<div class="row"><${Copy} what="rows" label="Copy" text=${() => textOf(run, run.rows)} />${run.rows.length > JSON_ROWS_MAX && html`<span class="muted small">the first ${JSON_ROWS_MAX} rows</span>`}</div><pre tabindex="0" aria-label="Rows as JSON">${textOf(run, run.rows.slice(0, JSON_ROWS_MAX))}</pre>`
    : view === "tree" ? html`<${ValueTree} label="Rows as trees" value=${run.language === "mongo" ? run.rows.map(deep) : run.rows} />`
    : view === "chart" ? html`<${ResultChart} rows=${values} />`
    : view === "graph" ? html`<${GraphView} picture=${graph} version=${run.rows.length} onChange=${() => {}} />`
    : html`<${Table} label="Rows of the query" columns=${columns(values)} rows=${values} onEnd=${onMore} onOpen=${onOpen} empty=${run.busy ? html`<${Loading} what="Asking" />` : html`<p class="pad muted">No rows.</p>`} />`;
  return html`<div class="results" aria-live="off">${body}
    <div class="status" role="status"><span><strong>${count(run.rows.length)}</strong> rows${run.next ? " so far" : ""}</span><span><strong>${run.charge.toFixed(2)}</strong> RU</span><span>${duration(run.ms)}</span><span>${plural(run.pages, "page")}</span>
      ${run.before && !run.next && !run.busy && html`<span class="muted">the run before: ${run.before.charge.toFixed(2)} RU, ${duration(run.before.ms)}</span>`}
      ${run.cancelled && html`<span class="badge warn">cancelled; what came is kept</span>`}${run.next && !run.busy && html`<button class="small" onClick=${onMore}>Next page</button>`}</div>
  </div>`;
}
