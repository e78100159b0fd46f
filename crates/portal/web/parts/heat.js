// Time against the hash space: a row for each second, a stretch for each partition, darker where more was spent. A hot partition is a
// dark column; a split is where one column becomes two.
import { html } from "../vendor/preact.js";
import { arcs } from "../api/partitions.js";
import { figure } from "./ui.js";

const WIDTH = 720, ROW = 4, ROWS_MIN = 30, ROWS_MAX = 90;

/** @param {{history: {at: number, partitions: any[]}[], version: number}} properties */
export function Heat({ history, version }) {
  const shown = history.slice(-ROWS_MAX).reverse();
  const most = Math.max(1, ...history.flatMap(({ partitions }) => partitions.map((one) => one.ruPerSecond)));
  const now = history.at(-1)?.partitions ?? [];
  const hottest = now.reduce((a, b) => (b.ruPerSecond > (a?.ruPerSecond ?? -1) ? b : a), null);
  const seconds = history.length > 1 ? Math.round((history.at(-1).at - shown.at(-1).at) / 1000) : 0;
  return html`<svg class="plot heat" viewBox=${`0 0 ${WIDTH} ${Math.max(ROWS_MIN, shown.length) * ROW + 24}`} role="img" aria-label=${`Heat of the hash space over the last ${seconds} seconds. Hottest now: partition ${hottest?.range}, ${figure(hottest?.ruPerSecond ?? 0)} RU per second.`}>
    ${now.map((one, n) => {
      const [from, to] = arcs(now, version)[n];
      return html`<text key=${one.range} x=${((from + to) / 2) * WIDTH} y="14" class="middle">${now.length <= 24 ? one.range : ""}</text>`;
    })}
    ${shown.map(({ at, partitions }, row) => {
      const places = arcs(partitions, version);
      return partitions.map((one, n) => html`<rect key=${`${at}:${one.range}`} x=${places[n][0] * WIDTH + 0.5} width=${Math.max(0.5, (places[n][1] - places[n][0]) * WIDTH - 1)} y=${22 + row * ROW} height=${ROW} style=${{ fill: one.throughput && one.normalized > 0.99 ? "var(--bad-fill)" : "var(--accent-fill)", fillOpacity: 0.04 + 0.96 * Math.sqrt(one.ruPerSecond / most) }}><title>${`Partition ${one.range}, ${new Date(at).toLocaleTimeString()}: ${figure(one.ruPerSecond)} RU/s`}</title></rect>`);
    })}
  </svg><p class="legend"><span>now on top, ${seconds} s ago below</span><span><span class="swatch calm"></span>darker: more RU/s (most: ${figure(most)})</span><span><span class="swatch busy"></span>red: its whole share</span></p>`;
}
