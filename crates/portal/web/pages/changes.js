// The change feed, live: what was written, in the order of each partition, from now or from the beginning.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send, keyPaths, pause } from "../api/client.js";
import { write, own, at, cell } from "../api/json.js";
import { databases, definitionOf, to } from "../state.js";
import { Choice, ErrorBox, Loading, count, plural } from "../parts/ui.js";

const SHOWN_MAX = 500;
const POLL_MS = 1000;
const PAGE = 100;

export default function Changes({ db, coll }) {
  const definition = definitionOf(db, coll);
  const [from, setFrom] = useState("now");
  const [since, setSince] = useState("");
  const [mode, setMode] = useState("latest");
  const [running, setRunning] = useState(true);
  const [seen, setSeen] = useState({ changes: /** @type {any[]} */ ([]), total: 0, last: 0, charge: 0 });
  const [error, setError] = useState(null);
  const [open, setOpen] = useState("");
  const positions = useRef(/** @type {Map<string, string>} */ (new Map()));
  const known = useRef(/** @type {Map<string, any>} */ (new Map()));
  useEffect(() => {
    positions.current = new Map();
    known.current = new Map();
    setSeen({ changes: [], total: 0, last: 0, charge: 0 });
  }, [from, since, mode]);
  useEffect(() => {
    if (!running || (from === "time" && !since)) return;
    const controller = new AbortController();
    const follow = async () => {
      for (;;) {
        try {
          if (!document.hidden) await round(controller.signal);
          setError(null);
        } catch (problem) {
          if (controller.signal.aborted) return;
          setError(problem);
        }
        await pause(POLL_MS, controller.signal).catch(() => {});
        if (controller.signal.aborted) return;
      }
    };
    follow();
    return () => controller.abort();
  }, [running, from, since, mode]);

  const round = async (signal) => {
    const ranges = (await send("GET", ["dbs", db, "colls", coll, "pkranges"], { quiet: true, signal })).value.PartitionKeyRanges;
    for (const { id, parents = [] } of ranges) {
      // After a split the children go on where their parent was.
      if (!positions.current.has(id)) {
        const parent = parents.map((one) => positions.current.get(one)).find(Boolean);
        if (parent) positions.current.set(id, parent);
      }
      for (let more = true; more; ) {
        const etag = positions.current.get(id) ?? (from === "now" ? "*" : "");
        const answer = await send("GET", ["dbs", db, "colls", coll, "docs"], { quiet: true, signal, headers: { "a-im": mode === "all" ? "Full-Fidelity Feed" : "Incremental feed", ...(from === "time" && !etag && { "if-modified-since": new Date(since).toUTCString() }), "x-ms-documentdb-partitionkeyrangeid": id, "x-ms-max-item-count": String(PAGE), ...(etag && { "if-none-match": etag }) } });
        const next = answer.headers.get("etag");
        if (next) positions.current.set(id, next);
        more = answer.status === 200 && (answer.value?.Documents?.length ?? 0) > 0;
        if (!more) break;
        const paths = keyPaths(definition);
        const fresh = answer.value.Documents.map((told) => {
          if (told.metadata?.operationType) {
            const { operationType, lsn } = told.metadata;
            const item = told.current && Object.keys(told.current).length ? told.current : (told.previous ?? { id: told.metadata.id });
            return { id: `${id}:${lsn}:${item._rid ?? item.id}`, item: { ...item, _ts: told.metadata.crts ?? item._ts }, before: told.previous ?? null, what: { create: "created", replace: "changed", delete: "deleted" }[operationType] ?? operationType, range: id, key: paths.map((path) => cell(at(item, path))).join(" / ") };
          }
          const item = told;
          const name = `${item._rid}`;
          const before = known.current.get(name) ?? null;
          known.current.set(name, item);
          return { id: `${item._rid}:${item._etag}`, item, before, range: id, key: paths.map((path) => cell(at(item, path))).join(" / ") };
        });
        setSeen((old) => ({ changes: [...fresh.reverse(), ...old.changes].slice(0, SHOWN_MAX), total: old.total + fresh.length, last: Date.now(), charge: old.charge + answer.charge }));
      }
    }
  };
  if (!databases.value) return html`<${Loading} />`;
  return html`<h1>${coll}</h1>
    <div class="toolbar"><${Choice} label="Begin" value=${from} onChange=${setFrom} options=${[["now", "From now"], ...(mode === "all" ? [] : [["beginning", "From the beginning"], ["time", "From a time"]])]} />
      ${from === "time" && html`<input type="datetime-local" step="1" aria-label="Changes since" value=${since} onChange=${(event) => setSince(event.target.value)} />`}
      <${Choice} label="Which versions" value=${mode} onChange=${(next) => (setMode(next), next === "all" && setFrom("now"))} options=${[["latest", "Latest version"], ["all", "All versions and deletes"]]} />
      <button onClick=${() => setRunning(!running)}>${running ? "Pause" : "Go on"}</button><span class="grow"></span><span class="muted small" role="status">${plural(seen.total, "change")}${seen.total > SHOWN_MAX ? `, the last ${count(SHOWN_MAX)} shown` : ""} · ${seen.charge.toFixed(1)} RU</span></div>
    ${mode === "all" && !definition?.changeFeedPolicy?.retentionDuration && html`<p class="means">This container keeps the latest versions only. <a href=${to("c", db, coll, "settings")}>Scale & settings</a> has the retention of versions.</p>`}
    <${ErrorBox} error=${mode === "all" && !definition?.changeFeedPolicy?.retentionDuration ? null : error} title="The feed could not be read; it is tried again" />
    ${seen.changes.length === 0 ? html`<p class="pad muted"><span class="spinner" aria-hidden="true"></span> ${running && from === "time" && !since ? "Choose a time." : running ? "Waiting for changes. Write an item, here or from an SDK, and it shows up." : "Paused."}</p>` : html`<div class="scroll-x" tabindex="0" role="region" aria-label="Changes"><table class="plain-table"><thead><tr><th>Time</th><th>Partition</th><th>Key</th><th>Item</th><th>What</th></tr></thead>
      <tbody>${seen.changes.map((one) => html`<tr key=${one.id}><td class="nowrap muted">${new Date(Number(one.item._ts) * 1000).toLocaleTimeString()}</td><td>${one.range}</td><td>${one.key}</td><td><button class="link" aria-expanded=${open === one.id ? "true" : "false"} onClick=${() => setOpen(open === one.id ? "" : one.id)}>${one.item.id}</button>
        ${open === one.id && html`<${Difference} before=${one.before} after=${one.item} />`}</td><td>${one.what ?? (one.before ? "changed" : "written")}</td></tr>`)}</tbody></table></div>`}`;
}

/** What changed between two versions, line by line; the whole item if only one is known. */
function Difference(versions) {
  // The number of a change differs in any case.
  const [before, after] = [versions.before, versions.after].map((one) => one && own({ ...one, _lsn: undefined }));
  const lines = write(after).split("\n");
  const old = before ? new Set(write(before).split("\n")) : null;
  const gone = before ? write(before).split("\n").filter((line) => !lines.includes(line)) : [];
  return html`<pre>${gone.map((line) => html`<span class="diff-line del">- ${line}</span>`)}${lines.map((line) => html`<span class=${`diff-line ${old && !old.has(line) ? "add" : ""}`}>${old && !old.has(line) ? "+ " : "  "}${line}</span>`)}</pre>`;
}
