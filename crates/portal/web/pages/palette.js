// Ctrl+K: everything by its name.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { databases, setTheme, to } from "../state.js";
import { pagesOf } from "../pages.js";
import { Dialog } from "../parts/ui.js";

const SHOWN_MAX = 50;

export default function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef(null);
  const link = (name, href) => ({ name, run: () => (location.hash = href) });
  const all = [
    link("Home", "#/"), link("New container", "#/new"), link("Activity", "#/activity"), link("Faults & throttling", "#/faults"),
    ...(databases.value ?? []).flatMap((db) => [link(db.id, to("d", db.id)), link(`${db.id} · Users and permissions`, to("d", db.id, "users")), ...db.containers.flatMap((one) => Object.entries(pagesOf(db.id, one)).map(([path, [, title]]) => link(`${db.id} / ${one.id} · ${title}`, to("c", db.id, one.id, path))))]),
    ...["auto", "light", "dark"].map((name) => ({ name: `Colours: ${name}`, run: () => setTheme(name) })),
  ];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((one) => words.every((word) => one.name.toLowerCase().includes(word))).slice(0, SHOWN_MAX);
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [at]);
  const choose = (n) => (onClose(), found[n]?.run());
  const key = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") choose(at);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Go to" onClose=${onClose}>
    <input class="palette-input" role="combobox" aria-label="Go to" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${found.length ? `palette-${at}` : undefined} autofocus autocomplete="off" value=${text} onInput=${(event) => (setText(event.target.value), setAt(0))} onKeyDown=${key} />
    <ul id="palette-list" class="palette-list" role="listbox" aria-label="Places" ref=${list}>${found.map((one, n) => html`<li key=${one.name} id=${`palette-${n}`} role="option" aria-selected=${n === at ? "true" : "false"} onClick=${() => choose(n)}>${one.name}</li>`)}</ul>
    ${found.length === 0 && html`<p class="muted">Nothing is called that.</p>`}
  </${Dialog}>`;
}
