// The text of /metrics as numbers.

/** @param {string} text @returns {{name: string, labels: Record<string, string>, value: number}[]} */
export function parseMetrics(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const labels = Object.fromEntries([...(match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((m) => [m[1], m[2]]));
    found.push({ name: match[1], labels, value: Number(match[3]) });
  }
  return found;
}

/** The sum of a metric over all of its labels that fit. */
export const sum = (all, name, fits = (labels) => true) =>
  all.filter((one) => one.name === name && fits(one.labels)).reduce((total, one) => total + one.value, 0);

/** A quantile of a histogram's buckets, in their unit; NaN without observations. @param {Map<number, number>} buckets @param {number} q */
export function quantile(buckets, q) {
  const sorted = [...buckets].sort((a, b) => a[0] - b[0]);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (!total) return NaN;
  let before = [0, 0];
  for (const [bound, count] of sorted) {
    if (count >= q * total) {
      if (!Number.isFinite(bound)) return before[0];
      const inside = count - before[1];
      return before[0] + (bound - before[0]) * (inside ? (q * total - before[1]) / inside : 1);
    }
    before = [bound, count];
  }
  return before[0];
}
