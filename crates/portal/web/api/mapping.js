// What becomes of the rows of a file before they are written, and what can be known of them before that.
import { at, isNumber, parse, pathSteps, write } from "./json.js";

/** What a column of CSV can be. */
export const CELL_TYPES = ["auto", "text", "number", "boolean", "JSON"];
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const COLUMNS_MAX = 200, PATHS_MAX = 200, ROWS_FOR_PATHS = 1000, PATH_DEPTH_MAX = 4;
const ID_BYTES_MAX = 1023, WORK_MS = 40;
/** What a write takes before its index terms: KB and RU, on a straight line between them. */
const SIZES = [[1, 4.95], [2, 6.29], [4, 6.67], [8, 7.04], [16, 9.52], [32, 11.23], [64, 22.67], [128, 48.19], [256, 98.29], [512, 184.57], [1024, 625], [2048, 1250]];

/** @param {unknown} value */
export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !isNumber(value);
/** Rows of CSV are maps of texts. @param {any} row @returns {[string, any][]} */
const members = (row) => (row instanceof Map ? [...row] : isObject(row) ? Object.entries(row) : []);
const define = (object, name, value) => Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });

/** A cell of CSV as a value, with all digits; an empty one is none. @param {string} text @param {string} type @param {string} name */
function typed(text, type, name) {
  const word = text.trim();
  if (text === "" || type === "text") return text || undefined;
  if (type === "auto") return /^(?:true|false)$/.test(text) ? text === "true" : NUMBER.test(text) ? parse(text) : text;
  if (type === "number" && NUMBER.test(word)) return parse(word);
  if (type === "boolean" && /^(?:true|false|yes|no|1|0)$/i.test(word)) return /^[ty1]/i.test(word);
  try {
    if (type === "JSON") return parse(text);
  } catch {}
  throw new Error(`${name}: “${text.slice(0, 40)}” is no ${type}`);
}

/** Puts a value where a path leads; what lies on the way is copied, as it may be the row's own. @returns {any} */
function set(item, [step, ...rest], value) {
  const inner = Object.hasOwn(item, step) ? item[step] : null;
  return define(item, step, rest.length ? set(isObject(inner) ? { ...inner } : {}, rest, value) : value);
}

/**
 * `columns`: what is left out, called otherwise (a path where it begins with /) or of another type; `keys`: paths that get a copy of a value.
 * @typedef {{columns: Map<string, {out?: boolean, to?: string, type?: string}>, keys: Map<string, string>}} Plan
 * @param {any} row @param {Plan} plan
 */
export function mapped(row, { columns, keys }) {
  const cells = row instanceof Map;
  if (!cells && !columns.size && !keys.size) return row;
  const item = {};
  const value = (name, type = columns.get(name)?.type ?? (name === "id" ? "text" : "auto")) => (cells ? typed(row.get(name) ?? "", type, name) : row[name]);
  for (const [name] of members(row)) {
    const { out = false, to = "" } = columns.get(name) ?? {};
    const found = out ? undefined : value(name);
    if (found !== undefined) set(item, to.startsWith("/") ? pathSteps(to) : [to || name], found);
  }
  for (const [path, source] of keys) {
    const found = cells ? value(pathSteps(source)[0], path === "/id" ? "text" : undefined) : at(row, source);
    if (found !== undefined) set(item, pathSteps(path), found);
  }
  return item;
}

