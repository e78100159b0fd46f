// JSON whose numbers keep the digits that they were sent with. JavaScript's numbers end at 2^53; what would be rounded, or written
// in another way, stays as its source text (JSON.rawJSON) and is written back unchanged.

const exact = typeof JSON.rawJSON === "function";

/** @param {string} text */
export function parse(text) {
  if (!exact) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && String(value) !== context.source ? JSON.rawJSON(context.source) : value);
}

/** @param {unknown} value @param {number} [indent] */
export const write = (value, indent = 2) => JSON.stringify(value, null, indent);

/** @param {unknown} value */
export const isNumber = (value) => typeof value === "number" || (exact && JSON.isRawJSON(value));

/** The text of a value in one line, as a cell of a table shows it. @param {unknown} value */
export function cell(value) {
  if (value === undefined) return "";
  if (typeof value === "string") return value;
  return JSON.stringify(value);
}

/** A value as it may stand in a header: ASCII only. @param {unknown} value */
export const ascii = (value) =>
  JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** The properties that the server adds to an item. */
export const SYSTEM = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/** An item without what the server added. @param {Record<string, unknown>} item */
export function own(item) {
  const copy = { ...item };
  for (const name of SYSTEM) delete copy[name];
  return copy;
}

/** The value at a path such as /address/city, or undefined. @param {any} item @param {string} path */
export function at(item, path) {
  let value = item;
  for (const step of pathSteps(path)) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, step)) return undefined;
    value = value[step];
  }
  return value;
}

/** The steps of a path: /a/"b/c" has two. @param {string} path */
export function pathSteps(path) {
  return [...path.matchAll(/\/(?:"((?:[^"\\]|\\.)*)"|([^/]*))/g)].map((m) => (m[1] ?? m[2]).replace(/\\(.)/g, "$1"));
}
