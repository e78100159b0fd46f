// What the advisor is asked, and what is done with its answer: a copy of a container under another key.
import { at, own, write } from "./json.js";
import { kept } from "./saved.js";
import { keyHeader, query, requests, send } from "./client.js";

const PAGE = 1000;
const PARALLEL = 16;
/** As `orrery import --partition-key '/partitionKey=calculated(…,20)'` makes it. */
const SUFFIXES = 20;
const KEY = "partitionKey";

/** What a query of unknown charge is taken for: about what one costs that finds little. */
const QUERY_RU = 2.9;

/** The queries that were run in this tab, as lines of a recording. @param {string} db @param {string} coll */
export function linesOfTab(db, coll) {
  const url = `/dbs/${encodeURIComponent(db)}/colls/${encodeURIComponent(coll)}/docs`;
  const charges = new Map();
  for (const one of requests.value) {
    if (one.method !== "POST" || one.url !== url || !one.headers["x-ms-documentdb-isquery"] || !one.body) continue;
    try {
      charges.set(JSON.parse(one.body).query, one.charge);
    } catch {
      // Cut, because it was long.
    }
  }
  return kept(`orrery-query:${db}/${coll}:history`, []).filter((one) => (one.language ?? "sql") === "sql")
    .map((one) => one.text ?? one).map((text) => ({ operation: "query_items", body: { query: text }, charge: charges.get(text) || QUERY_RU, partitionKey: null }));
}

/** The lines of a recording that are about a container. @param {string} text @param {string} db @param {string} coll */
export function linesOfRecording(text, db, coll) {
  return text.split("\n").flatMap((line) => {
    try {
      const one = JSON.parse(line);
      return one.database === db && one.container === coll && one.status < 400 ? [one] : [];
    } catch {
      return [];
    }
  });
}

/** @param {Uint8Array} bytes FNV-1a, 32 bits */
const hash = (bytes) => bytes.reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193) >>> 0, 0x811c9dc5);
const text = (value) => (value === undefined ? "" : typeof value === "string" ? value : write(value, 0));

/** The paths of the key that a candidate makes. @param {{shape: string, paths: string[]}} candidate */
export const pathsOf = ({ shape, paths }) => (shape === "suffix" ? [`/${KEY}`] : paths);

/** An item as it is under that key. @param {any} item @param {{shape: string, paths: string[]}} candidate */
export function underKey(item, { shape, paths: [first, by] }) {
  return shape === "suffix" ? { ...item, [KEY]: `${text(at(item, first))}-${hash(new TextEncoder().encode(text(at(item, by)))) % SUFFIXES}` } : item;
}

/**
 * Copies a container under another key.
 * @param {{db: string, from: any, to: string, candidate: any, throughput: number, signal: AbortSignal, tell: (done: number, charge: number, failed: any[]) => void}} work
 */
export async function copyContainer({ db, from, to, candidate, throughput, signal, tell }) {
  const paths = pathsOf(candidate);
  const { indexingPolicy, defaultTtl, uniqueKeyPolicy, computedProperties, vectorEmbeddingPolicy, fullTextPolicy } = from;
  const rest = Object.fromEntries(Object.entries({ indexingPolicy, defaultTtl, uniqueKeyPolicy, computedProperties, vectorEmbeddingPolicy, fullTextPolicy }).filter(([, value]) => value !== undefined));
  await send("POST", ["dbs", db, "colls"], { signal, headers: throughput ? { "x-ms-offer-throughput": String(throughput) } : {}, body: { id: to, ...rest, partitionKey: { paths, kind: paths.length > 1 ? "MultiHash" : "Hash", version: 2 } } });
  let done = 0, charge = 0;
  const failed = /** @type {any[]} */ ([]);
  for (let next = ""; ; ) {
    const page = await query(db, from.id, "SELECT * FROM c", { continuation: next, count: PAGE, signal, quiet: true });
    charge += page.charge;
    const items = page.value.Documents;
    let taken = 0;
    await Promise.all(Array.from({ length: PARALLEL }, async () => {
      while (taken < items.length && !signal.aborted) {
        const item = underKey(own(items[taken++]), candidate);
        try {
          const answer = await send("POST", ["dbs", db, "colls", to, "docs"], { quiet: true, signal, headers: { "x-ms-documentdb-is-upsert": "true", "x-ms-documentdb-partitionkey": keyHeader(item, paths), prefer: "return=minimal" }, body: write(item, 0) });
          done += 1;
          charge += answer.charge;
        } catch (problem) {
          if (!signal.aborted) failed.push({ item, problem });
        }
      }
    }));
    tell(done, charge, failed);
    next = page.headers.get("x-ms-continuation") ?? "";
    if (!next || signal.aborted) return;
  }
}
