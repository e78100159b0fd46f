// Cosmos SQL for the editor: colours while typing, and what can come next.

export const KEYWORDS = ["SELECT", "VALUE", "DISTINCT", "TOP", "FROM", "IN", "JOIN", "WHERE", "AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "IS", "NULL", "UNDEFINED", "TRUE", "FALSE", "EXISTS", "ARRAY", "AS", "GROUP BY", "ORDER BY", "RANK", "ASC", "DESC", "OFFSET", "LIMIT", "UDF"];
const words = new Set(KEYWORDS.flatMap((word) => word.split(" ")));

/** A stream mode of CodeMirror with the comments and brackets that our languages have in common. @param {string} name @param {string} line what begins a comment @param {(stream: any) => string | null} token */
export const streamMode = (name, line, token) => ({
  name,
  startState: () => ({ comment: false }),
  token(stream, state) {
    if (state.comment || stream.match("/*")) {
      state.comment = !stream.match(/^.*?\*\//);
      if (state.comment) stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match(line)) {
      stream.skipToEnd();
      return "comment";
    }
    const found = token(stream);
    if (!found) stream.next();
    return found;
  },
  languageData: { commentTokens: { line }, closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } },
});

export const sqlMode = streamMode("cosmos-sql", "--", (stream) => {
  if (stream.match(/^'(?:[^'\\]|\\.)*'?/) || stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
  if (stream.match(/^@[A-Za-z0-9_]+/)) return "variableName.special";
  if (stream.match(/^(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)/)) return "number";
  const word = stream.match(/^[A-Za-z_][A-Za-z0-9_]*/);
  if (!word) return null;
  if (stream.string[stream.start - 1] === ".") return "propertyName";
  if (words.has(word[0].toUpperCase())) return "keyword";
  return /^\s*\(/.test(stream.string.slice(stream.pos)) ? "variableName.function" : "variableName";
});

/** The paths that items have, as steps joined by dots: "address.city". @param {any[]} items */
export function pathsOf(items) {
  const found = new Map();
  const walk = (value, prefix, depth) => {
    if (depth > 5 || value === null || typeof value !== "object") return;
    for (const [name, inner] of Object.entries(value)) {
      if (Array.isArray(value)) {
        walk(inner, `${prefix}[0]`, depth + 1);
        break;
      }
      const plain = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
      const path = plain ? (prefix ? `${prefix}.${name}` : name) : `${prefix}["${name}"]`;
      const kind = inner === null ? "null" : Array.isArray(inner) ? "array" : typeof inner;
      if (!found.has(path)) found.set(path, { kind, count: 0 });
      found.get(path).count += 1;
      walk(inner, path, depth + 1);
    }
  };
  for (const item of items) walk(item, "", 0);
  return found;
}

/** What may be typed next; behind `c.city = "` the values that items have there, if asked for. @param {() => Map<string, any>} paths @param {() => any[]} functions @param {(expression: string) => Promise<any[]>} values */
export const completer = (paths, functions, values) => async (context) => {
  const quoted = context.matchBefore(/\b[A-Za-z_]\w*(?:\.\w+)+\s*(?:=|!=|<>|IN\s*\()\s*(["'])(?:(?!\1).)*$/i);
  if (quoted) {
    if (!context.explicit) return null;
    const open = /(["'])(?:(?!\1).)*$/.exec(quoted.text);
    const options = (await values(quoted.text.split(/\s*(?:=|!=|<>|\bIN\b)/i)[0])).filter((one) => typeof one === "string").map((label) => ({ label, type: "text", apply: label.replaceAll("\\", "\\\\").replaceAll(open[1], `\\${open[1]}`) }));
    return { from: quoted.from + open.index + 1, options, validFor: /^[^"']*$/ };
  }
  const dotted = context.matchBefore(/[A-Za-z_][\w]*(?:\.[\w]*|\[\d*\])*\.[\w]*$/);
  if (dotted) {
    const text = dotted.text;
    const cut = text.lastIndexOf(".");
    const parent = text.slice(0, cut).split(".").slice(1).join(".").replace(/\[\d+\]/g, "[0]");
    const options = [];
    for (const [path, { kind }] of paths()) {
      const at = path.lastIndexOf(".");
      if ((at < 0 ? "" : path.slice(0, at)) === parent && !path.includes('["')) options.push({ label: path.slice(at + 1), type: "property", detail: kind });
    }
    return options.length ? { from: dotted.from + cut + 1, options, validFor: /^\w*$/ } : null;
  }
  const word = context.matchBefore(/\w+$/);
  if (!word && !context.explicit) return null;
  const options = KEYWORDS.map((label) => ({ label, type: "keyword" })).concat(
    functions().map((one) => ({ label: one.name, type: "function", detail: one.arguments, info: one.text, apply: `${one.name}(` })));
  return { from: word ? word.from : context.pos, options, validFor: /^\w*$/ };
};
