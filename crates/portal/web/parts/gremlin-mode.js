// Gremlin for the editor: colours while typing, and the steps that can come next.
import { streamMode } from "./sql-mode.js";

const WORDS = new Set(["g", "__", "true", "false", "null", "asc", "desc", "incr", "decr", "single", "list", "set", "local", "global", "id", "label", "T", "P", "Order", "Scope"]);

export const gremlinMode = streamMode("gremlin", "//", (stream) => {
  if (stream.match(/^'(?:[^'\\]|\\.)*'?/) || stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
  if (stream.match(/^\d+\.?\d*(?:[eE][+-]?\d+)?[lLfFdDmM]?/)) return "number";
  const word = stream.match(/^[A-Za-z_]\w*/);
  if (!word) return null;
  if (/^\s*\(/.test(stream.string.slice(stream.pos))) return "variableName.function";
  return WORDS.has(word[0]) ? "keyword" : "variableName";
});

/** Steps after a dot; inside of quotes, labels and names of properties. @param {() => any[]} steps @param {() => string[]} names */
export const gremlinCompleter = (steps, names) => (context) => {
  const quoted = context.matchBefore(/['"][\w-]*$/);
  if (quoted) {
    const options = names().map((label) => ({ label, type: "property" }));
    return options.length ? { from: quoted.from + 1, options, validFor: /^[\w-]*$/ } : null;
  }
  const word = context.matchBefore(/\w*$/);
  const dotted = context.state.sliceDoc(Math.max(0, word.from - 1), word.from) === ".";
  if (!dotted && !word.text && !context.explicit) return null;
  const options = steps().map((one) => ({ label: one.name, type: "function", detail: one.arguments, info: one.text, apply: `${one.name}(` }));
  return { from: word.from, options: dotted ? options : [{ label: "g", type: "keyword" }, { label: "__", type: "keyword" }, ...options], validFor: /^\w*$/ };
};
