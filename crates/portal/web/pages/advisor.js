// Which partition key the container should have: what every key that could be used would mean for its items and its queries.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { copyContainer, linesOfRecording, linesOfTab, pathsOf } from "../api/advise.js";
import { announce, definitionOf, go, loadTree, readOnly, READ_ONLY } from "../state.js";
import { Copy, Dialog, ErrorBox, Field, Loading, bytes, count, figure, plural } from "../parts/ui.js";

const SHOWN = 6;
/** From so many items on a sample says something. */
const ENOUGH = 1000;
const percent = (share) => `${figure(100 * share)} %`;

export default function Advisor({ db, coll }) {
  const [lines, setLines] = useState(() => linesOfTab(db, coll));
  const [source, setSource] = useState("");
  const [advice, setAdvice] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [copying, setCopying] = useState(null);
  const ask = async (requests) => {
    setBusy(true);
    setError(null);
    try {
      setAdvice((await send("POST", ["_orrery", "advise"], { body: { database: db, container: coll, requests } })).value);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  useEffect(() => void ask(lines), []);
  const recording = async (/** @type {File | undefined} */ file) => {
    if (!file) return;
    const found = linesOfRecording(await file.text(), db, coll);
    setSource(file.name);
    setLines(found);
    await ask(found);
  };
  const best = advice?.recommended;
  const same = best && advice.current?.partitionKey === best.partitionKey;
  return html`<div class="row"><h1>Advisor</h1><span class="grow"></span>
      <label class="button">Use a recording<input class="file" type="file" accept=".jsonl,.ndjson,.json" onChange=${(event) => recording(event.target.files[0])} /></label>
      <button disabled=${busy} onClick=${() => ask(lines)}>Ask again</button></div>
    <p class="muted">Judged by ${advice ? `${advice.whole ? "all" : "a sample of"} ${plural(advice.items, "item")}` : "the items"} and ${lines.length ? `${plural(lines.length, "request")} ${source ? `of ${source}` : "that you ran in this tab"}` : html`no requests: run queries on the Query page first, or record an application with <code>orrery serve --record FILE</code>`}.</p>
    <${ErrorBox} error=${error} title="There is no advice" onRetry=${() => ask(lines)} />
    ${!advice && !error && html`<${Loading} what="Reading items" />`}
    ${advice && advice.items === 0 && html`<p>No items yet: there is nothing to learn from.</p>`}
    ${advice && advice.items > 0 && html`
      ${advice.items < ENOUGH && html`<p class="means uneven"><strong>⚠</strong> ${plural(advice.items, "item")} say little: from about ${count(ENOUGH)} on it means something.</p>`}
      <section class="card" aria-label="Recommended"><h2>${best ? html`${same ? "Keep" : "Recommended:"} <code>${best.partitionKey}</code>` : "No key can be recommended"}</h2>
        <ul>${advice.reasons.map((reason) => html`<li key=${reason}>${reason}</li>`)}</ul>
        ${best && !same && html`<div class="row"><button class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${() => setCopying(best)}>Copy into a new container</button>
          <code class="small grow">${command(db, coll, best)}</code><${Copy} text=${command(db, coll, best)} what="command" /></div>`}</section>
      ${advice.current && html`<h2>Now</h2><${Judged} one=${advice.current} advice=${advice} asked=${lines.length} />`}
      <h2>Candidates, best first</h2>
      ${advice.candidates.slice(0, SHOWN).map((one) => html`<${Judged} key=${one.partitionKey} one=${one} advice=${advice} asked=${lines.length} onCopy=${one.problems.length || readOnly.value ? null : () => setCopying(one)} />`)}`}
    ${copying && html`<${CopyInto} db=${db} coll=${coll} candidate=${copying} items=${advice.items} whole=${advice.whole} onClose=${() => setCopying(null)} />`}`;
}

/** A word for a shell. @param {string} text */
const word = (text) => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const command = (db, coll, one) => `orrery import --from-container ${word(`${db}/${coll}`)} --db ${word(db)} --container ${word(`${coll}-2`)} --partition-key ${word(one.partitionKey)}`;

/** A key with its picture and its figures. */
function Judged({ one, advice, asked, onCopy = null }) {
  const most = Math.max(1, ...one.slots);
  const filled = one.slots.filter((size) => size > 0).length;
  return html`<section class="card judged" aria-label=${one.partitionKey}><div class="row"><h3><code>${one.partitionKey}</code></h3>
      ${one.problems.length > 0 ? html`<span class="badge bad">cannot be used</span>` : one.partitionKey === advice.recommended?.partitionKey && html`<span class="badge good">recommended</span>`}<span class="grow"></span>${onCopy && html`<button class="small" onClick=${onCopy}>Copy into…</button>`}</div>
    <svg class="plot skew" viewBox="0 0 320 48" preserveAspectRatio="none" role="img" aria-label=${`Bytes over ${one.slots.length} slices of the hash space: ${filled} hold something, the fullest has ${percent(most / Math.max(1, one.slots.reduce((sum, size) => sum + size, 0)))}`}>
      ${one.slots.map((size, n) => html`<rect key=${n} class="funnel-bar" x=${(320 / one.slots.length) * n + 1} width=${320 / one.slots.length - 2} y=${48 - Math.max(size ? 2 : 0, (46 * size) / most)} height=${Math.max(size ? 2 : 0, (46 * size) / most)} />`)}<line class="axis" x1="0" x2="320" y1="47.5" y2="47.5" /></svg>
    <dl class="figures"><div><dt>Values</dt><dd>${count(one.distinct)}</dd></div><div><dt>As even as</dt><dd>${count(Math.round(one.effective))}</dd></div>
      <div><dt>Largest: ${one.largestKey.slice(0, 40)}</dt><dd>${percent(one.largestShare)}, ${bytes(one.largestBytes)}</dd></div><div><dt>… at ${bytes(advice.expectedBytes)}</dt><dd>${bytes(one.projectedBytes)}</dd></div>
      <div><dt>Latest writes in one</dt><dd>${percent(one.recentShare)}</dd></div>
      ${asked > 0 && html`<div><dt>Requests in one partition</dt><dd>${percent(one.localRequests)}</dd></div><div><dt>RU, recorded → expected</dt><dd>${figure(one.beforeRu)} → ${figure(one.afterRu)}</dd></div><div><dt>Transactions</dt><dd>${one.keepsTransactions ? "kept" : "broken"}</dd></div>`}</dl>
    ${one.problems.map((problem) => html`<p key=${problem} class="field-error">✗ ${problem}</p>`)}</section>`;
}

/** The container once more, under another key. */
function CopyInto({ db, coll, candidate, items, whole, onClose }) {
  const [name, setName] = useState(`${coll}-2`);
  const [state, setState] = useState("ready");
  const [progress, setProgress] = useState({ done: 0, charge: 0, failed: /** @type {any[]} */ ([]) });
  const [error, setError] = useState(null);
  const stop = useRef(null);
  useEffect(() => () => stop.current?.abort(), []);
  const run = async (event) => {
    event.preventDefault();
    const controller = (stop.current = new AbortController());
    setState("running");
    setError(null);
    try {
      const report = (await send("GET", ["_orrery", "partitions"], { query: `db=${encodeURIComponent(db)}&container=${encodeURIComponent(coll)}&keys=0`, quiet: true })).value;
      const throughput = report.serverless ? 0 : Math.max(400, Math.round(report.partitions.reduce((sum, one) => sum + one.throughput, 0) / 100) * 100);
      await copyContainer({ db, from: definitionOf(db, coll), to: name, candidate, throughput, signal: controller.signal, tell: (done, charge, failed) => setProgress({ done, charge, failed: [...failed] }) });
      setState(controller.signal.aborted ? "stopped" : "done");
    } catch (problem) {
      setState(controller.signal.aborted ? "stopped" : "ready");
      if (!controller.signal.aborted) setError(problem);
    }
    await loadTree();
  };
  return html`<${Dialog} title=${`Copy ${coll} under ${candidate.partitionKey}`} onClose=${onClose}><form onSubmit=${run}>
    <p>Key of the new container: <code>${pathsOf(candidate).join(", ")}</code>${candidate.shape === "suffix" ? ", which the copy writes into every item" : ""}. The container stays as it is; what is written to it meanwhile may be missing in the copy.</p>
    ${!whole && html`<p class="muted">More than ${plural(items, "item")}: the command is faster, and goes on where it was stopped.</p>`}
    <${Field} label="New container">${(id) => html`<input id=${id} required disabled=${state !== "ready"} value=${name} onInput=${(event) => setName(event.target.value)} />`}</${Field}>
    <${ErrorBox} error=${error} title="Not copied" />
    ${state !== "ready" && html`<p role="status">${plural(progress.done, "item")} copied, ${figure(progress.charge)} RU${state === "done" ? ". Done." : state === "stopped" ? ". Stopped." : "…"}</p>`}
    ${progress.failed.length > 0 && html`<p class="field-error">${plural(progress.failed.length, "item")} failed. The first: ${progress.failed[0].problem.message}</p>`}
    <div class="actions">${state === "running" ? html`<button type="button" onClick=${() => stop.current?.abort()}>Stop</button>` : state === "ready" ? html`<button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${!name}>Copy</button>` : html`<button type="button" class="primary" onClick=${() => { onClose(); announce(`Copied to ${name}`); go("c", db, name, "partitions"); }}>See its partitions</button>`}</div>
  </form></${Dialog}>`;
}
