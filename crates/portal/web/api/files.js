// Items out of files and into files: JSON, JSON lines, CSV.
import { parse, write, cell } from "./json.js";

/** Rows of a CSV text with quotes. @param {string} text */
export function parseCsv(text) {
  const rows = [];
  let row = [], field = "", quoted = false;
  for (let n = 0; n < text.length; n += 1) {
    const c = text[n];
    if (quoted) {
      if (c === '"' && text[n + 1] === '"') field += '"', n += 1;
      else if (c === '"') quoted = false;
      else field += c;
    } else if (c === '"' && field === "") quoted = true;
    else if (c === ",") row.push(field), (field = "");
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[n + 1] === "\n") n += 1;
      row.push(field), (field = "");
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = [];
    } else field += c;
  }
  row.push(field);
  if (row.length > 1 || row[0] !== "") rows.push(row);
  return rows;
}

/** The rows of a file: values, or of CSV maps of texts. Throws with the line of what is wrong. @param {string} name @param {string} text */
export function itemsOf(name, text) {
  const trimmed = text.trimStart();
  if (/\.csv$/i.test(name)) {
    const [head = [], ...rows] = parseCsv(text.replace(/^\ufeff/, ""));
    return rows.map((row) => new Map(head.map((column, n) => [column, row[n] ?? ""])));
  }
  if (trimmed.startsWith("[")) return parse(text);
  try {
    return [parse(text)];
  } catch {
    return text.split("\n").map((line, n) => [line.trim(), n]).filter(([line]) => line).map(([line, n]) => {
      try {
        return parse(/** @type {string} */ (line));
      } catch (problem) {
        throw new Error(`${name}, line ${Number(n) + 1}: ${problem.message}`);
      }
    });
  }
}

/** Rows as CSV. Cells that a spreadsheet would run as formulas get an apostrophe if asked. @param {any[]} rows @param {{name: string, of: (row: any) => unknown}[]} columns */
export function toCsv(rows, columns, guard = true, header = true) {
  const quote = (value) => {
    let text = cell(value);
    if (guard && typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [...(header ? [columns.map((column) => quote(column.name)).join(",")] : []), ...rows.map((row) => columns.map((column) => quote(column.of(row))).join(","))].join("\r\n");
}

/** @param {any[]} rows */
export const toNdjson = (rows) => rows.map((row) => `${write(row, 0)}\n`).join("");
