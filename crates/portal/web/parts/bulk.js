// The same done to many items: those that are selected, or all that a filter finds. Patched or deleted a few at a time, with what failed
// kept; it can be stopped at any moment.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { keyHeader, query, send } from "../api/client.js";
import { parse, write } from "../api/json.js";
import { toNdjson } from "../api/files.js";
import { Choice, Dialog, ErrorBox, count, download, plural } from "./ui.js";
import { Editor } from "./editor.js";
import { removeItem } from "./item-editor.js";

const PARALLEL = 8;
const PAGE = 500;
const PATCH = `[\n  { "op": "set", "path": "/reviewed", "value": true }\n]`;

/** @param {{db: string, coll: string, paths: string[], work: "patch" | "delete", rows: any[] | null, where: string, onClose: (done: number) => void}} properties */
export function Bulk({ db, coll, paths, work, rows, where, onClose }) {
  const [reach, setReach] = useState(rows?.length ? "selected" : "all");
  const [text, setText] = useState(PATCH);
  const [matching, setMatching] = useState(/** @type {number | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [progress, setProgress] = useState({ done: 0, charge: 0, failed: /** @type {any[]} */ ([]), state: "ready" });
  const stop = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => {
    query(db, coll, `SELECT VALUE COUNT(1) FROM c${where}`, { quiet: true }).then((answer) => setMatching(answer.value.Documents[0] ?? 0), () => {});
    return () => stop.current?.abort();
  }, []);
  const total = reach === "selected" ? (rows?.length ?? 0) : (matching ?? 0);
  let operations = null, wrong = "";
  try {
    operations = parse(text);
    if (!Array.isArray(operations)) wrong = "A patch is an array of operations.";
  } catch (problem) {
    wrong = problem.message;
  }
  /** Pages of items; the whole answer is read before anything is changed, because what is changed may no longer fit the filter. */
  async function* pages(/** @type {AbortSignal} */ signal) {
    if (reach === "selected") return yield rows ?? [];
    const keys = ["id", "_etag", ...paths.map((path) => path.split("/")[1].replace(/^"|"$/g, ""))];
    const found = [];
    for (let next = ""; ; ) {
      const answer = await query(db, coll, `SELECT * FROM c${where}`, { continuation: next, count: PAGE, signal, quiet: true });
      found.push(...answer.value.Documents.map((/** @type {any} */ item) => Object.fromEntries(keys.filter((name) => Object.hasOwn(item, name)).map((name) => [name, item[name]]))));
      setProgress((now) => ({ ...now, state: "reading", done: found.length }));
      next = answer.headers.get("x-ms-continuation") ?? "";
      if (!next) break;
    }
    yield found;
  }
  const run = async () => {
    const controller = (stop.current = new AbortController());
    let done = 0, charge = 0;
    const failed = /** @type {any[]} */ ([]);
    const tell = (/** @type {string} */ state) => setProgress({ done, charge, failed: [...failed], state });
    setError(null);
    tell("reading");
    let timer = 0;
    try {
      for await (const page of pages(controller.signal)) {
        timer = setInterval(() => tell("running"), 200);
        let at = 0;
        await Promise.all(Array.from({ length: PARALLEL }, async () => {
          while (at < page.length && !controller.signal.aborted) {
            const item = page[at++];
            try {
              const answer = work === "delete" ? await removeItem(db, coll, item, paths)
                : await send("PATCH", ["dbs", db, "colls", coll, "docs", item.id], { quiet: true, signal: controller.signal, headers: { "content-type": "application/json-patch+json", "x-ms-documentdb-partitionkey": keyHeader(item, paths) }, body: { operations } });
              charge += answer.charge;
              done += 1;
            } catch (problem) {
              if (!controller.signal.aborted) failed.push({ item, problem });
            }
          }
        }));
        clearInterval(timer);
      }
      tell(controller.signal.aborted ? "stopped" : "done");
    } catch (problem) {
      clearInterval(timer);
      tell("stopped");
      if (!controller.signal.aborted) setError(problem);
    }
  };
  const { state } = progress;
  const verb = work === "delete" ? "Delete" : "Patch";
  return html`<${Dialog} title=${`${verb} items of ${coll}`} onClose=${() => onClose(progress.done)}>
    ${rows?.length ? html`<${Choice} label="Which items" value=${reach} onChange=${setReach} options=${[["selected", `${plural(rows.length, "selected item")}`], ["all", matching === null ? "All that match" : `All ${count(matching)} that match${where ? "" : " (no filter: all)"}`]]} />` : html`<p>${where ? html`All items <code>${where.trim()}</code>` : "All items of the container"}: ${matching === null ? "counting…" : plural(matching, "item")}.</p>`}
    ${work === "patch" ? html`<p class="muted small">Operations: add, set, replace, remove, incr, move. Up to 10 at once.</p><${Editor} label="Patch operations as JSON" size="short" value=${text} onChange=${setText} />${wrong && html`<p class="field-error">${wrong}</p>`}` : html`<p>They will be deleted. This cannot be undone.</p>`}
    <${ErrorBox} error=${error} />
    ${state !== "ready" && html`<div class="progress" role="progressbar" aria-label="Items done" aria-valuenow=${progress.done} aria-valuemin="0" aria-valuemax=${total}><span style=${{ width: `${Math.min(100, (100 * (progress.done + progress.failed.length)) / Math.max(1, total))}%` }}></span></div>
      <p role="status">${state === "reading" ? `Reading which items: ${count(progress.done)}…` : `${count(progress.done)} of ${plural(total, "item")}, ${progress.charge.toFixed(1)} RU${state === "done" ? ". Done." : state === "stopped" ? ". Stopped." : "…"}`}</p>`}
    ${progress.failed.length > 0 && html`<p class="field-error">${plural(progress.failed.length, "item")} failed. The first: ${progress.failed[0].problem.message}</p><button onClick=${() => download(`${coll}-failed.ndjson`, [toNdjson(progress.failed.map((one) => ({ ...one.item, error: one.problem.message })))], "application/x-ndjson")}>Save what failed</button>`}
    <div class="actions">${state === "running" || state === "reading" ? html`<button onClick=${() => stop.current?.abort()}>Stop</button>` : state === "ready" ? html`<button onClick=${() => onClose(0)}>Cancel</button><button class=${work === "delete" ? "danger" : "primary"} disabled=${!total || (work === "patch" && Boolean(wrong))} onClick=${run}>${verb} ${plural(total, "item")}</button>` : html`<button class="primary" onClick=${() => onClose(progress.done)}>Close</button>`}</div>
  </${Dialog}>`;
}