/** The columns of rows with an example of each, and the paths below them that have a plain value. @param {any[]} rows */
export function sourcesOf(rows) {
  const columns = new Map(), paths = new Set();
  const walk = (above, name, value, depth = 1) => {
    const path = `${above}/${/^[^/"]+$/.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`}`;
    if (isObject(value) && depth < PATH_DEPTH_MAX) for (const [inner, one] of Object.entries(/** @type {any} */ (value))) walk(path, inner, one, depth + 1);
    else if (paths.size < PATHS_MAX && !isObject(value) && !Array.isArray(value)) paths.add(path);
  };
  rows.forEach((row, n) => {
    for (const [name, value] of members(row)) {
      const known = columns.get(name);
      if (known ? known.example === "" : columns.size < COLUMNS_MAX) columns.set(name, { example: value, cells: row instanceof Map });
      if (n < ROWS_FOR_PATHS) walk("", name, value);
    }
  });
  return { columns, paths: [...paths] };
}

/** What creating an item takes under the default indexing policy. @param {any} item @param {number} bytes */
export function createCharge(item, bytes) {
  let values = 0;
  const paths = new Set();
  const walk = (value, path, depth) => {
    const inner = value !== null && typeof value === "object" && !isNumber(value) ? Object.entries(value) : [];
    paths.add(path);
    if (!inner.length || depth > 1) values += 1;
    for (const [name, one] of inner) walk(one, Array.isArray(value) ? `${path}/[]` : `${path}/${name}`, depth + 1);
  };
  for (const [name, value] of Object.entries(item)) walk(value, name, 1);
  const kb = Math.max(1, bytes / 1024), above = Math.max(1, SIZES.findIndex(([size]) => size >= kb)), [[x, low], [y, high]] = SIZES.slice(above - 1, above + 1);
  return (5.2 * (low + ((high - low) * (kb - x)) / (y - x)) / SIZES[0][1] + 0.2 * (values + paths.size + 1)) / 1.05;
}

/**
 * Looks at every row as if it were written. `bad` has those that would be refused, and those that would be written though hardly meant so.
 * @param {any[]} rows @param {Plan} plan
 * @param {{id: string, paths: string[], bytesMax: number, signal: AbortSignal, onRow: (row: number) => void}} how
 */
export async function dryRun(rows, plan, { id, paths, bytesMax, signal, onRow }) {
  const seen = new Map();
  const found = { rows: rows.length, items: 0, charge: 0, fresh: 0, bad: /** @type {{row: number, refused: boolean, reason: string}[]} */ ([]) };
  let since = performance.now();
  for (let n = 0; n < rows.length && !signal.aborted; n += 1) {
    if (performance.now() - since > WORK_MS) {
      onRow(n);
      await new Promise((go) => setTimeout(go));
      since = performance.now();
    }
    const refused = /** @type {string[]} */ ([]), odd = /** @type {string[]} */ ([]);
    try {
      if (!members(rows[n]).length) throw new Error("it is no object with members");
      const item = mapped(rows[n], plan), name = at(item, id) ?? undefined, text = write(item, 0);
      const bytes = text.length * 3 > bytesMax ? new TextEncoder().encode(text).length : text.length;
      if (bytes > bytesMax) refused.push(`it is larger than ${bytesMax >> 20} MB`);
      if (name === undefined) found.fresh += 1;
      else if (id === "/id") {
        const written = typeof name === "string" ? name : write(name, 0);
        if (!written || new TextEncoder().encode(written).length > ID_BYTES_MAX) refused.push(`its id must have 1 to ${ID_BYTES_MAX} bytes`);
        else if (/[/\\?#]/.test(written)) odd.push("its id has one of / \\ ? #, and few clients can read such an item");
      }
      const key = paths.map((path) => {
        const value = at(item, path);
        if (value === undefined) odd.push(`there is nothing at ${path}: all such items are of one partition key`);
        else if (isObject(value) || Array.isArray(value)) refused.push(`what is at ${path} is no text, number, boolean or null`);
        return value ?? (value === null ? null : {});
      });
      if (name !== undefined && !refused.length) {
        const which = write([name, key], 0);
        if (seen.has(which)) odd.push(`row ${seen.get(which)} has the same id${paths.length ? " and partition key" : ""}: one will replace the other`);
        else seen.set(which, n + 1);
      }
      if (!refused.length) (found.items += 1), (found.charge += createCharge(item, bytes));
    } catch (problem) {
      refused.push(problem.message);
    }
    if (refused.length + odd.length) found.bad.push({ row: n + 1, refused: refused.length > 0, reason: [...refused, ...odd].join("; ") });
  }
  return signal.aborted ? null : found;
}
