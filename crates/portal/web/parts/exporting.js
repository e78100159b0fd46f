// An export that runs beside the page: how far it is, and a button that stops it.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { exported } from "../api/export.js";
import { announce } from "../state.js";
import { columnsOf } from "./table.js";
import { download, plural } from "./ui.js";

const TYPES = { json: "application/json", ndjson: "application/x-ndjson", csv: "text/csv" };

/**
 * @param {string} name of the file, without its ending
 * @returns {{busy: boolean, view: any, start: (kind: "json" | "ndjson" | "csv", pages: (signal: AbortSignal) => AsyncIterable<any[]>, values?: (rows: any[]) => any[]) => Promise<void>}}
 */
export function useExport(name) {
  const [rows, setRows] = useState(null);
  const controller = useRef(null);
  useEffect(() => () => controller.current?.abort(), []);
  const start = async (/** @type {"json" | "ndjson" | "csv"} */ kind, pages, values = (all) => all) => {
    const mine = (controller.current = new AbortController());
    setRows(0);
    try {
      const parts = await exported(kind, pages(mine.signal), { values, columnsOf: (some) => columnsOf(some, [], 1000), onRows: setRows });
      download(`${name}.${kind}`, parts, TYPES[kind]);
      announce(`Exported ${name}.${kind}`);
    } catch (error) {
      if (!mine.signal.aborted) throw error;
      announce("The export was stopped");
    } finally {
      setRows(null);
    }
  };
  const view = rows === null ? null : html`<span class="small" role="status"><span class="spinner" aria-hidden="true"></span> ${plural(rows, "row")} exported</span><button type="button" class="small" onClick=${() => controller.current?.abort()}>Stop the export</button>`;
  return { busy: rows !== null, view, start };
}

/** Pages of an answer, one behind the other. @param {(next: string, count: number, signal: AbortSignal) => Promise<{rows: any[], next: string}>} ask @param {AbortSignal} signal @param {{rows: any[], next: string} | null} [first] what is there already */
export async function* pagesOf(ask, signal, first = null) {
  let next = "";
  if (first) {
    yield first.rows;
    if (!first.next) return;
    next = first.next;
  }
  do {
    const page = await ask(next, 1000, signal);
    yield page.rows;
    next = page.next;
  } while (next);
}
