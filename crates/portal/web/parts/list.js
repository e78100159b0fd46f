// What the pages of items, documents and entities share: rows that come in pages, those that are selected, what can be put back.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { RowPages } from "../api/row-pages.js";
import { readOnly } from "../state.js";
import { plural } from "./ui.js";

const UNDO_MS = 10_000;
/** Lines of a row in the view of JSON, and what they take. */
const BLOCK_LINES = 7;
export const BLOCK_PX = 148;

/** The first lines of a text. @param {string} text */
export const block = (text) => {
  const all = text.split("\n");
  return all.length > BLOCK_LINES ? `${all.slice(0, BLOCK_LINES - 1).join("\n")}\n  … ${all.length - BLOCK_LINES} lines more` : text;
};

/** @typedef {{name: string, descending: boolean} | null} Sort */

/**
 * @param {(text?: string, order?: Sort) => (next: string, count: number, signal: AbortSignal) => Promise<any>} asker of the filter and order at hand, or of others
 * @param {() => void} [create] what Alt+N does
 */
export function useRows(asker, create) {
  const [error, setError] = useState(null);
  const [selected, setSelected] = useState(() => new Set());
  const [undo, setUndo] = useState(/** @type {any[]} */ ([]));
  const [sorted, setSorted] = useState(/** @type {Sort} */ (null));
  const [, again] = useState(0);
  const pages = useRef(/** @type {RowPages | null} */ (null));
  const load = (text, order = sorted) => {
    pages.current?.stop();
    setError(null);
    setSelected(new Set());
    try {
      const mine = (pages.current = new RowPages(asker(text, order), (problem) => {
        if (mine !== pages.current) return;
        if (problem) setError(problem);
        again((n) => n + 1);
      }));
      mine.loadMore();
      again((n) => n + 1);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    load();
    return () => pages.current?.stop();
  }, []);
  useEffect(() => {
    if (!undo.length) return;
    const timer = setTimeout(() => setUndo([]), UNDO_MS);
    return () => clearTimeout(timer);
  }, [undo]);
  useEffect(() => {
    const key = (event) => create && event.altKey && event.key.toLowerCase() === "n" && !readOnly.value && (event.preventDefault(), create());
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  });
  const rows = pages.current;
  const sort = (name) => {
    const next = sorted?.name !== name ? { name, descending: false } : sorted.descending ? null : { name, descending: true };
    setSorted(next);
    load(undefined, next);
  };
  const chosen = async () => (await Promise.all([...selected].map((n) => rows?.read(n)))).filter(Boolean);
  const table = { rows: [], length: rows?.length ?? 0, rowAt: (n) => rows?.at(n), selected, onSelect: setSelected, onEnd: () => rows && !rows.done && rows.loadMore() };
  const status = (noun, many) => html`<div class="status"><span>${plural(rows?.length ?? 0, noun, many)}${rows?.done ? "" : " so far; more come as you scroll"}</span><span>${(rows?.charge ?? 0).toFixed(2)} RU</span></div>`;
  return { rows, load, error, setError, selected, setSelected, undo, setUndo, sorted, sort, chosen, table, status };
}
