// One client of the public API. Every request of the portal goes through `send`, which signs it, waits out 429s as SDKs do,
// and writes it down for the drawer of requests.
import { signal } from "../vendor/preact.js";
import { authorization, signature } from "./sign.js";
import { parse, ascii, at } from "./json.js";

/** The first that knows hierarchical keys. */
const VERSION = "2020-07-15";
/** Times that a throttled request is sent again. */
const RETRIES_MAX = 9;
const REQUESTS_KEPT_MAX = 200;
const BODY_KEPT_CHARS_MAX = 4000;

/** @type {CryptoKey | null} */
let key = null;
/** @param {CryptoKey | null} given */
export const useKey = (given) => (key = given);
/** Signs what another API wants signed. @param {string} text */
export const sign = (text) => (key ? signature(key, text) : Promise.reject(new Error("Nobody is signed in.")));

/** The last requests, newest first. */
export const requests = signal(/** @type {any[]} */ ([]));
/** How many requests wait because of 429. */
export const throttled = signal(0);
/** Whether the last request found no server. */
export const unreachable = signal(false);

/** Some messages are JSON with a list of errors; people want the sentences. @param {string} message */
function sentence(message) {
  try {
    const inner = JSON.parse(message.replace(/^[^{]*/, ""));
    const errors = inner.errors ?? inner.Errors ?? [];
    return errors.map((one) => (typeof one === "string" ? one : one.message)).join("\n") || message;
  } catch {
    return message;
  }
}

export class ApiError extends Error {
  /** @param {number} status @param {any} body @param {Headers | null} headers */
  constructor(status, body, headers) {
    const lines = String(body?.message ?? body ?? "").split(/\r?\n/).filter((line) => !/^(ActivityId|RequestStartTime|Request URI|.*documentdb-|.*Microsoft\.Azure)/i.test(line.trim()));
    const raw = lines.join("\n").replace(/^Message:\s*/, "").trim();
    super(sentence(raw) || `The server answered ${status}.`);
    this.raw = raw;
    this.body = body;
    this.status = status;
    this.code = body?.code ?? "";
    this.substatus = Number(headers?.get("x-ms-substatus") ?? 0);
    this.activity = headers?.get("x-ms-activity-id") ?? "";
    this.charge = Number(headers?.get("x-ms-request-charge") ?? 0);
    /** What a script had said before it failed. */
    this.log = decodeURIComponent(headers?.get("x-ms-documentdb-script-log-results") ?? "");
  }
}

/** @param {number} ms @param {AbortSignal} [signal] */
export const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });

/**
 * Sends a request. `path` has decoded names; the link that is signed is made from it.
 * @param {string} method @param {string[]} path
 * @param {{type?: string, link?: string, query?: string, headers?: Record<string, string>, body?: any, signal?: AbortSignal, quiet?: boolean, retry?: boolean}} [options]
 */
export async function send(method, path, options = {}) {
  const feed = path.length % 2 === 1 && path[0] !== "_orrery";
  const type = options.type ?? (path[0] === "_orrery" ? "_orrery" : path.length === 0 ? "" : feed ? path.at(-1) : path.at(-2)) ?? "";
  const link = options.link ?? (feed ? path.slice(0, -1) : path).join("/");
  // Only items hold numbers whose digits are somebody's.
  const read = path[4] === "docs" ? parse : JSON.parse;
  const url = `/${path.map(encodeURIComponent).join("/")}${options.query ? `?${options.query}` : ""}`;
  const body = options.body === undefined || typeof options.body === "string" ? options.body : JSON.stringify(options.body);
  for (let attempt = 0; ; attempt += 1) {
    const date = new Date().toUTCString();
    const headers = { accept: "application/json", "x-ms-version": VERSION, "x-ms-date": date, ...options.headers };
    if (body !== undefined) headers["content-type"] ??= "application/json";
    if (key) headers.authorization = await authorization(key, method, type, link, date);
    const began = performance.now();
    let response, text;
    try {
      response = await fetch(url, { method, headers, body, signal: options.signal, credentials: "omit", cache: "no-store", redirect: "error" });
      text = await response.text();
      unreachable.value = false;
    } catch (error) {
      if (options.signal?.aborted) throw error;
      unreachable.value = true;
      throw Object.assign(new Error("The server does not answer. Is it still running?"), { status: 0 });
    }
    const ms = performance.now() - began;
    const charge = Number(response.headers.get("x-ms-request-charge") ?? 0);
    if (!options.quiet || response.status >= 400) note({ method, url, status: response.status, charge, ms, headers, body });
    if (response.status === 429 && options.retry !== false && attempt < RETRIES_MAX) {
      throttled.value += 1;
      try {
        await pause(Number(response.headers.get("x-ms-retry-after-ms") ?? 100), options.signal);
      } finally {
        throttled.value -= 1;
      }
      continue;
    }
    if (!response.ok && response.status !== 304) throw new ApiError(response.status, parsed(text, JSON.parse), response.headers);
    return { status: response.status, headers: response.headers, text, charge, ms, value: text ? parsed(text, read) : null };
  }
}

/** @param {string} text @param {(text: string) => any} read */
function parsed(text, read) {
  try {
    return read(text);
  } catch {
    return text;
  }
}

/** Writes a request down for the drawer. @param {any} entry */
export function note(entry) {
  const { authorization: _, ...headers } = entry.headers;
  const body = entry.body?.slice(0, BODY_KEPT_CHARS_MAX);
  requests.value = [{ ...entry, headers, body, at: new Date(), id: crypto.randomUUID() }, ...requests.value].slice(0, REQUESTS_KEPT_MAX);
}

/** All pages of a list of resources. @param {string[]} path @param {string} name @param {object} [options] */
export async function list(path, name, options = {}) {
  const all = [];
  for (let next = ""; ; ) {
    const headers = { "x-ms-max-item-count": "100", ...(next && { "x-ms-continuation": next }) };
    const answer = await send("GET", path, { ...options, headers });
    all.push(...(answer.value[name] ?? []));
    next = answer.headers.get("x-ms-continuation") ?? "";
    if (!next) return all;
  }
}

/** One page of a query over the items of a container. */
export function query(db, coll, text, /** @type {any} */ { parameters = [], continuation = "", count = 100, signal = undefined, headers = {}, quiet = false } = {}) {
  return send("POST", ["dbs", db, "colls", coll, "docs"], {
    signal,
    quiet,
    headers: {
      "content-type": "application/query+json",
      "x-ms-documentdb-isquery": "true",
      "x-ms-documentdb-query-enablecrosspartition": "true",
      "x-orrery-merge": "true",
      "x-ms-max-item-count": String(count),
      ...(continuation && { "x-ms-continuation": continuation }),
      ...headers,
    },
    body: { query: text, parameters },
  });
}

/** The partition key of an item as the header wants it. A path that is absent is an empty object. @param {any} item @param {string[]} paths */
export function keyHeader(item, paths) {
  return ascii(paths.map((path) => {
    const value = at(item, path);
    return value === undefined ? {} : value;
  }));
}

/** @param {any} definition of a container */
export const keyPaths = (definition) => definition?.partitionKey?.paths ?? [];
