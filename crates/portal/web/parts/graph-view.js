// A graph to look at: the canvas, what it shows by label, how it looks, and the element that is chosen. Whoever uses it says what
// expanding a vertex means; without that it only shows.
import { html, useMemo, useRef, useState } from "../vendor/preact.js";
import { ELEMENTS_MAX, caption, coloursFor, ends, groupOf } from "../api/graph.js";
import { cell } from "../api/json.js";
import { Canvas } from "./canvas.js";
import { Choice, count, download, plural } from "./ui.js";

const ROWS_MAX = 200;
const VALUE_CHARS_MAX = 200;

/**
 * @param {{picture: import("../api/graph.js").Picture, version: number, onChange: () => void, onExpand?: (id: string, direction: string) => Promise<void>,
 *   onDrop?: (element: any) => void, onProperty?: (element: any) => void, busy?: boolean}} properties
 */
export function GraphView({ picture, version, onChange, onExpand, onDrop, onProperty, busy = false }) {
  const [selected, setSelected] = useState("");
  const [edge, setEdge] = useState("");
  const [hidden, setHidden] = useState(() => new Set());
  const [look, setLook] = useState({ caption: "id", colour: "label", size: "degree" });
  const tools = useRef(/** @type {any} */ (null));
  const labels = useMemo(() => picture.labels(), [picture, version]);
  const names = useMemo(() => picture.properties(), [picture, version]);
  const colours = coloursFor([...picture.nodes.values()].map((node) => groupOf(node, look.colour)));
  const node = picture.nodes.get(selected) ?? null;
  const line = picture.edges.get(edge) ?? null;
  const toggle = (name) => {
    const next = new Set(hidden);
    next.delete(name) || next.add(name);
    setHidden(next);
  };
  const choose = (id) => (setSelected(id), setEdge(""));
  const expand = (id, direction = "both") => onExpand?.(id, direction);
  const pin = () => {
    if (node?.fx != null) Object.assign(node, { fx: null, fy: null });
    else if (node) Object.assign(node, { fx: node.x, fy: node.y });
    onChange();
  };
  const options = (first) => [...first, ...names].map((name) => html`<option key=${name} value=${name}>${name}</option>`);
  return html`<div class="graph">
    <div class="graph-main">
      <div class="graph-place">
        <${Canvas} picture=${picture} version=${version} look=${look} hidden=${hidden} selected=${selected} onSelect=${choose} onOpen=${(id) => (choose(id), expand(id))} handle=${(made) => (tools.current = made)} />
        <div class="graph-tools" role="group" aria-label="View"><button class="small" aria-label="Zoom in" onClick=${() => tools.current?.zoom(1.3)}>+</button><button class="small" aria-label="Zoom out" onClick=${() => tools.current?.zoom(0.77)}>−</button>
          <button class="small" title="Show all (0)" onClick=${() => tools.current?.fit()}>Fit</button><button class="small" title="Arrange anew" onClick=${() => tools.current?.again()}>Arrange</button><button class="small" onClick=${() => download("graph.json", [JSON.stringify(elements(picture), null, 1)], "application/json")}>JSON</button></div>
        <p class="graph-count small" role="status">${plural(picture.nodes.size, "vertex", "vertices")}, ${plural(picture.edges.size, "edge")}${busy ? " · asking…" : ""}</p>
      </div>
      ${picture.left > 0 && html`<p class="badge warn">The picture holds ${count(ELEMENTS_MAX)} elements; ${count(picture.left)} more were left out. Ask for fewer, or hide some.</p>`}
    </div>
    <aside class="graph-side" aria-label="About the graph">
      ${node ? html`<section class="card" aria-label=${`Vertex ${node.id}`}><h2><span class="dot" style=${{ background: colours.get(groupOf(node, look.colour)) }}></span>${caption(node, look.caption)}</h2>
        <p class="muted small"><code>${node.id}</code> · ${node.label || "no label"} · ${plural(node.degree, "edge")} shown${node.ghost ? " · not read yet" : ""}</p>
        <${Properties} of=${node} />
        <div class="row">${onExpand && html`<button class="primary small" disabled=${busy} onClick=${() => expand(node.id)}>Expand</button><button class="small" disabled=${busy} onClick=${() => expand(node.id, "out")}>Out</button><button class="small" disabled=${busy} onClick=${() => expand(node.id, "in")}>In</button>`}
          <button class="small" title="Takes back what expanding it brought" onClick=${() => (picture.collapse(node.id), onChange())}>Collapse</button><button class="small" aria-pressed=${node.fx != null ? "true" : "false"} onClick=${pin}>${node.fx != null ? "Unpin" : "Pin"}</button>
          <button class="small" onClick=${() => (picture.remove(node.id), choose(""), onChange())}>Hide</button>
          ${onProperty && html`<button class="small" onClick=${() => onProperty(node)}>Set property</button>`}${onDrop && html`<button class="small" onClick=${() => onDrop(node)}>Delete</button>`}</div></section>`
      : line ? html`<section class="card" aria-label=${`Edge ${line.id}`}><h2>${line.label}</h2><p class="muted small"><code>${line.id}</code><br />${ends(line).join(" → ")}</p><${Properties} of=${line} /></section>`
      : html`<p class="muted small">Click a vertex to see it, double-click to expand it. Drag to move, wheel to zoom.</p>`}
      <section class="card"><h2>Shown</h2>
        ${labels.vertices.map(([label, n]) => html`<label key=${`v:${label}`} class="row small"><input type="checkbox" checked=${!hidden.has(`v:${label}`)} onChange=${() => toggle(`v:${label}`)} />${look.colour === "label" && html`<span class="dot" style=${{ background: colours.get(label) }}></span>`}<span class="grow">${label || "(no label)"}</span><span class="muted">${count(n)}</span></label>`)}
        ${labels.edges.length > 0 && html`<p class="muted small gap-top">Edges</p>`}
        ${labels.edges.map(([label, n]) => html`<label key=${`e:${label}`} class="row small"><input type="checkbox" checked=${!hidden.has(`e:${label}`)} onChange=${() => toggle(`e:${label}`)} /><span class="grow">→ ${label}</span><span class="muted">${count(n)}</span></label>`)}
      </section>
      <section class="card"><h2>Style</h2>
        <label class="row small"><span class="grow">Text</span><select value=${look.caption} onChange=${(event) => setLook({ ...look, caption: event.target.value })}>${options(["id", "label"])}</select></label>
        <label class="row small"><span class="grow">Colour</span><select value=${look.colour} onChange=${(event) => setLook({ ...look, colour: event.target.value })}>${options(["label"])}</select></label>
        <div class="row small"><span class="grow">Size</span><${Choice} label="Size of vertices" value=${look.size} options=${[["degree", "by edges"], ["same", "same"]]} onChange=${(size) => setLook({ ...look, size })} /></div>
        ${look.colour !== "label" && html`<p class="small">${[...colours].slice(0, 12).map(([name, colour]) => html`<span key=${name} class="nowrap"><span class="dot" style=${{ background: colour }}></span>${name} </span>`)}</p>`}
      </section>
    </aside>
    <details class="graph-table"><summary>The same as a table</summary><div class="scroll-x" tabindex="0" role="region" aria-label="Vertices and edges"><table class="plain-table"><thead><tr><th>Vertex</th><th>Label</th><th class="number">Edges</th><th>To</th></tr></thead>
      <tbody>${[...picture.nodes.values()].slice(0, ROWS_MAX).map((one) => html`<tr key=${one.id} class=${one.id === selected ? "chosen" : ""}><td><button class="link" onClick=${() => choose(one.id)}>${caption(one, look.caption)}</button></td><td>${one.label}</td><td class="number">${one.degree}</td>
        <td class="small">${[...picture.edges.values()].filter((line) => ends(line)[0] === one.id).slice(0, 8).map((line) => html`<button key=${line.id} class="link" onClick=${() => (setSelected(""), setEdge(line.id))}>${line.label} → ${ends(line)[1]}</button> `)}</td></tr>`)}</tbody></table></div></details>
  </div>`;
}

function Properties({ of }) {
  if (of.properties.length === 0) return html`<p class="muted small">No properties.</p>`;
  return html`<table class="plain-table small"><tbody>${of.properties.map((/** @type {[string, any[]]} */ [name, values]) => html`<tr key=${name}><th scope="row">${name}</th><td>${values.map((value) => cell(value).slice(0, VALUE_CHARS_MAX)).join(", ")}</td></tr>`)}</tbody></table>`;
}

/** The picture as data for somebody else's tool. @param {import("../api/graph.js").Picture} picture */
const elements = (picture) => ({
  vertices: [...picture.nodes.values()].map(({ id, label, properties, x, y }) => ({ id, label, properties: Object.fromEntries(properties), x, y })),
  edges: [...picture.edges.values()].map((edge) => ({ id: edge.id, label: edge.label, from: ends(edge)[0], to: ends(edge)[1], properties: Object.fromEntries(edge.properties) })),
});
