// Databases and their containers, and the pages of the one that is open.
import { html, useState } from "../vendor/preact.js";
import { databases, loadTree, readOnly, route, to, treeError, READ_ONLY } from "../state.js";
import { ErrorBox, Loading } from "./ui.js";
import { kindOf } from "../api/kinds.js";
import { pagesOf } from "../pages.js";

/** From so many containers on there is a field to find one. */
const FILTER_FROM = 8;

export function Tree() {
  const [filter, setFilter] = useState("");
  const [closed, setClosed] = useState(() => new Set());
  const [first, db, coll, page = "items"] = route.value;
  if (treeError.value) return html`<${ErrorBox} error=${treeError.value} title="Cannot list the databases" onRetry=${loadTree} />`;
  if (!databases.value) return html`<${Loading} />`;
  const total = databases.value.reduce((sum, one) => sum + one.containers.length, 0);
  const matches = (id) => id.toLowerCase().includes(filter.toLowerCase());
  const toggle = (id) => {
    const next = new Set(closed);
    next.delete(id) || next.add(id);
    setClosed(next);
  };
  return html`
    <div class="tree-head">
      <a class="button small primary" href="#/new" aria-disabled=${readOnly.value ? "true" : undefined} title=${readOnly.value ? READ_ONLY : undefined}>New container</a>
      <button class="plain small" onClick=${loadTree} aria-label="Read the databases again" title="Read the databases again">⟳</button>
    </div>
    ${total >= FILTER_FROM && html`<input class="tree-filter" type="search" aria-label="Find a container" placeholder="Find a container" value=${filter} onInput=${(event) => setFilter(event.target.value)} />`}
    ${databases.value.length === 0 && html`<p class="muted pad">No databases yet.</p>`}
    <ul>${databases.value.map((database) => {
      const containers = database.containers.filter((one) => matches(one.id) || matches(database.id));
      if (filter && containers.length === 0) return null;
      const open = !closed.has(database.id);
      return html`<li key=${database.id}>
        <div class="tree-row"><button class="plain twist" aria-expanded=${open ? "true" : "false"} aria-label=${`${open ? "Close" : "Open"} ${database.id}`} onClick=${() => toggle(database.id)}>${open ? "▾" : "▸"}</button>
          <a class="tree-db" href=${to("d", database.id)} aria-current=${first === "d" && db === database.id ? "page" : undefined}>${database.id}</a></div>
        ${open && html`<ul>${containers.map((one) => {
          const here = first === "c" && db === database.id && coll === one.id;
          return html`<li key=${one.id}>
            <a class=${`tree-coll ${here ? "here" : ""} ${one.id.startsWith("$") ? "system" : ""}`} title=${one.id.startsWith("$") ? "Kept by an API for itself" : undefined} href=${to("c", database.id, one.id, "items")}>${one.id}${kindOf(database.id, one) !== "container" && html` <small class="muted">${kindOf(database.id, one)}</small>`}</a>
            ${here && html`<ul class="tree-pages">${Object.entries(pagesOf(database.id, one)).map(([path, [, title]]) => html`<li key=${path}><a href=${to("c", database.id, one.id, path)} aria-current=${path === page ? "page" : undefined}>${title}</a></li>`)}</ul>`}
          </li>`;
        })}</ul>`}
      </li>`;
    })}</ul>
    <ul class="tree-foot">
      <li><a href="#/activity" aria-current=${first === "activity" ? "page" : undefined}>Activity</a></li>
      <li><a href="#/faults" aria-current=${first === "faults" ? "page" : undefined}>Faults & throttling</a></li>
    </ul>`;
}
