// A table of any length: only the rows in view exist. One row has the focus; arrows move it, letters act on it.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { cell, isNumber, write } from "../api/json.js";
import { announce } from "../state.js";

const ROW_PX = 30;
/** The tallest body that browsers draw truly; what is longer is scrolled faster. */
const BODY_PX_MAX = 12_000_000;
/** Rows that are drawn beyond the edges. */
const MARGIN = 8;
const WIDTH_PX = 180;
/** A cell shows no more of a long text. */
const CELL_CHARS_MAX = 300;

/**
 * @param {{label: string, columns: {name: string, title?: string, of: (row: any) => unknown}[], rows: any[], selected?: Set<number>, onSelect?: (next: Set<number>) => void,
 *   onOpen?: (at: number) => void, onEnd?: () => void, onDelete?: () => void, total?: number, empty?: any, remember?: string,
 *   rowAt?: (at: number) => any, length?: number, version?: number, rowPx?: number, sorted?: {name: string, descending: boolean} | null, onSort?: (name: string) => void}} properties
 */
export function Table({ label, columns, rows, selected, onSelect, onOpen, onEnd, onDelete, empty = null, remember = "", rowAt = (at) => rows[at], length = rows?.length ?? 0, rowPx = ROW_PX, sorted = null, onSort }) {
  const place = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [focused, setFocused] = useState(0);
  const store = remember && `orrery-widths:${remember}`;
  const [widths, setWidths] = useState(() => JSON.parse((store && localStorage.getItem(store)) || "{}"));
  const anchor = useRef(0);

  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const bodyPx = Math.min(length * rowPx, BODY_PX_MAX);
  // Where the view is among all rows, and how far they are from where they would stand.
  const ratio = length * rowPx > BODY_PX_MAX ? (length * rowPx - height) / Math.max(1, BODY_PX_MAX - height) : 1;
  const seen = top * ratio, shift = top - seen;
  const first = Math.max(0, Math.floor(seen / rowPx) - MARGIN);
  const last = Math.min(length, Math.ceil((seen + height) / rowPx) + MARGIN);
  useEffect(() => {
    if (last >= length - MARGIN) onEnd?.();
  }, [last, length]);

  const focus = (at) => {
    const next = Math.max(0, Math.min(length - 1, at));
    setFocused(next);
    const element = /** @type {HTMLElement} */ (place.current);
    const y = next * rowPx, from = element.scrollTop * ratio;
    if (y < from) element.scrollTop = y / ratio;
    else if (y + rowPx + ROW_PX > from + element.clientHeight) element.scrollTop = (y + rowPx + ROW_PX - element.clientHeight) / ratio;
  };
  const toggle = (at, range = false) => {
    if (!onSelect || !selected) return;
    const next = new Set(selected);
    const [from, to] = range ? [Math.min(anchor.current, at), Math.max(anchor.current, at)] : [at, at];
    const on = range || !next.has(at);
    for (let n = from; n <= to; n += 1) on ? next.add(n) : next.delete(n);
    anchor.current = at;
    onSelect(next);
  };
  /** The row that has the focus, for the clipboard; marked text goes there as it always does. */
  const onCopy = (/** @type {ClipboardEvent} */ event) => {
    const row = rowAt(focused);
    if (row === undefined || String(getSelection() ?? "")) return;
    event.clipboardData?.setData("text/plain", typeof row === "string" ? row : write(row));
    event.preventDefault();
    announce("Copied the row");
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / rowPx) - 2);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: length };
    if (event.key in moves) focus(Math.max(0, focused + moves[event.key]));
    else if (event.key === "Enter" || event.key === "e") onOpen?.(focused);
    else if (event.key === "x" || event.key === " ") toggle(focused, event.shiftKey);
    else if (event.key === "Delete") onDelete?.();
    else return;
    event.preventDefault();
  };
  const resize = (event, name) => {
    event.preventDefault();
    event.stopPropagation();
    const handle = /** @type {HTMLElement} */ (event.target);
    handle.setPointerCapture(event.pointerId);
    const from = event.clientX - (widths[name] ?? WIDTH_PX);
    const move = (moved) => setWidths((before) => ({ ...before, [name]: Math.max(60, moved.clientX - from) }));
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => {
      handle.removeEventListener("pointermove", move);
      setWidths((now) => (store && localStorage.setItem(store, JSON.stringify(now)), now));
    }, { once: true });
  };
  /** Numbers stand at the right, and so does what is written above them. */
  const isNumeric = (/** @type {(row: any) => unknown} */ of) => length > 0 && rowAt(first) !== undefined && isNumber(of(rowAt(first)));
  const width = (name) => ({ width: `${widths[name] ?? WIDTH_PX}px` });
  const shown = [];
  for (let at = first; at < last; at += 1) {
    const row = rowAt(at);
    shown.push(html`<div key=${at} id=${`row-${at}`} role="row" aria-rowindex=${at + 2} aria-selected=${selected ? (selected.has(at) ? "true" : "false") : undefined}
        class=${`grid-row ${selected?.has(at) ? "selected" : ""} ${at === focused ? "focused" : ""}`} style=${{ top: `${at * rowPx + shift}px`, height: `${rowPx}px` }}
        onClick=${(event) => (setFocused(at), event.shiftKey ? toggle(at, true) : onOpen?.(at))}>
      ${selected && html`<div class="grid-cell check" role="gridcell" onClick=${(event) => event.stopPropagation()}><input type="checkbox" tabindex="-1" aria-label="Select" checked=${selected.has(at)} onClick=${(event) => toggle(at, event.shiftKey)} /></div>`}
      ${columns.map(({ name, of }) => {
        const value = row === undefined ? undefined : of(row);
        const text = row === undefined ? "…" : cell(value);
        return html`<div key=${name} role="gridcell" class=${`grid-cell ${rowPx > ROW_PX ? "block" : ""} ${isNumber(value) ? "is-number" : ""} ${value === undefined || value === null ? "absent" : ""}`} style=${width(name)}>${text.length > CELL_CHARS_MAX && rowPx === ROW_PX ? `${text.slice(0, CELL_CHARS_MAX)}…` : text}</div>`;
      })}
    </div>`);
  }
  // What stands where no rows are is no part of the grid: readers of the screen expect rows there.
  return html`<div class="grid-frame"><div class="grid" ref=${place} role="grid" aria-label=${label} aria-rowcount=${length + 1} aria-multiselectable=${selected ? "true" : undefined} tabindex="0"
      aria-activedescendant=${focused >= first && focused < last ? `row-${focused}` : undefined} onKeyDown=${onKey} onCopy=${onCopy} onScroll=${(event) => setTop(event.target.scrollTop)}>
    <div class="grid-head" role="row" aria-rowindex="1">
      ${selected && html`<div class="grid-cell check" role="columnheader"><input type="checkbox" aria-label="Select all rows" tabindex="-1" checked=${length > 0 && selected.size === length} onClick=${() => onSelect?.(new Set(selected.size === length ? [] : Array.from({ length }, (_, n) => n)))} /></div>`}
      ${columns.map(({ name, title = name, of }) => html`<div key=${name} class=${`grid-cell ${isNumeric(of) ? "is-number" : ""}`} role="columnheader" style=${width(name)} title=${title} aria-sort=${sorted?.name === name ? (sorted.descending ? "descending" : "ascending") : undefined}>${onSort ? html`<button class="plain sort" tabindex="-1" onClick=${() => onSort(name)}>${title}${sorted?.name === name ? (sorted.descending ? " ▾" : " ▴") : ""}</button>` : title}<span class="grid-resize" aria-hidden="true" onPointerDown=${(event) => resize(event, name)}></span></div>`)}
    </div>
    <div class="grid-body" role="rowgroup" style=${{ height: `${bodyPx}px` }}>${shown}</div>
  </div>${length === 0 && empty && html`<div class="grid-empty">${empty}</div>`}</div>`;
}

/** Columns for rows: the first names that are met, most common ones first. @param {any[]} rows @param {string[]} [leading] */
export function columnsOf(rows, leading = [], max = 12) {
  const counts = new Map();
  for (const row of rows.slice(0, 200)) {
    if (row === null || typeof row !== "object" || Array.isArray(row)) return [{ name: "value", of: (row) => row }];
    for (const name of Object.keys(row)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const hidden = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);
  const rest = [...counts.entries()].filter(([name]) => !leading.includes(name) && !hidden.has(name)).sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return [...leading, ...rest].slice(0, max).map((name) => ({ name, of: (row) => (row !== null && typeof row === "object" && Object.hasOwn(row, name) ? row[name] : undefined) }));
}
