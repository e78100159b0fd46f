// Times as a histogram: a bar for each bucket, and where the quantiles fall.
import { html } from "../vendor/preact.js";
import { quantile } from "../api/metrics.js";
import { count } from "./ui.js";

const WIDTH = 900, HEIGHT = 220, BOTTOM = 40, TOP = 18;

/** @param {number} seconds */
export const fine = (seconds) => (Number.isNaN(seconds) ? "–" : seconds < 0.001 ? `${Math.round(seconds * 1e6)} µs` : seconds < 0.1 ? `${(seconds * 1000).toFixed(1)} ms` : seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`);

/** Buckets that are cumulative, as counts of their own. @param {Map<number, number>} buckets @returns {{to: number, n: number}[]} */
export function counts(buckets) {
  let before = 0;
  return [...buckets].sort((a, b) => a[0] - b[0]).map(([to, total]) => {
    const n = Math.max(0, total - before);
    before = total;
    return { to, n };
  });
}

/** @param {{buckets: Map<number, number>, name: string}} properties */
export function Histogram({ buckets, name }) {
  const all = counts(buckets);
  const total = all.reduce((sum, one) => sum + one.n, 0);
  if (!total) return html`<p class="muted">No requests.</p>`;
  const most = Math.max(...all.map((one) => one.n));
  const slot = WIDTH / all.length;
  const told = [["p50", 0.5], ["p95", 0.95], ["p99", 0.99]].map(([label, q]) => `${label} ${fine(quantile(buckets, Number(q)))}`).join(" · ");
  return html`<p><strong>${told}</strong> <span class="muted">of ${count(total)} requests</span></p>
    <svg class="plot" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`Times of ${name}: ${told}. ${all.filter((one) => one.n).map((one) => `${one.n} up to ${Number.isFinite(one.to) ? fine(one.to) : "any"}`).join(", ")}`}>
      ${all.map((one, n) => {
        const height = (HEIGHT - BOTTOM - TOP) * (one.n / most);
        return html`<g key=${one.to}><rect x=${n * slot + 3} width=${slot - 6} y=${HEIGHT - BOTTOM - height} height=${Math.max(one.n ? 1 : 0, height)} rx="2" class="funnel-bar" />
          ${one.n > 0 && html`<text x=${(n + 0.5) * slot} y=${HEIGHT - BOTTOM - height - 4} class="middle">${count(one.n)}</text>`}
          <text x=${(n + 0.5) * slot} y=${HEIGHT - BOTTOM + 16} class="middle muted">${Number.isFinite(one.to) ? fine(one.to).replace(".0 ", " ") : "more"}</text></g>`;
      })}
      <text x="0" y=${HEIGHT - 6} class="muted">up to</text>
    </svg>`;
}
