// Files into a container: what is in them, what is missing, then upserts a few at a time, with what failed kept.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send, keyHeader } from "../api/client.js";
import { at, own, write } from "../api/json.js";
import { itemsOf, toNdjson } from "../api/files.js";
import { Dialog, ErrorBox, count, download, plural } from "./ui.js";

const PARALLEL = 16;
/** What one drop may be; larger files are for the command line. */
const FILE_BYTES_MAX = 200 * 1024 * 1024;

/** Writes items one by one. @param {string} db @param {string} coll @param {string[]} paths @returns {Sink} */
const upserts = (db, coll, paths) => ({
  noun: "item", id: "/id", batch: 1,
  async write([first], signal) {
    first.id ??= crypto.randomUUID();
    const item = own(first);
    if (typeof item.id !== "string") item.id = write(item.id, 0);
    const answer = await send("POST", ["dbs", db, "colls", coll, "docs"], { quiet: true, signal, headers: { "x-ms-documentdb-is-upsert": "true", "x-ms-documentdb-partitionkey": keyHeader(item, paths), prefer: "return=minimal" }, body: write(item, 0) });
    return { charge: answer.charge, failed: [] };
  },
});

/**
 * Where the items go: how many at once, and what became of those that were refused.
 * @typedef {{noun: string, id: string, batch: number, write: (items: any[], signal: AbortSignal) => Promise<{charge: number, failed: {item: any, problem: any}[]}>}} Sink
 * @param {{db: string, coll: string, paths: string[], files: File[], onClose: () => void, sink?: Sink}} properties
 */
export function Import({ db, coll, paths, files, onClose, sink = upserts(db, coll, paths) }) {
  const [items, setItems] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [progress, setProgress] = useState({ done: 0, charge: 0, failed: /** @type {any[]} */ ([]), state: "ready" });
  const stop = useRef(/** @type {AbortController | null} */ (null));
  useEffect(() => () => stop.current?.abort(), []);

  const read = async (/** @type {File[]} */ chosen) => {
    setError(null);
    try {
      const all = [];
      for (const file of chosen) {
        if (file.size > FILE_BYTES_MAX) throw new Error(`${file.name} is too large for the browser.`);
        for (const item of itemsOf(file.name, await file.text())) all.push(item);
      }
      setItems(all);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    if (files.length) read(files);
  }, []);

  const objects = items?.filter((item) => item !== null && typeof item === "object" && !Array.isArray(item)) ?? [];
  const without = (/** @type {string} */ path) => objects.filter((item) => at(item, path) === undefined).length;
  const { state } = progress;
  const begun = useRef({ next: 0, again: /** @type {any[][]} */ ([]), done: 0, charge: 0, failed: /** @type {any[]} */ ([]) });
  /** From the beginning, or from where it was stopped: what was under way then is written again, which changes nothing. */
  const run = async () => {
    const controller = (stop.current = new AbortController());
    const at = begun.current;
    const tell = (/** @type {string} */ state) => setProgress({ done: at.done, charge: at.charge, failed: [...at.failed], state });
    const timer = setInterval(() => tell("running"), 200);
    tell("running");
    const lane = async () => {
      while (!controller.signal.aborted) {
        const items = at.again.pop() ?? objects.slice(at.next, (at.next += sink.batch));
        if (!items.length) return;
        try {
          const wrote = await sink.write(items, controller.signal);
          at.done += items.length - wrote.failed.length;
          at.charge += wrote.charge;
          at.failed.push(...wrote.failed);
        } catch (problem) {
          if (controller.signal.aborted) at.again.push(items);
          else at.failed.push(...items.map((item) => ({ item, problem })));
        }
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, lane));
    clearInterval(timer);
    tell(controller.signal.aborted ? "stopped" : "done");
  };
  const left = objects.length - progress.done - progress.failed.length;
  const estimate = progress.done > 0 && state !== "done" ? `, about ${(progress.charge / progress.done * left).toFixed(0)} RU to go` : "";
  return html`<${Dialog} title=${`Import into ${coll}`} onClose=${onClose}>
    ${!items && html`<p>JSON (an array or one object), JSON lines, or CSV with a line of names. Items with the same id and partition key are replaced.</p>
      <label class="button">Choose files<input class="file" type="file" multiple accept=".json,.ndjson,.jsonl,.csv" onChange=${(/** @type {any} */ event) => read([...event.target.files])} /></label>`}
    <${ErrorBox} error=${error} title="The file cannot be read" />
    ${items && html`<p><strong>${plural(objects.length, sink.noun)}</strong>${items.length > objects.length ? `, and ${plural(items.length - objects.length, "value")} that ${items.length - objects.length === 1 ? "is" : "are"} no object and will be left out` : ""}.</p>
      ${without(sink.id) > 0 && html`<p class="muted">${plural(without(sink.id), sink.noun)} without an id will get one.</p>`}
      ${paths.map((/** @type {string} */ path) => without(path) > 0 && html`<p class="badge warn">${plural(without(path), "item")} without the partition key ${path}</p>`)}
      ${objects[0] && state === "ready" && html`<pre class="card small">${write(objects[0]).slice(0, 800)}</pre>`}
      ${state !== "ready" && html`<div class="progress" role="progressbar" aria-label="Items written" aria-valuenow=${progress.done} aria-valuemin="0" aria-valuemax=${objects.length}><span style=${{ width: `${(100 * (progress.done + progress.failed.length)) / Math.max(1, objects.length)}%` }}></span></div>
        <p role="status">${count(progress.done)} of ${plural(objects.length, sink.noun)} written, ${progress.charge.toFixed(1)} RU${estimate}${state === "done" ? ". Done." : state === "stopped" ? ". Stopped." : "…"}</p>`}
      ${progress.failed.length > 0 && html`<p class="field-error">${plural(progress.failed.length, sink.noun)} failed. The first: ${progress.failed[0].problem.message}</p>
        <button onClick=${() => download(`${coll}-failed.ndjson`, [toNdjson(progress.failed.map((one) => one.item))], "application/x-ndjson")}>Save what failed</button>`}
      <div class="actions">${state === "running" ? html`<button onClick=${() => stop.current?.abort()}>Stop</button>` : state === "ready" ? html`<button onClick=${onClose}>Cancel</button><button class="primary" disabled=${!objects.length} onClick=${run}>Import ${plural(objects.length, sink.noun)}</button>` : html`${state === "stopped" && left > 0 && html`<button onClick=${run}>Go on</button>`}<button class="primary" onClick=${onClose}>Close</button>`}</div>`}
  </${Dialog}>`;
}
