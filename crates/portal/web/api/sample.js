// Orders under a good key and under a bad one: the lesson of partition keys, to look at.
import { send, ApiError } from "./client.js";

const ORDERS = 800;
const PARALLEL = 16;
/** Enough for four physical partitions as the service has them. */
const THROUGHPUT = 40_000;
const COUNTRIES = ["Italy", "Italy", "Italy", "Italy", "Italy", "Italy", "France", "France", "Spain", "Malta"];
const WORDS = ["lamp", "chair", "desk", "shelf", "clock", "globe", "telescope", "atlas"];

/** Makes the sample. @param {(text: string) => void} tell */
export async function loadSample(tell) {
  tell("Making containers");
  await unless409(send("POST", ["dbs"], { body: { id: "sample" } }));
  const kinds = [["orders-by-customer", "/customer"], ["orders-by-country", "/country"]];
  for (const [id, path] of kinds) {
    await unless409(send("POST", ["dbs", "sample", "colls"], { headers: { "x-ms-offer-throughput": String(THROUGHPUT) }, body: { id, partitionKey: { paths: [path], kind: "Hash", version: 2 } } }));
  }
  const orders = Array.from({ length: ORDERS }, (_, n) => ({
    id: `order-${String(n).padStart(4, "0")}`,
    customer: `customer-${(n * 37) % 160}`,
    country: COUNTRIES[(n * 7) % COUNTRIES.length],
    product: WORDS[(n * 5) % WORDS.length],
    quantity: 1 + ((n * 3) % 7),
    total: Math.round((5 + ((n * 7919) % 20_000) / 100) * 100) / 100,
    placed: new Date(Date.UTC(2026, 0, 1) + n * 5_400_000).toISOString(),
    note: "An order of the sample data. ".repeat(8),
  }));
  let done = 0;
  const work = kinds.flatMap(([id, path]) => orders.map((order) => ({ id, order, key: order[path.slice(1)] })));
  let next = 0;
  const lane = async () => {
    while (next < work.length) {
      const { id, order, key } = work[next++];
      await send("POST", ["dbs", "sample", "colls", id, "docs"], { quiet: true, headers: { "x-ms-documentdb-is-upsert": "true", "x-ms-documentdb-partitionkey": JSON.stringify([key]), prefer: "return=minimal" }, body: order });
      if ((done += 1) % 50 === 0) tell(`${done} of ${work.length} orders`);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, lane));
}

/** @param {Promise<unknown>} made */
async function unless409(made) {
  try {
    await made;
  } catch (problem) {
    if (!(problem instanceof ApiError) || problem.status !== 409) throw problem;
  }
}
