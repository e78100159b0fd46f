// The same done to many items: those that are selected, or all that a filter finds. Patched or deleted a few at a time, with what failed
// kept; it can be paused and stopped at any moment.
import { html, useEffect, useState } from "../vendor/preact.js";
import { keyHeader, query, send } from "../api/client.js";
import { parse, pathSteps } from "../api/json.js";
import { Choice, Dialog, count, plural } from "./ui.js";
import { useJob } from "./job.js";
import { Editor } from "./editor.js";
import { removeItem } from "./item-editor.js";

const PARALLEL = 8;
const PAGE = 500;
const PATCH = `[\n  { "op": "set", "path": "/reviewed", "value": true }\n]`;

/** @param {{db: string, coll: string, paths: string[], work: "patch" | "delete", rows: any[] | null, where: string, onClose: (done: number) => void}} properties */
export function Bulk({ db, coll, paths, work, rows, where, onClose }) {
  const [reach, setReach] = useState(rows?.length ? "selected" : "all");
  const [text, setText] = useState(PATCH);
  const [matching, setMatching] = useState(null);
  const { job, state, busy, start, view, buttons } = useJob({ noun: "item", name: coll, parallel: PARALLEL });
  useEffect(() => void query(db, coll, `SELECT VALUE COUNT(1) FROM c${where}`, { quiet: true }).then((answer) => setMatching(answer.value.Documents[0] ?? 0), () => {}), []);
  const total = reach === "selected" ? (rows?.length ?? 0) : (matching ?? 0);
  let operations = null, wrong = "";
  try {
    operations = parse(text);
    if (!Array.isArray(operations)) wrong = "A patch is an array of operations.";
  } catch (problem) {
    wrong = problem.message;
  }
  /** The whole answer is read before anything is changed, because what is changed may no longer fit the filter. */
  const chosen = async (signal, /** @type {(rows: number) => void} */ onRead) => {
    if (reach === "selected") return rows ?? [];
    const keys = ["id", "_etag", ...paths.map((path) => pathSteps(path)[0])];
    const found = [];
    for (let next = ""; ; ) {
      const answer = await query(db, coll, `SELECT * FROM c${where}`, { continuation: next, count: PAGE, signal, quiet: true });
      found.push(...answer.value.Documents.map((item) => Object.fromEntries(keys.filter((name) => Object.hasOwn(item, name)).map((name) => [name, item[name]]))));
      onRead(found.length);
      next = answer.headers.get("x-ms-continuation") ?? "";
      if (!next) return found;
    }
  };
  const run = () => start(chosen, ([item], signal) => work === "delete" ? removeItem(db, coll, item, paths)
    : send("PATCH", ["dbs", db, "colls", coll, "docs", item.id], { quiet: true, signal, headers: { "content-type": "application/json-patch+json", "x-ms-documentdb-partitionkey": keyHeader(item, paths) }, body: { operations } }));
  const verb = work === "delete" ? "Delete" : "Patch";
  return html`<${Dialog} title=${`${verb} items of ${coll}`} onClose=${() => onClose(job.done)}>
    ${rows?.length ? html`<${Choice} label="Which items" value=${reach} onChange=${setReach} options=${[["selected", `${plural(rows.length, "selected item")}`], ["all", matching === null ? "All that match" : `All ${count(matching)} that match${where ? "" : " (no filter: all)"}`]]} />` : html`<p>${where ? html`All items <code>${where.trim()}</code>` : "All items of the container"}: ${matching === null ? "counting…" : plural(matching, "item")}.</p>`}
    ${work === "patch" ? html`<p class="muted small">Operations: add, set, replace, remove, incr, move. Up to 10 at once.</p><${Editor} label="Patch operations as JSON" size="short" value=${text} onChange=${setText} />${wrong && html`<p class="field-error">${wrong}</p>`}` : html`<p>They will be deleted. This cannot be undone.</p>`}
    ${view}
    <div class="actions">${buttons}${state === "ready" ? html`<button onClick=${() => onClose(0)}>Cancel</button><button class=${work === "delete" ? "danger" : "primary"} disabled=${!total || (work === "patch" && Boolean(wrong))} onClick=${run}>${verb} ${plural(total, "item")}</button>` : !busy && html`<button key="close" class="primary" onClick=${() => onClose(job.done)}>Close</button>`}</div>
  </${Dialog}>`;
}
