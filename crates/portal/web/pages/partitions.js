// The picture of physical partitions: who holds what, who works, and what splits and merges are doing, live.
import { html, useRef, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { announce, definitionOf, go, readOnly, session, READ_ONLY } from "../state.js";
import { Choice, ErrorBox, Loading, bytes, count, duration, figure, plural, usePolling } from "../parts/ui.js";
import { Ring } from "../parts/ring.js";
import { Heat } from "../parts/heat.js";
import { Scale } from "../parts/scale.js";
import { keyText, loadVerdict, verdict } from "../api/partitions.js";

const OVER = new Set(["done", "failed", "given up", "abandoned"]);
const JOBS_SHOWN_MAX = 6;
/** Samples for the heat strip: some minutes. */
const HISTORY_MAX = 300;
/** Of the rates that the server reports. */
const WINDOW = "the last seconds";

export default function Partitions({ db, coll }) {
  const [report, setReport] = useState(null);
  const [jobs, setJobs] = useState([]);
  const [error, setError] = useState(null);
  const [failed, setFailed] = useState(null);
  const [view, setView] = useState("bars");
  const [measure, setMeasure] = useState("sizeBytes");
  const [chosen, setChosen] = useState("");
  const [scaling, setScaling] = useState(false);
  const history = useRef(/** @type {{at: number, partitions: any[]}[]} */ ([]));
  const running = jobs.filter((job) => !OVER.has(job.step));
  usePolling(async () => {
    try {
      const names = `db=${encodeURIComponent(db)}&container=${encodeURIComponent(coll)}&keys=5`;
      const [found, all] = await Promise.all([send("GET", ["_orrery", "partitions"], { query: names, quiet: true }), send("GET", ["_orrery", "splits"], { quiet: true })]);
      found.value.partitions.sort((a, b) => (a.min < b.min ? -1 : 1));
      history.current = [...history.current, { at: Date.now(), partitions: found.value.partitions }].slice(-HISTORY_MAX);
      setReport(found.value);
      setJobs(all.value.jobs.filter((job) => job.database === db && job.container === coll).sort((a, b) => b.job - a.job));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  }, running.length ? 250 : 1000, [db, coll]);

  const start = async (operation, range = "") => {
    setFailed(null);
    try {
      await send("POST", ["_orrery", "splits"], { body: { operation, database: db, container: coll, ...(range && { range }) } });
      announce(operation === "split" ? "The split has begun" : "The merge has begun");
    } catch (problem) {
      setFailed(problem);
    }
  };
  if (error && !report) return html`<${ErrorBox} error=${error} title="The partitions could not be read" />`;
  if (!report) return html`<${Loading} />`;
  const partitions = report.partitions;
  const total = (name) => partitions.reduce((sum, one) => sum + one[name], 0);
  const told = verdict(partitions);
  const load = loadVerdict(partitions);
  const picked = partitions.find((one) => one.range === chosen) ?? null;
  const definition = definitionOf(db, coll);
  const version = definition?.partitionKey?.version ?? 2;
  // Refusals since the sample before, as a rate: a total says little after an hour.
  const [earlier, latest] = [history.current.at(-11) ?? history.current[0], history.current.at(-1)];
  const refusals = (one) => {
    const before = earlier?.partitions.find((other) => other.range === one.range);
    return before && latest !== earlier ? Math.max(0, ((one.throttled - before.throttled) * 1000) / Math.max(1, latest.at - earlier.at)) : 0;
  };
  for (const one of partitions) one.refusedPerSecond = refusals(one);

  return html`<div class="row"><h1>${coll}</h1><span class="grow"></span>
      <button disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Splits the largest partition"} onClick=${() => start("split", chosen)}>Split ${picked ? `partition ${picked.range}` : "the largest"}</button>
      <button disabled=${readOnly.value || partitions.length < 2} title=${partitions.length < 2 ? "There is only one" : "Merges the two neighbours that hold least"} onClick=${() => start("merge", chosen)}>Merge ${picked ? `partition ${picked.range} and the next` : "the smallest"}</button></div>
    <p>${plural(partitions.length, "physical partition")} · ${report.serverless ? "serverless" : `${figure(total("throughput"))} RU/s`} · ${plural(total("items"), "item")} · ${bytes(total("sizeBytes"))} · ${figure(total("ruPerSecond"))} RU/s in ${WINDOW} · ${count(total("throttled"))} × 429${total("refusedPerSecond") > 0 ? `, ${figure(total("refusedPerSecond"))} a second now` : ""}${report.throttling ? "" : " (throttling is off)"}</p>
    <p class=${`means ${told.good ? "" : "uneven"}`} role="status"><strong>${told.good ? "✓" : "⚠"}</strong> ${told.text}${load ? ` ${load}` : ""}</p>
    <${ErrorBox} error=${error} title="The figures are not the latest" />
    <${ErrorBox} error=${failed} title="Not started" onClose=${() => setFailed(null)} />
    ${jobs.slice(0, JOBS_SHOWN_MAX).length > 0 && html`<section class="card" aria-label="Splits and merges">${jobs.slice(0, JOBS_SHOWN_MAX).map((job) => html`<${Job} key=${job.job} job=${job} />`)}</section>`}
    <div class="toolbar"><${Choice} label="Picture" value=${view} options=${[["bars", "Bars"], ["ring", "Ring"], ["heat", "Heat"]]} onChange=${setView} />
      ${view === "bars" && html`<${Choice} label="Measure" value=${measure} options=${[["sizeBytes", "Storage"], ["items", "Items"], ["ruPerSecond", "RU/s"], ["throttled", "429s"]]} onChange=${setMeasure} />`}</div>
    <div class="cards">
      <section class="card">${view === "ring"
        ? html`<${Ring} partitions=${partitions} version=${version} chosen=${chosen} onChoose=${(range) => setChosen(range === chosen ? "" : range)} sentence=${told.text} />
          <p class="legend"><span><span class="swatch calm"></span>arc: part of the hash space</span><span>thickness: storage</span><span><span class="swatch busy"></span>redder: nearer to its RU/s</span><span>dots outside: 429s, larger for more a second</span><span>inner dots: hottest keys</span></p>`
        : view === "heat" ? html`<${Heat} history=${history.current} version=${version} />`
        : html`<${Bars} partitions=${partitions} measure=${measure} chosen=${chosen} onChoose=${(range) => setChosen(range === chosen ? "" : range)} />`}</section>
      ${picked && html`<${Card} one=${picked} db=${db} coll=${coll} />`}
    </div>
    ${definition && html`<details class="card" onToggle=${(event) => setScaling(event.target.open)}><summary>Throughput: what more or less would make</summary>${scaling && html`<${Scale} of=${definition} partitions=${partitions.length} picture=${true} absent="The container shares the throughput of its database." />`}</details>`}
    <h2>The same in figures</h2>
    <div class="scroll-x" tabindex="0" role="region" aria-label="Partitions in figures"><table class="plain-table"><thead><tr><th>Partition</th><th>Hash range</th><th class="number">Items</th><th class="number">Storage</th><th class="number">RU/s share</th><th class="number">RU/s now</th><th class="number">Used</th><th class="number">429s</th><th>Hottest key</th><th>Largest key</th></tr></thead>
      <tbody>${partitions.map((one) => html`<tr key=${one.range} class=${one.range === chosen ? "chosen" : ""}><td><button class="link" onClick=${() => setChosen(one.range)}>${one.range}</button></td><td><code>${short(one.min)}–${short(one.max)}</code></td><td class="number">${count(one.items)}</td><td class="number nowrap">${bytes(one.sizeBytes)}</td><td class="number">${figure(one.throughput)}</td><td class="number">${figure(one.ruPerSecond)}</td><td class="number">${Math.round(one.normalized * 100)} %</td><td class="number nowrap">${count(one.throttled)}${one.refusedPerSecond > 0 ? html` <span class="badge bad">${figure(one.refusedPerSecond)}/s</span>` : ""}</td>
        <td>${one.hot[0] ? `${keyText(one.hot[0].partitionKey)} (${Math.round(one.hot[0].share * 100)} %)` : "–"}</td><td>${one.largest[0] ? `${keyText(one.largest[0].partitionKey)} (${bytes(one.largest[0].sizeBytes)})` : "–"}</td></tr>`)}</tbody></table></div>`;
}

/** @param {string} bound */
const short = (bound) => (bound.length > 4 ? `${bound.slice(0, 4)}…` : bound || "00");
const say = { sizeBytes: bytes, items: count, ruPerSecond: (n) => `${figure(n)} RU/s`, throttled: (n) => `${count(n)} × 429` };

function Bars({ partitions, measure, chosen, onChoose }) {
  const most = Math.max(1e-9, ...partitions.map((one) => one[measure]));
  const mean = partitions.reduce((sum, one) => sum + one[measure], 0) / partitions.length;
  const all = mean * partitions.length || 1;
  return html`<div class="bars" role="group" aria-label=${`Bars: ${measure === "sizeBytes" ? "storage" : measure} of each physical partition`}>${partitions.map((one) => html`<button key=${one.range} class="bar-row" aria-pressed=${one.range === chosen ? "true" : "false"} onClick=${() => onChoose(one.range)}>
      <span>Partition ${one.range}</span><span class="bar-track" aria-hidden="true"><span class=${`bar-fill ${one[measure] > mean * 1.6 && partitions.length > 1 ? "hot" : ""}`} style=${{ width: `${(100 * one[measure]) / most}%` }}></span>${partitions.length > 1 && html`<span class="bar-mean" style=${{ left: `${(100 * mean) / most}%` }}></span>`}</span>
      <span class="number">${say[measure](one[measure])} <span class="muted">${Math.round((100 * one[measure]) / all)} %</span></span></button>`)}</div>
    <p class="legend"><span>│ mean: ${say[measure](mean)}</span>${measure === "sizeBytes" && html`<span>limit of one: ${bytes(partitions[0].sizeLimitBytes)}</span>`}<span><span class="swatch striped"></span>striped: far above the mean</span></p>`;
}

function Card({ one, db, coll }) {
  const definition = definitionOf(db, coll);
  const show = (key) => {
    const paths = definition?.partitionKey?.paths ?? [];
    const where = paths.map((path, n) => `c${path.split("/").slice(1).map((step) => `[${JSON.stringify(step.replace(/^"|"$/g, ""))}]`).join("")} = ${JSON.stringify(key[n])}`).join(" AND ");
    sessionStorage.setItem(`orrery-query:${db}/${coll}`, JSON.stringify([{ id: 1, text: `SELECT * FROM c WHERE ${where}`, values: {} }]));
    go("c", db, coll, "query");
  };
  return html`<section class="card" aria-label=${`Partition ${one.range}`}><h2>Partition ${one.range}</h2>
    <p class="muted">hash <code>${short(one.min)}–${short(one.max)}</code> · ${bytes(one.sizeBytes)} of ${bytes(one.sizeLimitBytes)} · ${figure(one.ruPerSecond)} of ${figure(one.throughput)} RU/s</p>
    <h3>Hottest keys <small class="muted">share of RU in ${WINDOW}</small></h3>
    ${one.hot.length ? html`<ul>${one.hot.map((hot) => html`<li key=${keyText(hot.partitionKey)}><button class="link" onClick=${() => show(hot.partitionKey)}>${keyText(hot.partitionKey)}</button> ${Math.round(hot.share * 100)} % · ${figure(hot.ruPerSecond)} RU/s</li>`)}</ul>` : html`<p class="muted">None in use.</p>`}
    <h3>Largest keys</h3>
    ${one.largest.length ? html`<ul>${one.largest.map((large) => html`<li key=${keyText(large.partitionKey)}><button class="link" onClick=${() => show(large.partitionKey)}>${keyText(large.partitionKey)}</button> ${bytes(large.sizeBytes)} · ${plural(large.items, "item")}</li>`)}</ul>` : html`<p class="muted">No items.</p>`}
  </section>`;
}

function Job({ job }) {
  const part = job.step === "done" ? 1 : job.items ? Math.min(1, job.itemsCopied / job.items) : 0;
  return html`<div class="job"><div class="row"><strong>${job.operation === "split" ? "Split" : "Merge"}</strong> ${job.from.join(" + ")} → ${job.to.join(" + ") || "…"} <span class=${`badge ${job.step === "done" ? "good" : job.error ? "bad" : "warn"}`}>${job.step}</span><span class="muted small">${count(job.itemsCopied)} of ${count(job.items)} items · writes paused ${duration(job.pausedMs)} · ${duration(job.tookMs)} · ${job.reason}</span></div>
    ${!OVER.has(job.step) && html`<div class="progress" role="progressbar" aria-label=${`Progress of ${job.operation} ${job.job}`} aria-valuenow=${Math.round(part * 100)} aria-valuemin="0" aria-valuemax="100"><span style=${{ width: `${part * 100}%` }}></span></div>`}
    ${job.error && html`<p class="field-error">${job.error} The partitions are as they were before.</p>`}</div>`;
}
