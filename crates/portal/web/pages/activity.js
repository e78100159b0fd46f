// What the server does right now: requests, request units, times and refusals, over the last minutes.
import { html, useState } from "../vendor/preact.js";
import { Choice, ErrorBox, Loading, bytes, count, duration, figure, usePolling } from "../parts/ui.js";
import { Chart } from "../parts/chart.js";
import { Histogram, fine } from "../parts/histogram.js";
import { parseMetrics, quantile, sum } from "../api/metrics.js";

const POLL_MS = 2000;
/** A quarter of an hour; Prometheus has the rest. */
const POINTS_MAX = 450;
const TIMES = "orrery_request_duration_seconds";

/** Kept while the tab lives, so that coming back shows what was. */
const points = { last: /** @type {any} */ (null), first: /** @type {any} */ (null), time: [], requests: [], ru: [], p50: [], p99: [], errors: [], throttled: [], commits: [], memory: [] };

/** @param {any[]} all @param {any[]} before @param {(labels: any) => boolean} [fits] */
function bucketsBetween(all, before, fits = () => true) {
  const buckets = new Map();
  const add = (from, sign) => {
    for (const one of from) if (one.name === `${TIMES}_bucket` && fits(one.labels)) {
      const bound = one.labels.le === "+Inf" ? Infinity : Number(one.labels.le);
      buckets.set(bound, (buckets.get(bound) ?? 0) + sign * one.value);
    }
  };
  add(all, 1);
  add(before, -1);
  return buckets;
}

/** @param {number} part @param {number} rest */
const share = (part, rest) => (part + rest ? `${Math.round((100 * part) / (part + rest))} %` : "no");

