// What a throughput means in physical partitions, before it is set.
import { count } from "../parts/ui.js";

/** @param {number} throughput @param {number} limit of one partition */
export const partitionsFor = (throughput, limit) => Math.max(1, Math.ceil(throughput / limit));

/** @param {number} throughput @param {any} session */
export function meaning(throughput, session) {
  if (session.serverless) return "Serverless: every physical partition serves up to 5,000 RU/s; nothing is provisioned.";
  const limit = session.partitionThroughputLimit;
  const n = partitionsFor(throughput, limit);
  const share = throughput / n;
  return `${count(throughput)} RU/s → ${n} physical partition${n === 1 ? "" : "s"} of ${count(share)} RU/s${n === 1 ? "" : " each"}` + (n > 1 ? `. One partition key value can use ${count(share)} RU/s at most.` : ".");
}
