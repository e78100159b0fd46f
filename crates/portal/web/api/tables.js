// The Table API on the shared port, under the name of the account: entities with their types, $filter, pages.
import { note, pause, sign, throttled } from "./client.js";
import { parse, write } from "./json.js";
import { session } from "../state.js";

const RETRIES_MAX = 9;

export class TableError extends Error {
  /** @param {number} status @param {any} body @param {Headers} headers */
  constructor(status, body, headers) {
    const error = body?.["odata.error"] ?? {};
    super(String(error.message?.value ?? `The server answered ${status}.`).split(/\r?\n(?:RequestId|Time):/)[0].trim());
    this.status = status;
    this.code = error.code ?? "";
    this.activity = headers.get("x-ms-request-id") ?? "";
  }
}

/** @param {string} method @param {string} path below the account, encoded @param {{query?: string, headers?: Record<string, string>, body?: string, signal?: AbortSignal}} [options] */
export async function sendTable(method, path, options = {}) {
  const account = session.value.account;
  const url = `/${account}/${path}${options.query ? `?${options.query}` : ""}`;
  for (let attempt = 0; ; attempt += 1) {
    const date = new Date().toUTCString();
    const headers = /** @type {Record<string, string>} */ ({ accept: "application/json;odata=fullmetadata", dataserviceversion: "3.0", "x-ms-version": "2019-02-02", "x-ms-date": date, ...options.headers });
    if (options.body !== undefined) headers["content-type"] = "application/json";
    headers.authorization = `SharedKeyLite ${account}:${await sign(`${date}\n/${account}/${account}/${path}`)}`;
    const began = performance.now();
    const response = await fetch(url, { method, headers, body: options.body, signal: options.signal, credentials: "omit", cache: "no-store", redirect: "error" });
    const text = await response.text();
    const charge = Number(response.headers.get("x-ms-request-charge") ?? 0);
    note({ method, url, status: response.status, charge, ms: performance.now() - began, headers, body: options.body });
    if (response.status === 429 && attempt < RETRIES_MAX) {
      throttled.value += 1;
      try {
        await pause(Number(response.headers.get("x-ms-retry-after-ms") ?? 100), options.signal);
      } finally {
        throttled.value -= 1;
      }
      continue;
    }
    let value = null;
    try {
      value = text ? parse(text) : null;
    } catch {
      value = text;
    }
    if (!response.ok) throw new TableError(response.status, value, response.headers);
    return { value, charge, ms: performance.now() - began, headers: response.headers };
  }
}

/** One page of entities. @param {string} table @param {{filter?: string, top?: number, next?: string, select?: string, signal?: AbortSignal}} asked */
export async function entities(table, { filter = "", top = 200, next = "", signal } = {}) {
  const query = new URLSearchParams();
  if (filter.trim()) query.set("$filter", filter.trim());
  query.set("$top", String(top));
  const text = query.toString().replaceAll("+", "%20") + (next ? `&${next}` : "");
  const answer = await sendTable("GET", `${encodeURIComponent(table)}()`, { query: text, signal });
  const [pk, rk] = ["partitionkey", "rowkey"].map((name) => answer.headers.get(`x-ms-continuation-next${name}`));
  const after = pk === null ? "" : `NextPartitionKey=${encodeURIComponent(pk)}${rk === null ? "" : `&NextRowKey=${encodeURIComponent(rk)}`}`;
  return { rows: answer.value.value.map(entityOf), next: after, charge: answer.charge, ms: answer.ms };
}

/** The types that a property may have. */
export const TYPES = ["Edm.String", "Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.Boolean", "Edm.DateTime", "Edm.Guid", "Edm.Binary"];

/** The type that JSON itself tells. @param {unknown} value */
const typeOf = (value) => (typeof value === "string" ? "Edm.String" : typeof value === "boolean" ? "Edm.Boolean" : typeof value === "number" && Number.isInteger(value) ? "Edm.Int32" : "Edm.Double");

/** An entity as the page wants it: keys, etag, and properties as [name, type, value]. @param {any} raw */
export function entityOf(raw) {
  const properties = Object.keys(raw).filter((name) => !name.startsWith("odata.") && !name.endsWith("@odata.type") && !["PartitionKey", "RowKey", "Timestamp"].includes(name))
    .map((name) => ({ name, type: raw[`${name}@odata.type`] ?? typeOf(raw[name]), value: raw[name] }));
  return { PartitionKey: raw.PartitionKey, RowKey: raw.RowKey, Timestamp: raw.Timestamp, etag: raw["odata.etag"], properties };
}

/** The body of a write. Values are texts as typed. @param {string} pk @param {string} rk @param {{name: string, type: string, value: any}[]} properties */
export function bodyOf(pk, rk, properties) {
  const body = /** @type {Record<string, unknown>} */ ({ PartitionKey: pk, RowKey: rk });
  for (const { name, type, value } of properties) {
    const text = typeof value === "string" ? value : write(value, 0);
    if (type === "Edm.Boolean") body[name] = text === "true";
    else if (type === "Edm.Int32" || type === "Edm.Double") {
      if (/^(NaN|-?Infinity)$/.test(text)) body[`${name}@odata.type`] = "Edm.Double", (body[name] = text);
      else if (text.trim() === "" || Number.isNaN(Number(text))) throw new Error(`${name}: "${text}" is no number.`);
      else {
        body[name] = parse(text);
        if (type === "Edm.Double") body[`${name}@odata.type`] = type;
      }
    } else {
      body[name] = text;
      if (type !== "Edm.String") body[`${name}@odata.type`] = type;
    }
  }
  return write(body, 0);
}

/** The address of an entity. @param {string} table @param {{PartitionKey: string, RowKey: string}} entity */
export function entityPath(table, { PartitionKey, RowKey }) {
  const quoted = (key) => encodeURIComponent(key.replaceAll("'", "''")).replaceAll("'", "%27").replaceAll("(", "%28").replaceAll(")", "%29");
  return `${encodeURIComponent(table)}(PartitionKey='${quoted(PartitionKey)}',RowKey='${quoted(RowKey)}')`;
}
