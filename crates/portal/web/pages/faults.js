// Faults on purpose: rules that make requests fail, wait or lose their connection, for tests of clients.
import { html, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { parse, write } from "../api/json.js";
import { announce, databases, readOnly, session, READ_ONLY } from "../state.js";
import { ErrorBox, Field, Loading, count, usePolling } from "../parts/ui.js";
import { Editor } from "../parts/editor.js";

const PATH = ["_orrery", "faults"];
const KINDS = { 429: "429: throttled", 449: "449: retry with", 410: "410: gone (partition moved)", 503: "503: unavailable", delay: "after half a second", drop: "not at all (connection lost)" };

export default function Faults() {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [failed, setFailed] = useState(null);
  usePolling(async () => {
    try {
      setFound((await send("GET", PATH, { quiet: true })).value);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  }, 1500);
  if (error && !found) return html`<${ErrorBox} error=${error} />`;
  if (!found) return html`<${Loading} />`;
  const rules = found.rules.map(({ matched, fired, ...rule }) => rule);
  const replace = async (body) => {
    setFailed(null);
    try {
      setFound((await send("PUT", PATH, { body })).value);
      announce("The rules are in force");
      return true;
    } catch (problem) {
      setFailed(problem);
      return false;
    }
  };
  const clear = async () => {
    try {
      await send("DELETE", PATH);
      setFound({ rules: [] });
      announce("No faults any more");
    } catch (problem) {
      setFailed(problem);
    }
  };
  return html`<div class="row"><h1>Faults & throttling</h1><span class="grow"></span>${rules.length > 0 && html`<button class="danger" disabled=${readOnly.value} onClick=${clear}>Stop all</button>`}</div>
    <p>Errors, delays and lost connections on purpose, so that you see how your program copes. They hold for every client of this server until they are taken away.</p>
    ${rules.length > 0 && html`<div class="banner" role="status">${count(rules.length)} rule${rules.length === 1 ? " is" : "s are"} in force.</div>`}
    <${ErrorBox} error=${failed} title="The rules were not changed" onClose=${() => setFailed(null)} />
    ${found.rules.length > 0 && html`<section class="card"><div class="scroll-x" tabindex="0" role="region" aria-label="Rules"><table class="plain-table"><thead><tr><th>Rule</th><th>What</th><th>Where</th><th class="number">Chance</th><th class="number">Matched</th><th class="number">Fired</th><th><span class="muted">Remove</span></th></tr></thead>
      <tbody>${found.rules.map((rule, n) => html`<tr key=${n}><td>${rule.name ?? `rule ${n}`}</td><td>${rule.answer ? KINDS[rule.answer] ?? rule.answer : ""} ${rule.delayMs ? `${rule.delayMs} ms` : ""} ${rule.drop ? `loses the ${rule.drop}` : ""}</td><td>${[rule.database, rule.container, rule.operations?.join(", ")].filter(Boolean).join(" · ") || "everywhere"}</td><td class="number">${Math.round((rule.probability ?? 1) * 100)} %</td><td class="number">${count(rule.matched)}</td><td class="number">${count(rule.fired)}</td>
        <td><button class="plain small" disabled=${readOnly.value} aria-label=${`Remove ${rule.name ?? `rule ${n}`}`} onClick=${() => replace({ ...(found.seed !== undefined && { seed: found.seed }), rules: rules.filter((_, m) => m !== n) })}>✕</button></td></tr>`)}</tbody></table></div></section>`}
    <${Throttling} />
    <div class="cards"><${NewRule} onAdd=${(rule) => replace({ ...(found.seed !== undefined && { seed: found.seed }), rules: [...rules, rule] })} />
    <section class="card"><h2>All rules as JSON</h2><${Text} key=${write(rules)} found=${{ ...(found.seed !== undefined && { seed: found.seed }), rules }} onSave=${replace} /></section></div>`;
}

/** Whether throughput is enforced, for every client, until the server ends. */
function Throttling() {
  const [error, setError] = useState(null);
  const on = session.value.throttling;
  const change = async (event) => {
    const enabled = event.target.checked;
    setError(null);
    try {
      session.value = { ...session.value, throttling: (await send("PUT", ["_orrery", "throttling"], { body: { enabled } })).value.enabled };
      announce(enabled ? "What exceeds the throughput is refused from now on" : "Nothing is refused any more");
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<section class="card"><label class="row"><input type="checkbox" role="switch" checked=${on} disabled=${readOnly.value} onChange=${change} /> <strong>Throttling</strong></label>
    <p class="muted">${on ? "Requests beyond the throughput of their partition are refused with 429, as on the service." : "Request units are counted, and nothing is refused. Switch it on to see whether a throughput is enough: set it under Scale & settings, then look at Partitions."} Holds until the server ends; <code>--throttling</code> says how it begins.</p>
    <${ErrorBox} error=${error} title="Not switched" /></section>`;
}

function NewRule({ onAdd }) {
  const [answer, setAnswer] = useState("429");
  const [where, setWhere] = useState("");
  const [chance, setChance] = useState(20);
  const all = (databases.value ?? []).flatMap((db) => db.containers.map((one) => [db.id, one.id]));
  const add = (event) => {
    event.preventDefault();
    const [database, container] = where ? JSON.parse(where) : [];
    const effect = answer === "delay" ? { delayMs: 500 } : answer === "drop" ? { drop: "request" } : { answer: Number(answer) };
    onAdd({ name: `portal-${answer}`, ...effect, probability: chance / 100, ...(database && { database, container }) });
  };
  return html`<form class="card" onSubmit=${add}><h2>Add a rule</h2>
    <${Field} label="Answer">${(id) => html`<select id=${id} value=${answer} onChange=${(event) => setAnswer(event.target.value)}>${Object.entries(KINDS).map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select>`}</${Field}>
    <${Field} label="Where">${(id) => html`<select id=${id} value=${where} onChange=${(event) => setWhere(event.target.value)}><option value="">every container</option>${all.map((one) => html`<option key=${one.join("/")} value=${JSON.stringify(one)}>${one.join(" / ")}</option>`)}</select>`}</${Field}>
    <${Field} label=${`Chance: ${chance} %`}>${(id) => html`<input id=${id} type="range" min="1" max="100" value=${chance} onInput=${(event) => setChance(Number(event.target.value))} />`}</${Field}>
    <div class="actions"><button class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined}>Add the rule</button></div></form>`;
}

function Text({ found, onSave }) {
  const [text, setText] = useState(write(found));
  const [wrong, setWrong] = useState("");
  const save = () => {
    try {
      setWrong("");
      onSave(parse(text));
    } catch (problem) {
      setWrong(problem.message);
    }
  };
  return html`<p class="muted small">Delays, lost connections, operations and keys too: see <code>orrery faults --help</code>.</p><${Editor} label="Fault rules as JSON" size="tall" value=${text} onChange=${setText} readOnly=${readOnly.value} />
    ${wrong && html`<p class="field-error">This is not JSON: ${wrong}</p>`}<div class="actions"><button disabled=${readOnly.value} onClick=${save}>Use these rules</button></div>`;
}
