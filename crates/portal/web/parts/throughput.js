// How much throughput, and of which kind: a slider, a field, and what it means.
import { html } from "../vendor/preact.js";
import { session } from "../state.js";
import { meaning } from "../api/shape.js";
import { Choice, Field } from "./ui.js";

const SLIDER = [400, 1000, 2000, 4000, 6000, 10_000, 20_000, 30_000, 40_000, 60_000, 80_000, 100_000];

/** @param {{kind: string, value: number, kinds: [string, string][], onChange: (next: {kind: string, value: number}) => void, minimum?: number}} properties */
export function Throughput({ kind, value, kinds, onChange, minimum = 400 }) {
  const least = kind === "autoscale" ? Math.max(1000, minimum) : minimum;
  const step = kind === "autoscale" ? 1000 : 100;
  const wrong = kind === "none" ? "" : !Number.isInteger(value) || value < least ? `At least ${least.toLocaleString("en-US")} RU/s.` : value % step ? `In steps of ${step.toLocaleString("en-US")}.` : "";
  const at = SLIDER.findLastIndex((one) => one <= value);
  return html`<${Choice} label="Kind of throughput" value=${kind} options=${kinds} onChange=${(next) => onChange({ kind: next, value: next === "autoscale" ? Math.max(1000, Math.ceil(value / 1000) * 1000) : value })} />
    ${kind !== "none" && html`<${Field} label=${kind === "autoscale" ? "Highest RU/s" : "RU/s"} error=${wrong}>${(id) => html`<div class="row"><input id=${id} type="number" min=${least} step=${step} value=${value} onInput=${(event) => onChange({ kind, value: Number(event.target.value) })} />
        <input class="grow" type="range" aria-label="RU/s, by slider" min="0" max=${SLIDER.length - 1} value=${Math.max(0, at)} onInput=${(event) => onChange({ kind, value: Math.max(least, SLIDER[event.target.value]) })} /></div>`}</${Field}>
      ${!wrong && html`<p class="means" role="status">${meaning(value, session.value)}${kind === "autoscale" ? ` It scales between ${(value / 10).toLocaleString("en-US")} and ${value.toLocaleString("en-US")} RU/s.` : ""}</p>`}`}`;
}

/** The headers of a request that sets it. @param {string} kind @param {number} value @returns {Record<string, string>} */
export const throughputHeaders = (kind, value) =>
  kind === "manual" ? { "x-ms-offer-throughput": String(value) } : kind === "autoscale" ? { "x-ms-cosmos-offer-autopilot-settings": JSON.stringify({ maxThroughput: value }) } : {};
