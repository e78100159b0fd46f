// A table of any length: only the rows in view exist. One row has the focus; arrows move it, letters act on it.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { cell, isNumber } from "../api/json.js";

const ROW_PX = 30;
/** Rows that are drawn beyond the edges. */
const MARGIN = 8;
const WIDTH_PX = 180;
/** A cell shows no more of a long text. */
const CELL_CHARS_MAX = 300;

/**
 * @param {{label: string, columns: {name: string, of: (row: any) => unknown}[], rows: any[], selected?: Set<number>, onSelect?: (next: Set<number>) => void,
 *   onOpen?: (at: number) => void, onEnd?: () => void, onDelete?: () => void, total?: number, empty?: any, remember?: string}} properties
 */
export function Table({ label, columns, rows, selected, onSelect, onOpen, onEnd, onDelete, empty = null, remember = "" }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
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

  const first = Math.max(0, Math.floor(top / ROW_PX) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + MARGIN);
  useEffect(() => {
    if (last >= rows.length - MARGIN) onEnd?.();
  }, [last, rows.length]);

  const focus = (/** @type {number} */ at) => {
    const next = Math.max(0, Math.min(rows.length - 1, at));
    setFocused(next);
    const element = /** @type {HTMLElement} */ (place.current);
    const y = next * ROW_PX;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + 2 * ROW_PX > element.scrollTop + element.clientHeight) element.scrollTop = y + 2 * ROW_PX - element.clientHeight;
  };
  const toggle = (/** @type {number} */ at, range = false) => {
    if (!onSelect || !selected) return;
    const next = new Set(selected);
    const [from, to] = range ? [Math.min(anchor.current, at), Math.max(anchor.current, at)] : [at, at];
    const on = range || !next.has(at);
    for (let n = from; n <= to; n += 1) on ? next.add(n) : next.delete(n);
    anchor.current = at;
    onSelect(next);
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / ROW_PX) - 2);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: rows.length };
    if (event.key in moves) focus(Math.max(0, focused + moves[event.key]));
    else if (event.key === "Enter" || event.key === "e") onOpen?.(focused);
    else if (event.key === "x" || event.key === " ") toggle(focused, event.shiftKey);
    else if (event.key === "Delete") onDelete?.();
    else return;
    event.preventDefault();
  };
  const resize = (/** @type {PointerEvent} */ event, /** @type {string} */ name) => {
    event.preventDefault();
    event.stopPropagation();
    const handle = /** @type {HTMLElement} */ (event.target);
    handle.setPointerCapture(event.pointerId);
    const from = event.clientX - (widths[name] ?? WIDTH_PX);
    const move = (/** @type {PointerEvent} */ moved) => setWidths((before) => ({ ...before, [name]: Math.max(60, moved.clientX - from) }));
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => {
      handle.removeEventListener("pointermove", move);
      setWidths((now) => (store && localStorage.setItem(store, JSON.stringify(now)), now));
    }, { once: true });
  };
  const width = (/** @type {string} */ name) => ({ width: `${widths[name] ?? WIDTH_PX}px` });
  const shown = [];
  for (let at = first; at < last; at += 1) {
    const row = rows[at];
    shown.push(html`<div key=${at} id=${`row-${at}`} role="row" aria-rowindex=${at + 2} aria-selected=${selected ? (selected.has(at) ? "true" : "false") : undefined}
        class=${`grid-row ${selected?.has(at) ? "selected" : ""} ${at === focused ? "focused" : ""}`} style=${{ top: `${at * ROW_PX}px` }}
        onClick=${(/** @type {MouseEvent} */ event) => (setFocused(at), event.shiftKey ? toggle(at, true) : onOpen?.(at))}>
      ${selected && html`<div class="grid-cell check" role="gridcell" onClick=${(/** @type {Event} */ event) => event.stopPropagation()}><input type="checkbox" tabindex="-1" aria-label="Select" checked=${selected.has(at)} onClick=${(/** @type {MouseEvent} */ event) => toggle(at, event.shiftKey)} /></div>`}
      ${columns.map(({ name, of }) => {
        const value = of(row);
        const text = cell(value);
        return html`<div key=${name} role="gridcell" class=${`grid-cell ${isNumber(value) ? "is-number" : ""} ${value === undefined || value === null ? "absent" : ""}`} style=${width(name)}>${text.length > CELL_CHARS_MAX ? `${text.slice(0, CELL_CHARS_MAX)}…` : text}</div>`;
      })}
    </div>`);
  }
  return html`<div class="grid" ref=${place} role="grid" aria-label=${label} aria-rowcount=${rows.length + 1} aria-multiselectable=${selected ? "true" : undefined} tabindex="0"
      aria-activedescendant=${focused >= first && focused < last ? `row-${focused}` : undefined} onKeyDown=${onKey} onScroll=${(/** @type {any} */ event) => setTop(event.target.scrollTop)}>
    <div class="grid-head" role="row" aria-rowindex="1">
      ${selected && html`<div class="grid-cell check" role="columnheader"><input type="checkbox" aria-label="Select all rows" tabindex="-1" checked=${rows.length > 0 && selected.size === rows.length} onClick=${() => onSelect?.(new Set(selected.size === rows.length ? [] : rows.keys()))} /></div>`}
      ${columns.map(({ name }) => html`<div key=${name} class="grid-cell" role="columnheader" style=${width(name)} title=${name}>${name}<span class="grid-resize" aria-hidden="true" onPointerDown=${(/** @type {PointerEvent} */ event) => resize(event, name)}></span></div>`)}
    </div>
    <div class="grid-body" role="rowgroup" style=${{ height: `${rows.length * ROW_PX}px` }}>${shown}</div>
    ${rows.length === 0 ? empty : null}
  </div>`;
}

/** Columns for rows: the first names that are met, most common ones first. @param {any[]} rows @param {string[]} [leading] */
export function columnsOf(rows, leading = [], max = 12) {
  const counts = new Map();
  for (const row of rows.slice(0, 200)) {
    if (row === null || typeof row !== "object" || Array.isArray(row)) return [{ name: "value", of: (/** @type {any} */ row) => row }];
    for (const name of Object.keys(row)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const hidden = new Set(["_rid", "_self", "_etag", "_attachments", "_ts"]);
  const rest = [...counts.entries()].filter(([name]) => !leading.includes(name) && !hidden.has(name)).sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return [...leading, ...rest].slice(0, max).map((name) => ({ name, of: (/** @type {any} */ row) => (row !== null && typeof row === "object" && Object.hasOwn(row, name) ? row[name] : undefined) }));
}
