// Figures of physical partitions as sentences and angles.
import { bytes, count } from "../parts/ui.js";

/** The end of the hash space of keys of version 2, whose first two bits are zero. */
const VERSION_2_END = 0.25;

/** A bound of a range as a part of all keys, 0 to 1. @param {string} bound */
const fraction = (bound) => (bound ? parseInt(bound.slice(0, 8).padEnd(8, "0"), 16) / 2 ** 32 : 0);

/** Where each partition lies on the circle, 0 to 1. @param {any[]} partitions @param {number} version of the key */
export function arcs(partitions, version) {
  if (version !== 2) return partitions.map((_, n) => [n / partitions.length, (n + 1) / partitions.length]);
  const end = Math.max(VERSION_2_END, ...partitions.map((one) => fraction(one.min)));
  return partitions.map((one) => [fraction(one.min) / end, Math.min(1, one.max === "FF" ? 1 : fraction(one.max) / end)]);
}

/** A key as people read it. @param {any[]} key */
export const keyText = (key) => key.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" / ") || "(none)";

/** Whether the data are spread well, in a sentence. @param {any[]} partitions */
export function verdict(partitions) {
  const total = partitions.reduce((sum, one) => sum + one.sizeBytes, 0);
  if (partitions.length < 2) return { good: true, text: "One physical partition holds everything. There will be more when it grows beyond its size, or when more throughput is set than one can serve." };
  if (total === 0) return { good: true, text: "No data yet." };
  const largest = partitions.reduce((a, b) => (b.sizeBytes > a.sizeBytes ? b : a));
  const share = largest.sizeBytes / total;
  const even = 1 / partitions.length;
  const percent = Math.round(share * 100);
  if (share <= even * 1.6) return { good: true, text: `Even: the largest partition holds ${percent} % of the data, where ${Math.round(even * 100)} % would be a perfect share.` };
  const key = largest.largest?.[0];
  const why = key && key.sizeBytes / largest.sizeBytes > 0.5 ? ` One key, ${keyText(key.partitionKey)}, holds ${bytes(key.sizeBytes)} of it. A key is never split, so a partition key with more values is what helps.` : "";
  const empty = partitions.filter((one) => one.items === 0).length;
  return { good: false, text: `Uneven: partition ${largest.range} holds ${percent} % of the data${empty ? `, and ${count(empty)} of ${partitions.length} hold nothing` : ""}.${why}` };
}

/** Whether load is spread, in a sentence; empty where there is none. @param {any[]} partitions @param {boolean} throttling */
export function loadVerdict(partitions) {
  const hot = partitions.filter((one) => one.throughput > 0 && one.normalized > 0.8);
  if (!hot.length) return "";
  const one = hot.reduce((a, b) => (b.normalized > a.normalized ? b : a));
  const key = one.hot?.[0];
  return `Partition ${one.range} uses ${Math.round(one.normalized * 100)} % of its share${key && key.share > 0.5 ? `, most of it for the key ${keyText(key.partitionKey)}. Splitting will not help: a key never splits.` : "."}`;
}
