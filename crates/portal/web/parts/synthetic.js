// A partition key that no item has by itself: made of several properties, or of one with a suffix. What it does to reads is said
// before anybody chooses it.
import { html, useState } from "../vendor/preact.js";
import { at, parse } from "../api/json.js";
import { Choice, Copy, Field } from "./ui.js";

const WAYS = { join: "Several properties joined", random: "A random suffix", hash: "A suffix that can be computed" };

/** The key of an item. @param {any} item @param {{way: string, paths: string[], suffixes: number, by: string}} made @param {number} n for the random one */
export function syntheticKey(item, { way, paths, suffixes, by }, n = 0) {
  const text = (path) => {
    const value = at(item, path);
    return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  };
  const first = way === "join" ? paths.map(text).join("-") : text(paths[0]);
  if (way === "join") return first;
  if (way === "random") return `${first}.${1 + (n % suffixes)}`;
  let hash = 0;
  for (const unit of new TextEncoder().encode(text(by))) hash = (Math.imul(hash, 31) + unit) >>> 0;
  return `${first}.${1 + (hash % suffixes)}`;
}

/** The same as a program. */
function program(name, /** @type {any} */ { way, paths, suffixes, by }) {
  const of = (path) => `item${path.split("/").slice(1).map((step) => `["${step}"]`).join("")}`;
  const sum = `sum_ = 0\nfor byte in str(${of(by)}).encode(): sum_ = (sum_ * 31 + byte) % 2**32`;
  if (way === "join") return `item["${name}"] = "-".join(str(part) for part in [${paths.map(of).join(", ")}])`;
  if (way === "random") return `item["${name}"] = f'{${of(paths[0])}}.{random.randint(1, ${suffixes})}'`;
  return `${sum}\nitem["${name}"] = f'{${of(paths[0])}}.{1 + sum_ % ${suffixes}}'`;
}

export function Synthetic({ onUse }) {
  const [way, setWay] = useState("join");
  const [name, setName] = useState("partitionKey");
  const [text, setText] = useState("/deviceId, /date");
  const [by, setBy] = useState("/id");
  const [suffixes, setSuffixes] = useState(10);
  const [sample, setSample] = useState('{ "id": "r1", "deviceId": "abc-123", "date": "2026-11-18" }');
  const paths = text.split(",").map((path) => path.trim()).filter(Boolean);
  const made = { way, paths, suffixes, by };
  let item = null;
  try {
    item = parse(sample);
  } catch {
    // The field says so.
  }
  const reads = { join: "Who reads knows all parts, and stays in one partition.", random: `Writes of one value spread over ${suffixes} partition keys; who reads that value asks all ${suffixes}.`, hash: `As with a random suffix, but whoever knows ${by} computes the key and reads one item with one request.` };
  const shown = item ? (way === "random" ? [0, 1, 2].map((n) => syntheticKey(item, made, n)).join(", …  ") : syntheticKey(item, made)) : "";
  return html`<div class="means"><strong>A synthetic key</strong><p class="muted small">For when no property alone has enough values, or one value gets most of the writes. Your program writes it into every item.</p>
    <${Choice} label="How it is made" value=${way} onChange=${setWay} options=${Object.entries(WAYS)} />
    <${Field} label=${way === "join" ? "Of these properties" : "Of this property"}>${(id) => html`<input id=${id} class="mono" value=${text} onInput=${(event) => setText(event.target.value)} />`}</${Field}>
    ${way === "hash" && html`<${Field} label="Suffix computed from">${(id) => html`<input id=${id} class="mono" value=${by} onInput=${(event) => setBy(event.target.value)} />`}</${Field}>`}
    ${way !== "join" && html`<${Field} label="Suffixes">${(id) => html`<input id=${id} type="number" min="2" max="1000" value=${suffixes} onInput=${(event) => setSuffixes(Math.max(2, Number(event.target.value) || 2))} />`}</${Field}>`}
    <${Field} label="Kept in the property">${(id) => html`<input id=${id} class="mono" value=${name} onInput=${(event) => setName(event.target.value)} />`}</${Field}>
    <${Field} label="One of your items" error=${item ? "" : "This is not JSON."}>${(id) => html`<textarea id=${id} rows="2" value=${sample} onInput=${(event) => setSample(event.target.value)}></textarea>`}</${Field}>
    ${item && html`<p role="status">Its key: <code>${shown}</code>. ${reads[way]}</p>`}
    <div class="row top-aligned"><pre class="grow small" tabindex="0" aria-label="How a program makes it">${program(name, made)}</pre><${Copy} text=${program(name, made)} what="program" /></div>
    <div class="actions"><button type="button" class="primary" disabled=${!name || !paths.length} onClick=${() => onUse(`/${name}`)}>Use /${name} as the key</button></div></div>`;
}
