// Scale and settings of a container: throughput, time to live, indexing policy as a form and as JSON, what is fixed, its end.
import { html, useState, useEffect } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { parse, write } from "../api/json.js";
import { announce, databases, definitionOf, go, loadTree, readOnly, session, READ_ONLY } from "../state.js";
import { Choice, Confirm, ErrorBox, Field, Loading, plural, usePolling } from "../parts/ui.js";
import { Editor } from "../parts/editor.js";
import { Scale } from "../parts/scale.js";
import { Policies, policiesOf, withPolicies } from "../parts/policies.js";

const SYSTEM = ["_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"];

export default function Settings({ db, coll }) {
  const [definition, setDefinition] = useState(null);
  const [progress, setProgress] = useState(null);
  const [partitions, setPartitions] = useState(0);
  const [error, setError] = useState(null);
  const [deleting, setDeleting] = useState(false);
  const read = async () => {
    try {
      const answer = await send("GET", ["dbs", db, "colls", coll], { quiet: true, headers: { "x-ms-documentdb-populatequotainfo": "true" } });
      setDefinition((before) => (before?._etag === answer.value._etag ? before : answer.value));
      setProgress(Number(answer.headers.get("x-ms-documentdb-collection-index-transformation-progress") ?? 100));
      const names = `db=${encodeURIComponent(db)}&container=${encodeURIComponent(coll)}&keys=0`;
      setPartitions((await send("GET", ["_orrery", "partitions"], { query: names, quiet: true })).value.partitions.length);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  usePolling(read, progress !== null && progress < 100 ? 300 : 2000, [db, coll]);
  if (error && !definition) return html`<${ErrorBox} error=${error} title="The container could not be read" />`;
  if (!definition) return html`<${Loading} />`;
  const save = async (part) => {
    const body = { ...definition, ...part };
    for (const name of SYSTEM) delete body[name];
    for (const [name, value] of Object.entries(body)) if (value === undefined) delete body[name];
    const answer = await send("PUT", ["dbs", db, "colls", coll], { body, headers: { "if-match": definition._etag } });
    setDefinition(answer.value);
    announce("Saved");
    loadTree();
  };
  const key = definition.partitionKey;
  return html`<h1>${coll}</h1>
    <div class="cards">
      <section class="card"><h2>Throughput</h2><p class="muted small">${plural(partitions, "physical partition")} now.</p><${Scale} of=${definition} partitions=${partitions} onChanged=${read} absent="The container shares the throughput of its database." /></section>
      <section class="card"><h2>Time to live</h2><${Ttl} key=${definition._etag} value=${definition.defaultTtl} onSave=${(defaultTtl) => save({ defaultTtl })} /></section>
      <section class="card"><h2>Fixed when it was made</h2><table class="plain-table"><tbody>
        <tr><th scope="row">Partition key</th><td><code>${key?.paths?.join(", ") ?? "none (fixed size)"}</code>${key?.kind === "MultiHash" ? " hierarchical" : ""}</td></tr>
        <tr><th scope="row">Unique keys</th><td>${definition.uniqueKeyPolicy?.uniqueKeys?.length ? definition.uniqueKeyPolicy.uniqueKeys.map((one) => html`<div key=${one.paths.join()}><code>${one.paths.join(", ")}</code></div>`) : "none"}</td></tr>
        <tr><th scope="row">Conflicts</th><td>${definition.conflictResolutionPolicy?.mode ?? "LastWriterWins"} <code>${definition.conflictResolutionPolicy?.conflictResolutionPath ?? ""}</code></td></tr>
        <tr><th scope="row">Resource id</th><td><code>${definition._rid}</code></td></tr></tbody></table></section>
    </div>
    <section class="card gap-top"><h2>Indexing policy ${progress !== null && progress < 100 ? html`<span class="badge warn" role="status">index built to ${progress} %</span>` : html`<span class="badge good">index up to date</span>`}</h2>
      ${progress !== null && progress < 100 && html`<div class="progress" role="progressbar" aria-label="The index is being built" aria-valuenow=${progress} aria-valuemin="0" aria-valuemax="100"><span style=${{ width: `${progress}%` }}></span></div>`}
      <${Policy} key=${definition._etag} policy=${definition.indexingPolicy} onSave=${(indexingPolicy) => save({ indexingPolicy })} /></section>
    <section class="card"><h2>Computed properties, vectors, full text</h2><${PolicyForm} key=${definition._etag} definition=${definition} onSave=${save} /></section>
    <section class="card"><h2>All versions and deletes</h2><${Versions} key=${definition._etag} policy=${definition.changeFeedPolicy} onSave=${(changeFeedPolicy) => save({ changeFeedPolicy })} /></section>
    <section class="card"><h2>All of it as JSON</h2><details><summary>The whole definition, conflict resolution and the rest</summary><${Whole} key=${definition._etag} definition=${definition} onSave=${save} /></details></section>
    <section class="card"><h2>Delete</h2><p>The container and all of its items. There is no way back.</p><button class="danger" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${() => setDeleting(true)}>Delete the container</button></section>
    ${deleting && html`<${Confirm} title="Delete the container?" text="All of its items will be gone." name=${coll} action="Delete for good" onClose=${() => setDeleting(false)} onDo=${async () => {
      await send("DELETE", ["dbs", db, "colls", coll]);
      announce(`Deleted ${coll}`);
      await loadTree();
      go("d", db);
    }} />`}`;
}

/** A button that saves and keeps what went wrong. */
function Save({ disabled, work, label = "Save" }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<${ErrorBox} error=${error} title="Not saved" /><div class="actions"><button class="primary" disabled=${disabled || busy || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${run}>${busy ? "Saving…" : label}</button></div>`;
}

function Ttl({ value, onSave }) {
  const [kind, setKind] = useState(value === undefined ? "off" : value === -1 ? "own" : "all");
  const [seconds, setSeconds] = useState(value > 0 ? value : 86_400);
  const next = kind === "off" ? undefined : kind === "own" ? -1 : seconds;
  return html`<${Choice} label="Time to live" value=${kind} onChange=${setKind} options=${[["off", "Off"], ["own", "Where items say so"], ["all", "For all items"]]} />
    ${kind === "all" && html`<${Field} label="Seconds after the last change">${(id) => html`<input id=${id} type="number" min="1" value=${seconds} onInput=${(event) => setSeconds(Number(event.target.value))} />`}</${Field}>`}
    <p class="muted small">${kind === "off" ? "Items stay until they are deleted." : kind === "own" ? "Items with a property ttl expire after so many seconds." : "Items expire; their own ttl counts more."}</p>
    <${Save} disabled=${next === value || (kind === "all" && !(seconds > 0))} work=${() => onSave(next)} />`;
}

function Policy({ policy, onSave }) {
  const [text, setText] = useState(write(policy));
  const [view, setView] = useState("form");
  let now = null, wrong = "";
  try {
    now = parse(text);
  } catch (problem) {
    wrong = problem.message;
  }
  const put = (part) => setText(write({ ...now, ...part }));
  const lists = [["includedPaths", "Indexed paths"], ["excludedPaths", "Paths that are not indexed"]];
  return html`<${Choice} label="Edit the policy as" value=${view} onChange=${setView} options=${[["form", "Form"], ["json", "JSON"]]} />
    ${view === "json" || !now ? html`<p></p><${Editor} label="Indexing policy as JSON" size="tall" value=${text} onChange=${setText} readOnly=${readOnly.value} />` : html`
      <${Field} label="Mode">${(id) => html`<select id=${id} value=${now.indexingMode ?? "consistent"} onChange=${(event) => put({ indexingMode: event.target.value, automatic: event.target.value !== "none" })}><option value="consistent">consistent: every write updates the index</option><option value="none">none: items are found by id and partition key only</option></select>`}</${Field}>
      ${now.indexingMode !== "none" && lists.map(([name, title]) => html`<${Field} key=${name} label=${title} hint=${name === "includedPaths" ? "One a line: /* is everything, /total/? one value, /address/* all below." : ""}>${(id) => html`<textarea id=${id} rows=${Math.max(2, (now[name] ?? []).length)} value=${(now[name] ?? []).map((one) => one.path).join("\n")} onChange=${(event) => put({ [name]: event.target.value.split("\n").map((line) => line.trim()).filter(Boolean).map((path) => (now[name] ?? []).find((one) => one.path === path) ?? { path }) })}></textarea>`}</${Field}>`)}
      ${now.indexingMode !== "none" && html`<${Field} label="Composite indexes" hint="One a line: /country ASC, /total DESC. For ORDER BY with several properties.">${(id) => html`<textarea id=${id} rows="2" value=${(now.compositeIndexes ?? []).map((one) => one.map((part) => `${part.path} ${part.order === "descending" ? "DESC" : "ASC"}`).join(", ")).join("\n")}
        onChange=${(event) => put({ compositeIndexes: event.target.value.split("\n").filter((line) => line.trim()).map((line) => line.split(",").map((part) => ({ path: part.trim().split(/\s+/)[0], order: /desc/i.test(part) ? "descending" : "ascending" }))) })}></textarea>`}</${Field}>`}`}
    ${wrong && html`<p class="field-error">This is not JSON: ${wrong}</p>`}
    <${Save} disabled=${Boolean(wrong) || text === write(policy)} work=${() => onSave(now)} label="Save the policy" />`;
}

function Whole({ definition, onSave }) {
  const before = write(Object.fromEntries(Object.entries(definition).filter(([name]) => !SYSTEM.includes(name))));
  const [text, setText] = useState(before);
  return html`<${Editor} label="The container as JSON" size="tall" value=${text} onChange=${setText} readOnly=${readOnly.value} />
    <${Save} disabled=${text === before} work=${() => onSave(parse(text))} />`;
}

function PolicyForm({ definition, onSave }) {
  const before = policiesOf(definition);
  const [value, setValue] = useState(before);
  const save = () => {
    const { computedProperties, vectorEmbeddingPolicy, fullTextPolicy, indexingPolicy } = withPolicies(definition, value);
    return onSave({ computedProperties, vectorEmbeddingPolicy, fullTextPolicy, indexingPolicy });
  };
  return html`<${Policies} value=${value} onChange=${setValue} disabled=${readOnly.value} /><${Save} disabled=${write(value) === write(before)} work=${save} label="Save these policies" />`;
}

/** How long the feed keeps every version; without it only the latest of each item is told. */
function Versions({ policy, onSave }) {
  const minutes = Number(policy?.retentionDuration ?? 0);
  const [value, setValue] = useState(minutes);
  return html`<p class="muted small">With it the change feed tells every version and every deletion, for so long. Without it, the latest version of each item.</p>
    <${Field} label="Minutes that versions are kept (0: not at all)">${(id) => html`<input id=${id} type="number" min="0" max="43200" value=${value} onInput=${(event) => setValue(Number(event.target.value))} />`}</${Field}>
    <${Save} disabled=${value === minutes} work=${() => onSave(value ? { retentionDuration: value } : undefined)} label="Save the retention" />`;
}
