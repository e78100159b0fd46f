// Rows as a chart: one column along the bottom, one or more numbers upwards. Bars for names, lines for numbers and times.
import { html, useMemo, useState } from "../vendor/preact.js";
import { cell, isNumber } from "../api/json.js";
import { PALETTE } from "../api/graph.js";
import { Choice, figure } from "./ui.js";

const WIDTH = 900, HEIGHT = 320, LEFT = 64, BOTTOM = 56, TOP = 12, RIGHT = 12;
const BARS_MAX = 60;
const POINTS_MAX = 5000;
const LABEL_CHARS_MAX = 14;
const ISO = /^\d{4}-\d\d-\d\d(T|$)/;

const plain = (row) => (row !== null && typeof row === "object" && !Array.isArray(row) ? row : { value: row });
const number = (value) => (isNumber(value) ? Number(typeof value === "number" ? value : JSON.stringify(value)) : NaN);

/** Columns that hold numbers in nearly every row, and those that can name a row. @param {any[]} rows */
export function shapeOf(rows) {
  const some = rows.slice(0, 200).map(plain);
  const names = [...new Set(some.flatMap((row) => Object.keys(row)))].filter((name) => !name.startsWith("_"));
  const share = (name, /** @type {(value: any) => boolean} */ fits) => some.filter((row) => fits(row[name])).length / Math.max(1, some.length);
  const numbers = names.filter((name) => share(name, isNumber) >= 0.8);
  const texts = names.filter((name) => share(name, (value) => typeof value === "string" || typeof value === "boolean") >= 0.8);
  return { numbers, texts };
}

/** Whether a chart would say something. @param {any[]} rows */
export const isNumeric = (rows) => rows.length > 1 && shapeOf(rows).numbers.length > 0;

/** Round steps for an axis. @param {number} low @param {number} high */
export function ticks(low, high, wanted = 5) {
  const rough = (high - low || 1) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((one) => one >= rough) ?? power;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.floor((high - first) / step + 1e-9) + 1 }, (_, n) => first + n * step);
}

export function ResultChart({ rows }) {
  const { numbers, texts } = useMemo(() => shapeOf(rows), [rows]);
  const [across, setAcross] = useState("");
  const [chosen, setChosen] = useState("");
  const [kind, setKind] = useState("");
  const x = across || (texts.find((name) => name !== "id") ?? texts[0] ?? (numbers.length > 1 ? numbers[0] : "(row)"));
  const ys = chosen ? [chosen] : numbers.filter((name) => name !== x).slice(0, 3);
  const data = rows.slice(0, POINTS_MAX).map((row, n) => ({ x: x === "(row)" ? n + 1 : plain(row)[x], ys: ys.map((name) => number(plain(row)[name])) }));
  const times = data.every((one) => typeof one.x === "string" && ISO.test(one.x));
  const along = data.every((one) => isNumber(one.x)) || times;
  const shown = kind || (along && data.length > 12 ? "line" : "bars");
  const points = shown === "line" && along ? data.map((one) => ({ ...one, at: times ? Date.parse(one.x) : number(one.x) })).sort((a, b) => a.at - b.at) : data.slice(0, shown === "bars" ? BARS_MAX : POINTS_MAX).map((one, n) => ({ ...one, at: n }));
  const values = points.flatMap((one) => one.ys).filter((n) => !Number.isNaN(n));
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values) || 1];
  const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1];
  const up = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const slot = (WIDTH - LEFT - RIGHT) / Math.max(1, points.length);
  const over = (at) => (shown === "bars" ? LEFT + slot * (at + 0.5) : LEFT + (WIDTH - LEFT - RIGHT) * (last === first ? 0.5 : (at - first) / (last - first)));
  const every = Math.ceil(points.length / 12);
  const name = (value) => (times ? String(value).slice(0, 16).replace("T", " ") : cell(value)).slice(0, LABEL_CHARS_MAX);
  const sentence = `${ys.join(", ")} by ${x}: ${points.length} points, from ${figure(Math.min(...values))} to ${figure(Math.max(...values))}`;
  const choose = (label, value, all, /** @type {(next: string) => void} */ set) => html`<label class="small muted">${label} <select value=${value} onChange=${(event) => set(event.target.value)}>${all.map((one) => html`<option key=${one} value=${one}>${one || "all numbers"}</option>`)}</select></label>`;
  return html`<div class="chart-results">
    <div class="toolbar">${choose("Across", x, ["(row)", ...texts, ...numbers], setAcross)} ${choose("Up", chosen, ["", ...numbers.filter((one) => one !== x)], setChosen)}<${Choice} label="Kind of chart" value=${shown} options=${[["bars", "Bars"], ["line", "Line"]]} onChange=${setKind} />
      ${(data.length > points.length || rows.length > POINTS_MAX) && html`<span class="muted small">the first ${points.length} of ${rows.length} rows</span>`}</div>
    <p class="legend">${ys.map((one, m) => html`<span key=${one}><span class="dot" style=${{ background: PALETTE[m] }}></span>${one}</span>`)}</p>
    <svg class="plot" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${sentence}>
      ${ticks(low, high).map((value) => html`<g key=${value}><line x1=${LEFT} x2=${WIDTH - RIGHT} y1=${up(value)} y2=${up(value)} class="plot-line" /><text x=${LEFT - 8} y=${up(value) + 4} class="end">${figure(value)}</text></g>`)}
      ${shown === "bars" ? points.map((one, n) => one.ys.map((value, m) => Number.isNaN(value) ? null : html`<rect key=${`${n}:${m}`} x=${over(n) - slot * 0.4 + (slot * 0.8 * m) / ys.length} width=${Math.max(1, (slot * 0.8) / ys.length - 1)} y=${Math.min(up(value), up(0))} height=${Math.max(1, Math.abs(up(value) - up(0)))} fill=${PALETTE[m]}><title>${`${cell(one.x)}: ${ys[m]} ${figure(value)}`}</title></rect>`))
        : ys.map((_, m) => html`<path key=${m} fill="none" stroke=${PALETTE[m]} stroke-width="2" stroke-dasharray=${m ? `${6 * m} 4` : undefined} d=${points.filter((one) => !Number.isNaN(one.ys[m])).map((one, n) => `${n ? "L" : "M"}${over(one.at).toFixed(1)} ${up(one.ys[m]).toFixed(1)}`).join("")} />`)}
      ${points.map((one, n) => n % every === 0 && html`<text key=${`t${n}`} x=${over(shown === "bars" ? n : one.at)} y=${HEIGHT - BOTTOM + 18} class="middle">${name(one.x)}</text>`)}
      <text x=${(LEFT + WIDTH) / 2} y=${HEIGHT - 8} class="middle muted">${x}</text>
    </svg>
  </div>`;
}
