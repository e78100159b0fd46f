// What is typed for MongoDB, for the editor: colours, and what can come next.
import { CURSOR_METHODS, METHODS } from "../api/mongo-shell.js";
import { streamMode } from "./sql-mode.js";

const WORDS = new Set(["db", "true", "false", "null", "undefined", "new", "Infinity", "NaN"]);
const TYPES = ["ObjectId", "ISODate", "NumberLong", "NumberInt", "NumberDecimal", "UUID", "BinData", "Timestamp", "RegExp"];

export const mongoMode = streamMode("mongo", "//", (stream) => {
  const text = stream.match(/^'(?:[^'\\]|\\.)*'?/) ?? stream.match(/^"(?:[^"\\]|\\.)*"?/);
  if (text) return /^\s*:/.test(stream.string.slice(stream.pos)) ? "propertyName" : "string";
  if (stream.match(/^\/(?:[^/\\\n]|\\.)+\/[a-z]*/)) return "string";
  if (stream.match(/^-?\d+\.?\d*(?:[eE][+-]?\d+)?/)) return "number";
  const word = stream.match(/^[A-Za-z_$][\w$]*/);
  if (!word) return null;
  const rest = stream.string.slice(stream.pos);
  if (word[0].startsWith("$")) return "keyword";
  if (/^\s*:/.test(rest)) return "propertyName";
  if (/^\s*\(/.test(rest)) return "variableName.function";
  return WORDS.has(word[0]) ? "keyword" : "variableName";
});

/** Which operators make sense behind this text. @param {string} before */
function kinds(before) {
  // The innermost thing that is open decides: a pipeline has stages, a stage expressions, an update its operators.
  const method = /\.(\w+)\s*\((?!.*\)\s*\.\w+\s*\()/s.exec(before)?.[1] ?? "find";
  const depth = { "{": 0, "[": 0, "(": 0 };
  for (const sign of before.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, "")) {
    if (sign in depth) depth[sign] += 1;
    else if ("}])".includes(sign)) depth[{ "}": "{", "]": "[", ")": "(" }[sign]] -= 1;
  }
  if (method === "aggregate") {
    if (depth["{"] <= 1) return ["stage"];
    return /\$match["']?\s*:(?!.*\$(?:group|project|addFields|set|sort|unwind|lookup|facet|bucket))/s.test(before.slice(before.lastIndexOf("{ $match"))) ? ["query", "expression"] : ["expression", "accumulator", "window", "query"];
  }
  if (/^(update|findOneAndUpdate)/.test(method) && depth["{"] === 1 && /\}\s*,\s*\{[^{]*$/s.test(before)) return ["update"];
  return ["query"];
}

/**
 * @param {() => any[]} operators @param {() => Map<string, any>} paths @param {string} coll
 * @returns {(context: any) => any}
 */
export const mongoCompleter = (operators, paths, coll) => (context) => {
  const before = context.state.sliceDoc(0, context.pos);
  const operator = context.matchBefore(/["']?\$[\w]*$/);
  if (operator && !/["']\$$/.test(operator.text)) {
    const quote = /^["']/.test(operator.text) ? 1 : 0;
    const wanted = kinds(before.slice(0, operator.from));
    const seen = new Set();
    const options = wanted.flatMap((kind, n) => operators().filter((one) => one.kind === kind && !seen.has(one.name) && seen.add(one.name)).map((one) => ({ label: one.name, type: "keyword", detail: kind, info: one.text, boost: -n })));
    // "$total" is the value of a field where expressions are.
    if (quote && wanted.includes("expression")) return { from: operator.from + 1, options: fields(paths()).map((one) => ({ ...one, label: `$${one.label}` })), validFor: /^\$[\w.]*$/ };
    return { from: operator.from + quote, options, validFor: /^\$\w*$/ };
  }
  const after = context.matchBefore(/\)\s*\.\w*$/);
  if (after) return { from: context.pos - /\w*$/.exec(after.text)[0].length, options: CURSOR_METHODS.map((label) => ({ label, type: "function", apply: `${label}(` })), validFor: /^\w*$/ };
  const method = context.matchBefore(/db\.(?:[\w$-]+\.|getCollection\([^)]*\)\.)+\w*$/);
  if (method) return { from: context.pos - /\w*$/.exec(method.text)[0].length, options: METHODS.map((one) => ({ label: one.name, type: "function", detail: one.arguments, info: one.text, apply: `${one.name}(` })), validFor: /^\w*$/ };
  const dotted = context.matchBefore(/db\.[\w$-]*$/);
  if (dotted) return { from: dotted.from + 3, options: [{ label: /^[\w$-]+$/.test(coll) ? coll : `getCollection('${coll}')`, type: "variable", detail: "this collection" }, { label: "runCommand", type: "function", detail: "({…})", apply: "runCommand(" }], validFor: /^[\w$-]*$/ };
  const word = context.matchBefore(/["']?[\w.]*$/);
  if (!word.text && !context.explicit) return null;
  const quote = /^["']/.test(word.text) ? 1 : 0;
  if (!before.includes("{")) return { from: word.from + quote, options: [{ label: "db", type: "keyword" }] };
  const types = TYPES.map((label) => ({ label, type: "type", apply: `${label}(`, boost: -1 }));
  return { from: word.from + quote, options: [...fields(paths(), quote === 0), ...(quote ? [] : types)], validFor: /^[\w.]*$/ };
};

/** @param {Map<string, any>} paths @param {boolean} [quotes] dotted paths stand in quotes */
const fields = (paths, quotes = false) => [...paths].filter(([path]) => !path.includes('["')).map(([path, { kind }]) => {
  const label = path.replaceAll("[0]", "");
  return { label, type: "property", detail: kind, ...(quotes && label.includes(".") && { apply: `'${label}'` }) };
});
