// Rows as trees that open and close: for values that are deep.
import { html, useState } from "../vendor/preact.js";
import { cell, isNumber } from "../api/json.js";

/** Members that are drawn at once; more on request. */
const STEP = 100;
/** Levels that are open from the beginning. */
const OPEN_LEVELS = 1;

const isOpenable = (value) => value !== null && typeof value === "object" && !isNumber(value) && Object.keys(value).length > 0;
const kindOf = (value) => (isNumber(value) ? "number" : value === null ? "null" : typeof value);

/** What a closed branch says of itself. @param {any} value */
function summary(value) {
  const n = Object.keys(value).length;
  if (Array.isArray(value)) return `${n} element${n === 1 ? "" : "s"}`;
  const name = value.id ?? value._id ?? value.name;
  return `${n} member${n === 1 ? "" : "s"}${name !== undefined && !isOpenable(name) ? `, ${cell(name).slice(0, 40)}` : ""}`;
}

export function ValueTree({ label, value }) {
  return html`<div class="value-tree" tabindex="0" role="region" aria-label=${label}><${Members} value=${value} depth=${0} /></div>`;
}

function Members({ value, depth }) {
  const [shown, setShown] = useState(STEP);
  const all = Object.entries(value);
  return html`<ul>${all.slice(0, shown).map(([name, inner]) => html`<${Member} key=${name} name=${name} value=${inner} depth=${depth} />`)}
    ${all.length > shown && html`<li><button class="small" onClick=${() => setShown(shown + 10 * STEP)}>${all.length - shown} more</button></li>`}</ul>`;
}

function Member({ name, value, depth }) {
  const [open, setOpen] = useState(depth < OPEN_LEVELS && !Array.isArray(value));
  if (!isOpenable(value)) return html`<li><span class="tree-name">${name}</span> <span class=${`tree-value ${kindOf(value)}`}>${typeof value === "string" ? JSON.stringify(value) : cell(value)}</span></li>`;
  return html`<li><button class="plain twist" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>${open ? "▾" : "▸"} <span class="tree-name">${name}</span> <span class="muted small">${summary(value)}</span></button>
    ${open && html`<${Members} value=${value} depth=${depth + 1} />`}</li>`;
}