export default function Activity() {
  const [, again] = useState(0);
  const [error, setError] = useState(null);
  const [chosen, setChosen] = useState("");
  const [span, setSpan] = useState("start");
  usePolling(async () => {
    try {
      const response = await fetch("/metrics", { credentials: "omit", cache: "no-store" });
      if (response.status === 401) throw new Error("This server shows its metrics only with a key (--metrics-auth on), which the page cannot send: ask with Authorization: Bearer KEY.");
      const all = parseMetrics(await response.text());
      const now = Date.now() / 1000;
      const last = points.last;
      if (last) {
        const seconds = Math.max(0.001, now - last.now);
        const rate = (name, fits = undefined) => Math.max(0, (sum(all, name, fits) - sum(last.all, name, fits)) / seconds);
        const buckets = bucketsBetween(all, last.all);
        const put = (list, value) => (list.push(Number.isNaN(value) ? null : value), list.length > POINTS_MAX && list.shift());
        put(points.time, now);
        put(points.requests, rate("orrery_requests_total"));
        put(points.ru, rate("orrery_request_charge_ru_total"));
        put(points.errors, rate("orrery_requests_total", (labels) => /^[45]/.test(labels.status)));
        put(points.throttled, rate("orrery_requests_total", (labels) => labels.status === "429"));
        put(points.commits, rate("orrery_store_commits_total"));
        put(points.memory, sum(all, "orrery_request_memory_bytes"));
        put(points.p50, quantile(buckets, 0.5) * 1000);
        put(points.p99, quantile(buckets, 0.99) * 1000);
      }
      points.last = { all, now };
      points.first ??= points.last;
      setError(null);
      again((n) => n + 1);
    } catch (problem) {
      setError(problem);
    }
  }, POLL_MS);
  if (error && !points.last) return html`<h1>Activity</h1><${ErrorBox} error=${error} title="The figures could not be read" />`;
  if (!points.last) return html`<${Loading} />`;
  const all = points.last.all;
  const of = (name) => sum(all, name);
  const operations = [...new Set(all.filter((one) => one.name === "orrery_requests_total").map((one) => one.labels.operation))].map((operation) => {
    const fits = (labels) => labels.operation === operation;
    const requests = sum(all, "orrery_requests_total", fits);
    const buckets = bucketsBetween(all, [], fits);
    return { operation, requests, p50: quantile(buckets, 0.5), p99: quantile(buckets, 0.99), ru: sum(all, "orrery_request_charge_ru_total", fits), mean: sum(all, `${TIMES}_sum`, fits) / Math.max(1, sum(all, `${TIMES}_count`, fits)), errors: sum(all, "orrery_requests_total", (labels) => fits(labels) && /^[45]/.test(labels.status)) };
  }).sort((a, b) => b.requests - a.requests);
  const shownOperation = operations.some((one) => one.operation === chosen) ? chosen : "";
  return html`<h1>Activity</h1><p class="muted">Every ${POLL_MS / 1000} seconds while this page is open, the last 15 minutes. All of it and more is at <a href="/metrics">/metrics</a>.</p>
    <${ErrorBox} error=${error} title="The figures are not the latest" />
    <div class="cards">
      <${Chart} title="Requests per second" series=${[{ name: "requests", colour: "--accent" }, { name: "4xx and 5xx", colour: "--bad", dash: [6, 4] }]} data=${[[...points.time], [...points.requests], [...points.errors]]} unit=${figure} />
      <${Chart} title="Request units per second" series=${[{ name: "RU/s", colour: "--warm" }]} data=${[[...points.time], [...points.ru]]} unit=${figure} />
      <${Chart} title="Time to answer" series=${[{ name: "p50", colour: "--good" }, { name: "p99", colour: "--accent", dash: [6, 4] }]} data=${[[...points.time], [...points.p50], [...points.p99]]} unit=${(ms) => `${figure(ms)} ms`} />
      <${Chart} title="Refused with 429" series=${[{ name: "429s per second", colour: "--bad" }]} data=${[[...points.time], [...points.throttled]]} unit=${figure} />
      <${Chart} title="Store" series=${[{ name: "commits per second", colour: "--good" }]} data=${[[...points.time], [...points.commits]]} unit=${figure} />
      <section class="card"><h2>Now</h2><table class="plain-table"><tbody>
        <tr><th scope="row">Requests in flight</th><td class="number">${count(of("orrery_requests_in_flight"))}</td></tr><tr><th scope="row">Connections</th><td class="number">${count(of("orrery_connections_plain") + of("orrery_connections_tls"))}</td></tr>
        <tr><th scope="row">Commits</th><td class="number">${count(of("orrery_store_commits_total"))}</td></tr><tr><th scope="row">On disk</th><td class="number">${bytes(of("orrery_store_disk_bytes"))}</td></tr><tr><th scope="row">Log</th><td class="number">${bytes(of("orrery_store_log_bytes"))}</td></tr>
        <tr><th scope="row">Item cache</th><td class="number">${bytes(of("orrery_store_item_cache_bytes"))}, ${share(of("orrery_store_item_cache_hits_total"), of("orrery_store_item_cache_misses_total"))} hits</td></tr><tr><th scope="row">Memory of requests</th><td class="number">${bytes(of("orrery_request_memory_bytes"))} of ${bytes(of("orrery_request_memory_limit_bytes"))}</td></tr><tr><th scope="row">Writes stopped</th><td class="number">${of("orrery_store_writes_stopped") ? "yes" : "no"}</td></tr></tbody></table></section>
    </div>
    <section class="card gap-top"><h2>Times of ${shownOperation || "all operations"}</h2>
      <div class="toolbar"><label class="small muted">Operation <select value=${shownOperation} onChange=${(event) => setChosen(event.target.value)}><option value="">all</option>${operations.map((one) => html`<option key=${one.operation}>${one.operation}</option>`)}</select></label>
        <${Choice} label="Since" value=${span} options=${[["start", "Since the start"], ["open", "Since this page"]]} onChange=${setSpan} /></div>
      <${Histogram} buckets=${bucketsBetween(all, span === "start" ? [] : points.first.all, (labels) => !shownOperation || labels.operation === shownOperation)} name=${shownOperation || "all operations"} /></section>
    <section class="card"><h2>By operation, since the start</h2><div class="scroll-x" tabindex="0" role="region" aria-label="Figures by operation"><table class="plain-table"><thead><tr><th>Operation</th><th class="number">Requests</th><th class="number">Errors</th><th class="number">RU</th><th class="number">Mean time</th><th class="number">p50</th><th class="number">p99</th></tr></thead>
      <tbody>${operations.map((one) => html`<tr key=${one.operation}><td><button class="link" onClick=${() => setChosen(one.operation)}><code>${one.operation}</code></button></td><td class="number">${count(one.requests)}</td><td class="number">${count(one.errors)}</td><td class="number">${figure(one.ru)}</td><td class="number nowrap">${one.mean < 0.01 ? `${(one.mean * 1000).toFixed(2)} ms` : duration(one.mean * 1000)}</td><td class="number nowrap">${fine(one.p50)}</td><td class="number nowrap">${fine(one.p99)}</td></tr>`)}</tbody></table></div></section>`;
}
