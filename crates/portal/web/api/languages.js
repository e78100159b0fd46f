// The languages in which a container can be asked, by what it is. One more API is one more line here: what it is called, which containers
// it is for, how its text is written, and what a page of its answer is.
import { query, send } from "./client.js";
import { traverse } from "./gremlin.js";
import { entities } from "./tables.js";

const PAGE_ROWS = 100;

/**
 * @typedef {{rows: any[], charge: number, ms: number, next: string, plan?: any}} Page
 * @typedef {{id: string, title: string, fits: (kind: string) => boolean, mode: string, first: string, hint: string, parameters: RegExp | null,
 *   check?: (text: string) => Promise<{message: string, start: number, end: number}[]>,
 *   page: (asked: {db: string, coll: string, text: string, next: string, parameters: {name: string, value: unknown}[], signal: AbortSignal, onSome: (rows: any[]) => void}) => Promise<Page>}} Language
 * @type {Language[]}
 */
export const LANGUAGES = [
  {
    id: "filter", title: "$filter", fits: (kind) => kind === "table", mode: "filter", first: "", parameters: null,
    hint: "PartitionKey eq 'rome' and Age ge 18   (empty: all entities)",
    async page({ coll, text, next, signal }) {
      const found = await entities(coll, { filter: text, top: PAGE_ROWS, next, signal });
      return { ...found, rows: found.rows.map((one) => ({ PartitionKey: one.PartitionKey, RowKey: one.RowKey, ...Object.fromEntries(one.properties.map(({ name, value }) => [name, value])), Timestamp: one.Timestamp })) };
    },
  },
  {
    id: "sql", title: "SQL", fits: () => true, mode: "sql", first: "SELECT * FROM c", hint: "", parameters: /@\w+/g,
    check: async (text) => (await send("POST", ["_orrery", "check"], { quiet: true, body: { query: text } })).value.errors,
    async page({ db, coll, text, next, parameters, signal }) {
      const wishes = { "x-orrery-explain": "json", "x-ms-documentdb-populatequerymetrics": "true", "x-ms-cosmos-populateindexmetrics-v2": "true" };
      const answer = await query(db, coll, text, { parameters, continuation: next, count: PAGE_ROWS, signal, headers: wishes });
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

/** @param {string} kind */
export const languagesFor = (kind) => LANGUAGES.filter((one) => one.fits(kind));
