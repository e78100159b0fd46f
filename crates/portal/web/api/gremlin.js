// Gremlin over a WebSocket to this very server. The password of the connection is a signature, because the key itself cannot be read.
import { note, sign } from "./client.js";

const CONNECT_MS_MAX = 10_000;
const UNAUTHORIZED = 401, CHALLENGE = 407, PARTIAL = 206;

export class GremlinError extends Error {
  /** @param {any} status */
  constructor(status) {
    const attributes = status.attributes ?? {};
    super(String(status.message ?? "").replace(/^\s*ActivityId.*$/gm, "").trim() || `The server answered ${status.code}.`);
    this.status = Number(attributes["x-ms-status-code"] ?? status.code);
    this.substatus = Number(attributes["x-ms-substatus-code"] ?? 0);
    this.activity = attributes["x-ms-activity-id"] ?? "";
    this.charge = Number(attributes["x-ms-total-request-charge"] ?? 0);
  }
}

/** Connections that are open, by graph. @type {Map<string, Promise<Connection>>} */
const open = new Map();

/** @param {string} text as UTF-8 */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

class Connection {
  /** @param {WebSocket} socket @param {string} db @param {string} coll */
  constructor(socket, db, coll) {
    this.socket = socket;
    this.graph = [db, coll];
    /** The entry of `open` that this is. */
    this.opened = open.get(JSON.stringify(this.graph));
    /** @type {Map<string, {take: (data: any[], status: any) => void, end: (status: any) => void, fail: (error: any) => void}>} */
    this.waiting = new Map();
    socket.onmessage = (event) => this.take(JSON.parse(typeof event.data === "string" ? event.data : new TextDecoder().decode(event.data)));
    socket.onclose = () => this.lost();
    socket.onerror = () => this.lost();
  }

  lost() {
    for (const { fail } of this.waiting.values()) fail(Object.assign(new Error("The connection to the server was lost."), { status: 0 }));
    this.waiting.clear();
    const name = JSON.stringify(this.graph);
    if (open.get(name) === this.opened) open.delete(name);
  }

  /** @param {any} message */
  take({ requestId, status, result }) {
    if (status.code === CHALLENGE) return void this.prove(requestId);
    const one = this.waiting.get(requestId);
    if (!one) return;
    if (result?.data) one.take(result.data, status);
    if (status.code === PARTIAL) return;
    this.waiting.delete(requestId);
    if (status.code === 200 || status.code === 204) one.end(status);
    else one.fail(new GremlinError(status));
    if (status.code === UNAUTHORIZED) this.socket.close();
  }

  /** @param {string} requestId */
  async prove(requestId) {
    const [db, coll] = this.graph;
    const date = new Date().toUTCString();
    const signed = await sign(`gremlin\ncolls\ndbs/${db}/colls/${coll}\n${date.toLowerCase()}\n\n`);
    const password = `type=master&ver=1.0&date=${date}&sig=${signed}`;
    this.post(requestId, "authentication", { saslMechanism: "PLAIN", sasl: base64(`\0/dbs/${db}/colls/${coll}\0${password}`) });
  }

  /** @param {string} requestId @param {string} op @param {any} args */
  post(requestId, op, args) {
    this.socket.send(JSON.stringify({ requestId, op, processor: "", args }));
  }
}

/** @param {string} db @param {string} coll @returns {Promise<Connection>} */
function connect(db, coll) {
  const name = JSON.stringify([db, coll]);
  const there = open.get(name);
  if (there) return there;
  const made = new Promise((resolve, reject) => {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/gremlin`);
    socket.binaryType = "arraybuffer";
    const failed = () => (clearTimeout(timer), open.delete(name), reject(Object.assign(new Error("No connection for Gremlin. Is the server still running?"), { status: 0 })));
    const timer = setTimeout(() => (socket.close(), failed()), CONNECT_MS_MAX);
    socket.onopen = () => (clearTimeout(timer), resolve(new Connection(socket, db, coll)));
    socket.onerror = failed;
  });
  open.set(name, made);
  return made;
}

/**
 * Runs a traversal; all results at the end, what came so far by `onSome`.
 * @param {string} db @param {string} coll @param {string} gremlin
 * @param {{bindings?: Record<string, unknown>, signal?: AbortSignal, onSome?: (rows: any[]) => void, quiet?: boolean}} [options]
 */
export async function traverse(db, coll, gremlin, { bindings = {}, signal, onSome, quiet = false } = {}) {
  const connection = await connect(db, coll);
  signal?.throwIfAborted();
  const requestId = crypto.randomUUID();
  const began = performance.now();
  /** @type {any[]} */
  const rows = [];
  const finish = (status, charge) => {
    const ms = performance.now() - began;
    if (!quiet || status >= 400) note({ method: "GREMLIN", url: `/dbs/${encodeURIComponent(db)}/colls/${encodeURIComponent(coll)}`, status, charge, ms, headers: {}, body: gremlin });
    return ms;
  };
  return new Promise((resolve, reject) => {
    signal?.addEventListener("abort", () => {
      if (!connection.waiting.delete(requestId)) return;
      // A connection that ends takes its traversals with it: that is how one is cancelled. The next one opens another.
      connection.socket.close();
      connection.lost();
      reject(signal.reason);
    }, { once: true });
    connection.waiting.set(requestId, {
      take: (data) => (rows.push(...data), onSome?.(rows)),
      end: (status) => {
        const charge = Number(status.attributes?.["x-ms-total-request-charge"] ?? 0);
        resolve({ rows, charge, ms: finish(200, charge) });
      },
      fail: (error) => (finish(error.status || 0, error.charge ?? 0), reject(error)),
    });
    connection.post(requestId, "eval", { gremlin, language: "gremlin-groovy", bindings });
  });
}

/** A value as it stands in a traversal. @param {unknown} value */
export const literal = (value) => (typeof value === "string" ? `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n")}'` : JSON.stringify(value));
