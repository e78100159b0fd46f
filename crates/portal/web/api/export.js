// Any number of rows into a file without holding them: each page becomes a piece of text that the browser keeps where it likes (large
// blobs lie on its disk), so that a million rows take no more memory of the page than a thousand.
import { toCsv, toNdjson } from "./files.js";
import { parse, write } from "./json.js";

/**
 * @param {"json" | "ndjson" | "csv"} kind @param {AsyncIterable<any[]>} pages
 * @param {{values: (rows: any[]) => any[], columnsOf: (rows: any[]) => {name: string, of: (row: any) => unknown}[], onRows?: (count: number) => void}} how
 *   `values`: rows as cells of a table; `columnsOf`: the columns of some of them
 * @returns {Promise<BlobPart[]>}
 */
export async function exported(kind, pages, { values, columnsOf, onRows }) {
  const parts = /** @type {Blob[]} */ ([]);
  let count = 0;
  // Which columns there are is known at the end: until then a table is kept as lines.
  const columns = new Map();
  for await (const rows of pages) {
    if (!rows.length) continue;
    if (kind === "csv") {
      const cells = values(rows);
      for (const one of columnsOf(cells)) if (!columns.has(one.name)) columns.set(one.name, one);
      parts.push(new Blob([toNdjson(cells.map((row) => row ?? null))]));
    } else if (kind === "ndjson") parts.push(new Blob([toNdjson(rows)]));
    else parts.push(new Blob([`${count ? ",\n" : "[\n"}${rows.map((row) => write(row, 0)).join(",\n")}`]));
    count += rows.length;
    onRows?.(count);
  }
  if (kind === "ndjson") return parts;
  if (kind === "json") return [...parts, count ? "\n]\n" : "[]\n"];
  const all = [...columns.values()];
  const text = [toCsv([], all)];
  for (const part of parts) {
    const rows = (await part.text()).split("\n").filter(Boolean).map(parse);
    text.push(new Blob([`\r\n${toCsv(rows, all, true, false)}`]));
  }
  return text;
}
