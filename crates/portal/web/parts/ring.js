// The hash space as a ring: an arc for each physical partition, as wide as its range, as thick as its data, coloured by its load.
import { html } from "../vendor/preact.js";
import { arcs, keyText } from "../api/partitions.js";
import { bytes, figure } from "./ui.js";

const SIZE = 420, CENTRE = SIZE / 2, INNER = 88, OUTER = 186, THIN = 12, GAP = 0.004;

/** @param {number} turn 0 to 1, from the top @param {number} radius */
const point = (turn, radius) => {
  const angle = (turn - 0.25) * 2 * Math.PI;
  return [CENTRE + radius * Math.cos(angle), CENTRE + radius * Math.sin(angle)].map((n) => n.toFixed(2)).join(" ");
};

/** @param {number} from @param {number} to @param {number} inner @param {number} outer */
export function arcPath(from, to, inner, outer) {
  const [a, b] = to - from > 0.9999 ? [from, from + 0.9999] : [from + GAP / 2, to - GAP / 2];
  const large = b - a > 0.5 ? 1 : 0;
  return `M ${point(a, outer)} A ${outer} ${outer} 0 ${large} 1 ${point(b, outer)} L ${point(b, inner)} A ${inner} ${inner} 0 ${large} 0 ${point(a, inner)} Z`;
}

/** @param {{partitions: any[], version: number, chosen: string, onChoose: (range: string) => void, sentence: string}} properties */
export function Ring({ partitions, version, chosen, onChoose, sentence }) {
  const places = arcs(partitions, version);
  const most = Math.max(1, ...partitions.map((one) => one.sizeBytes));
  const items = partitions.reduce((sum, one) => sum + one.items, 0);
  return html`<svg class="ring" viewBox=${`0 0 ${SIZE} ${SIZE}`} role="group" aria-label=${`Ring of the hash space. ${sentence}`}>
    <circle cx=${CENTRE} cy=${CENTRE} r=${INNER} fill="none" stroke="var(--line)" />
    ${partitions.map((one, n) => {
      const [from, to] = places[n];
      const outer = INNER + THIN + (OUTER - INNER - THIN) * (one.sizeBytes / most);
      const load = one.throughput ? Math.min(1, one.normalized) : 0;
      const middle = (from + to) / 2;
      const fill = `color-mix(in oklab, var(--bad-fill) ${Math.round(load * 100)}%, var(--accent-fill))`;
      const [x, y] = point(middle, INNER - 14).split(" ");
      return html`<g key=${one.range}>
        <path d=${arcPath(from, to, INNER, outer)} class=${chosen === one.range ? "chosen" : ""} style=${{ fill, fillOpacity: 0.45 + 0.55 * (one.sizeBytes / most) }} tabindex="0" role="button" aria-pressed=${chosen === one.range ? "true" : "false"}
          aria-label=${`Partition ${one.range}: ${bytes(one.sizeBytes)}, ${figure(one.ruPerSecond)} RU per second, ${one.throttled} refused`}
          onClick=${() => onChoose(one.range)} onKeyDown=${(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), onChoose(one.range))} />
        ${partitions.length <= 32 && html`<text x=${x} y=${y} aria-hidden="true">${one.range}</text>`}
        ${one.throttled > 0 && html`<circle class=${one.refusedPerSecond > 0 ? "alarm" : ""} cx=${point(middle, OUTER + 12).split(" ")[0]} cy=${point(middle, OUTER + 12).split(" ")[1]} r=${Math.min(11, 4 + Math.sqrt(one.refusedPerSecond ?? 0))} fill="var(--bad-fill)"><title>${one.throttled} requests refused with 429, ${figure(one.refusedPerSecond ?? 0)} a second now</title></circle>`}
        ${(one.hot ?? []).slice(0, 3).filter((hot) => hot.share > 0.1).map((hot, m) => html`<circle key=${m} cx=${point(from + ((to - from) * (m + 1)) / 4, INNER + 7).split(" ")[0]} cy=${point(from + ((to - from) * (m + 1)) / 4, INNER + 7).split(" ")[1]} r=${2 + 5 * hot.share} class="hot-key"><title>${`${keyText(hot.partitionKey)}: ${Math.round(hot.share * 100)} % of the partition's RU`}</title></circle>`)}
      </g>`;
    })}
    <text x=${CENTRE} y=${CENTRE - 10} aria-hidden="true">${partitions.length} partition${partitions.length === 1 ? "" : "s"}</text>
    <text class="muted" x=${CENTRE} y=${CENTRE + 10} aria-hidden="true">${figure(items)} items</text>
  </svg>`;
}
