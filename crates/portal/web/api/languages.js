// The languages in which a container can be asked, by what it is. One more API is one more line here: what it is called, which containers
// it is for, how its text is written, and what a page of its answer is.
import { query, send } from "./client.js";
import { traverse } from "./gremlin.js";
import { page as documents } from "./mongo.js";
import { commandOf } from "./mongo-shell.js";
import { entities } from "./tables.js";

const PAGE_ROWS = 100;

/**
 * @typedef {{rows: any[], charge: number, ms: number, next: string, plan?: any}} Page
 * @typedef {{id: string, title: string, fits: (kind: string) => boolean, mode: string, first: string, hint: string, parameters: RegExp | null,
 *   check?: (text: string) => Promise<{message: string, start: number, end: number}[]>,
 *   page: (asked: {db: string, coll: string, text: string, next: string, count?: number, parameters: {name: string, value: unknown}[], signal: AbortSignal, onSome: (rows: any[]) => void}) => Promise<Page>}} Language
 * @type {Language[]}
 */
export const LANGUAGES = [
  {
    id: "filter", title: "$filter", fits: (kind) => kind === "table", mode: "filter", first: "", parameters: null,
    hint: "PartitionKey eq 'rome' and Age ge 18   (empty: all entities)",
    async page({ coll, text, next, count = PAGE_ROWS, signal }) {
      const found = await entities(coll, { filter: text, top: count, next, signal });
      return { ...found, rows: found.rows.map((one) => ({ PartitionKey: one.PartitionKey, RowKey: one.RowKey, ...Object.fromEntries(one.properties.map(({ name, value }) => [name, value])), Timestamp: one.Timestamp })) };
    },
  },
  {
    id: "mongo", title: "MongoDB", fits: (kind) => kind === "collection" || kind === "container", mode: "mongo", first: "db.COLLECTION.find({})", parameters: null,
    hint: "db.orders.find({ total: { $gt: 5 } }).sort({ total: -1 })",
    // What is wrong with the form of a command is known before it is sent.
    async check(text) {
      try {
        commandOf(text, "collection");
        return [];
      } catch (problem) {
        return [{ message: problem.message, start: problem.at ?? 0, end: (problem.at ?? 0) + 1 }];
      }
    },
    page: documents,
  },
  {
    id: "sql", title: "SQL", fits: () => true, mode: "sql", first: "SELECT * FROM c", hint: "", parameters: /@\w+/g,
    check: async (text) => (await send("POST", ["_orrery", "check"], { quiet: true, body: { query: text } })).value.errors,
    async page({ db, coll, text, next, count = PAGE_ROWS, parameters, signal }) {
      const wishes = { "x-orrery-explain": "json", "x-ms-documentdb-populatequerymetrics": "true", "x-ms-cosmos-populateindexmetrics-v2": "true" };
      const answer = await query(db, coll, text, { parameters, continuation: next, count, signal, headers: wishes });
      return {
        rows: answer.value.Documents, charge: answer.charge, ms: answer.ms, next: answer.headers.get("x-ms-continuation") ?? "",
        plan: { explain: answer.headers.get("x-orrery-explain"), metrics: answer.headers.get("x-ms-documentdb-query-metrics"), indexes: answer.headers.get("x-ms-cosmos-index-utilization") },
      };
    },
  },
  {
    id: "gremlin", title: "Gremlin", fits: (kind) => kind === "container", mode: "gremlin", first: "g.V().limit(25)", hint: "g.V().hasLabel('person').out('knows')", parameters: null,
    async page({ db, coll, text, signal, onSome }) {
      const answer = await traverse(db, coll, text, { signal, onSome });
      return { rows: answer.rows, charge: answer.charge, ms: answer.ms, next: "" };
    },
  },
];

/** The languages of a container, its own first. @param {string} kind @param {string} coll */
export const languagesFor = (kind, coll) => {
  const name = /^[A-Za-z_][\w$]*$/.test(coll) ? coll : `getCollection(${JSON.stringify(coll)})`;
  const all = LANGUAGES.filter((one) => one.fits(kind)).map((one) => ({ ...one, first: one.first.replace("COLLECTION", name) }));
  // Any container can be asked as a collection, but not first.
  return kind === "container" ? all.sort((a, b) => Number(a.id === "mongo") - Number(b.id === "mongo")) : all;
};
