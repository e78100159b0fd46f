// A list of small records to fill in: a line for each, a field for each member.
import { html } from "../vendor/preact.js";

/** @typedef {{name: string, label: string, options?: string[], type?: string, hint?: string, wide?: boolean}} Column */
/** @param {{title: string, columns: Column[], rows: any[], onChange: (rows: any[]) => void, blank: any, disabled?: boolean}} properties */
export function Rows({ title, columns, rows, onChange, blank, disabled = false }) {
  const put = (n, name, value) => onChange(rows.map((row, m) => (m === n ? { ...row, [name]: value } : row)));
  return html`<div class="rows" role="group" aria-label=${title}>
    ${rows.map((row, n) => html`<div key=${n} class="row rows-line">${columns.map((column) => html`<label key=${column.name} class=${`rows-field ${column.wide ? "grow" : ""}`}><span class="muted small">${column.label}</span>${column.options
      ? html`<select disabled=${disabled} value=${row[column.name] ?? column.options[0]} onChange=${(event) => put(n, column.name, event.target.value)}>${column.options.map((one) => html`<option key=${one}>${one}</option>`)}</select>`
      : html`<input disabled=${disabled} class="mono" type=${column.type ?? "text"} placeholder=${column.hint ?? ""} value=${row[column.name] ?? ""} onInput=${(event) => put(n, column.name, column.type === "number" ? Number(event.target.value) : event.target.value)} />`}</label>`)}
      <button type="button" class="plain small" disabled=${disabled} aria-label=${`Remove line ${n + 1} of ${title}`} onClick=${() => onChange(rows.filter((_, m) => m !== n))}>✕</button></div>`)}
    <button type="button" class="small" disabled=${disabled} onClick=${() => onChange([...rows, { ...blank }])}>Add to ${title}</button>
  </div>`;
}
