// A graph on a canvas: vertices that push each other away, edges that pull, to be moved, zoomed, dragged and opened. Positions stay when
// something is added. Only what is in view is drawn, lines of one colour in one go, texts where there is room.
import { html, useEffect, useRef } from "../vendor/preact.js";
import { caption, coloursFor, ends, groupOf } from "../api/graph.js";
import { theme } from "../state.js";

const RADIUS = 7, RADIUS_MAX = 22;
const ZOOM_MIN = 0.05, ZOOM_MAX = 6;
/** Ticks before the first drawing, so that the picture does not begin as a knot; fewer where each takes longer. */
const SETTLE_MS = 250;
const TEXT_FROM_ZOOM = 0.75;
const ARROWS_FROM_ZOOM = 0.45;
const CAPTION_CHARS_MAX = 24;
/** More labels of edges than this hide the edges. */
const LABELS_MAX = 30;

/** @type {Promise<any> | null} */
let loading = null;
const load = () => (loading ??= import("../vendor/force.js"));

const resolved = (name, /** @type {HTMLElement} */ at) => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  at.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

/**
 * @param {{picture: import("../api/graph.js").Picture, version: number, look: {caption: string, colour: string, size: string}, hidden: Set<string>,
 *   selected: string, onSelect: (id: string) => void, onOpen: (id: string) => void, handle?: (tools: any) => void}} properties
 */
export function Canvas({ picture, version, look, hidden, selected, onSelect, onOpen, handle }) {
  const place = useRef(null);
  const state = useRef(/** @type {any} */ ({ zoom: 1, x: 0, y: 0, dirty: true, over: "", frames: 0 }));
  const now = useRef(/** @type {any} */ (null));
  now.current = { look, hidden, selected, onSelect, onOpen, picture };

  useEffect(() => {
    const canvas = /** @type {HTMLCanvasElement} */ (place.current);
    const view = state.current;
    let over = false;
    const wake = () => (view.dirty = true);
    const observer = new ResizeObserver(() => {
      canvas.width = canvas.clientWidth * devicePixelRatio;
      canvas.height = canvas.clientHeight * devicePixelRatio;
      wake();
    });
    observer.observe(canvas);
    const frame = () => {
      if (over) return;
      const simulation = view.simulation;
      if (simulation && simulation.alpha() > simulation.alphaMin()) {
        simulation.tick();
        wake();
      }
      if (view.dirty) {
        view.dirty = false;
        draw(canvas, view, now.current);
        view.frames += 1;
        canvas.dataset.frames = String(view.frames);
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    canvas.addEventListener("wheel", (event) => (event.preventDefault(), zoomAt(canvas, view, event.offsetX, event.offsetY, Math.exp(-event.deltaY / 500))), { passive: false });
    const tools = {
      zoom: (by) => zoomAt(canvas, view, canvas.clientWidth / 2, canvas.clientHeight / 2, by),
      fit: () => fit(canvas, view, now.current.picture),
      again: () => (view.simulation?.alpha(0.6), wake()),
      image: () => canvas.toDataURL("image/png"),
    };
    handle?.(tools);
    return () => {
      over = true;
      observer.disconnect();
      view.simulation?.stop();
    };
  }, []);

  // The layout goes on with what is there now.
  useEffect(() => {
    let gone = false;
    load().then((force) => {
      const view = state.current;
      if (gone) return;
      const nodes = [...picture.nodes.values()], edges = [...picture.edges.values()];
      for (const edge of edges) [edge.source, edge.target] = ends(edge).map((id) => picture.nodes.get(id));
      const first = !view.simulation || view.empty;
      view.empty = nodes.length === 0;
      view.simulation?.stop();
      const many = nodes.length > 800;
      const simulation = (view.simulation = force.forceSimulation(nodes).stop());
      simulation
        .force("link", force.forceLink(edges).distance(55).strength((edge) => 1 / Math.min(8, Math.max(1, Math.min(edge.source.degree, edge.target.degree)))))
        .force("charge", force.forceManyBody().strength(-110).theta(many ? 1.2 : 0.9).distanceMax(many ? 500 : 1200))
        .force("x", force.forceX().strength(0.03)).force("y", force.forceY().strength(0.03))
        .alphaDecay(many ? 0.045 : 0.028);
      if (!many) simulation.force("collide", force.forceCollide(RADIUS * 1.8));
      simulation.alpha(first ? 1 : 0.5);
      if (first || matchMedia("(prefers-reduced-motion: reduce)").matches) {
        const until = performance.now() + SETTLE_MS * (matchMedia("(prefers-reduced-motion: reduce)").matches ? 4 : 1);
        while (performance.now() < until && simulation.alpha() > simulation.alphaMin()) simulation.tick();
        fit(/** @type {HTMLCanvasElement} */ (place.current), view, picture);
      }
      view.dirty = true;
    });
    return () => void (gone = true);
  }, [picture, version]);
  useEffect(() => void (state.current.colours = null, state.current.dirty = true), [theme.value, look, hidden, selected, version]);

  const at = (event) => hit(state.current, now.current, event.offsetX, event.offsetY, /** @type {HTMLCanvasElement} */ (place.current));
  const down = (event) => {
    const canvas = /** @type {HTMLCanvasElement} */ (place.current);
    const view = state.current;
    const node = at(event);
    canvas.setPointerCapture(event.pointerId);
    let moved = 0, last = [event.offsetX, event.offsetY];
    const move = (next) => {
      const [dx, dy] = [next.offsetX - last[0], next.offsetY - last[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      last = [next.offsetX, next.offsetY];
      if (node && moved > 3) {
        [node.fx, node.fy] = world(canvas, view, next.offsetX, next.offsetY);
        if (view.simulation && view.simulation.alpha() < 0.1) view.simulation.alpha(0.1);
      } else if (!node) {
        view.x -= dx / view.zoom;
        view.y -= dy / view.zoom;
      }
      view.dirty = true;
    };
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", () => {
      canvas.removeEventListener("pointermove", move);
      if (moved <= 3) onSelect(node?.id ?? "");
    }, { once: true });
  };
  const keys = (event) => {
    const view = state.current, canvas = /** @type {HTMLCanvasElement} */ (place.current);
    const step = 60 / view.zoom;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key in moves) view.x += moves[event.key][0], (view.y += moves[event.key][1]);
    else if (event.key === "+" || event.key === "=") zoomAt(canvas, view, canvas.clientWidth / 2, canvas.clientHeight / 2, 1.25);
    else if (event.key === "-") zoomAt(canvas, view, canvas.clientWidth / 2, canvas.clientHeight / 2, 0.8);
    else if (event.key === "0") fit(canvas, view, picture);
    else if (event.key === "n" || event.key === "p") {
      const shown = [...picture.nodes.values()].filter((node) => !hidden.has(`v:${node.label}`)).map((node) => node.id);
      onSelect(shown[(shown.indexOf(selected) + (event.key === "n" ? 1 : shown.length - 1)) % shown.length] ?? "");
    } else if (event.key === "Enter" && selected) onOpen(selected);
    else return;
    view.dirty = true;
    event.preventDefault();
  };
  return html`<canvas ref=${place} class="graph-canvas" tabindex="0" role="img" aria-label=${`Picture of ${picture.nodes.size} vertices and ${picture.edges.size} edges. n and p go from vertex to vertex, Enter expands, arrows move, plus and minus zoom, 0 shows all. The same is in the table below.`}
    onPointerDown=${down} onDblClick=${(event) => { const node = at(event); if (node) onOpen(node.id); }} onKeyDown=${keys}
    onPointerMove=${(event) => { const id = at(event)?.id ?? ""; if (id !== state.current.over) (state.current.over = id), (state.current.dirty = true), (event.target.style.cursor = id ? "pointer" : "grab"); }}></canvas>`;
}

/** @param {HTMLCanvasElement} canvas @param {any} view @param {number} x @param {number} y */
const world = (canvas, view, x, y) => [view.x + (x - canvas.clientWidth / 2) / view.zoom, view.y + (y - canvas.clientHeight / 2) / view.zoom];

/** @param {HTMLCanvasElement} canvas @param {any} view @param {number} x @param {number} y @param {number} by */
function zoomAt(canvas, view, x, y, by) {
  const before = world(canvas, view, x, y);
  view.zoom = Math.max(ZOOM_MIN, Math.min(ZOOM_MAX, view.zoom * by));
  const after = world(canvas, view, x, y);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  view.dirty = true;
}

/** @param {HTMLCanvasElement | null} canvas @param {any} view @param {any} picture */
function fit(canvas, view, picture) {
  if (!canvas || picture.nodes.size === 0) return;
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x = 0, y = 0 } of picture.nodes.values()) [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
  view.x = (left + right) / 2;
  view.y = (top + bottom) / 2;
  view.zoom = Math.max(ZOOM_MIN, Math.min(2, (canvas.clientWidth - 80) / (right - left + 1), (canvas.clientHeight - 80) / (bottom - top + 1)));
  view.dirty = true;
}

const radius = (node, size) => (size === "degree" ? Math.min(RADIUS_MAX, RADIUS + 1.6 * Math.sqrt(node.degree)) : RADIUS);

/** The vertex under a point. @param {any} view @param {any} properties @param {number} x @param {number} y @param {HTMLCanvasElement} canvas */
function hit(view, { picture, hidden, look }, x, y, canvas) {
  const [wx, wy] = world(canvas, view, x, y);
  let best = null, near = Infinity;
  for (const node of picture.nodes.values()) {
    if (hidden.has(`v:${node.label}`)) continue;
    const distance = Math.hypot(node.x - wx, node.y - wy);
    if (distance < Math.max(radius(node, look.size), 9 / view.zoom) && distance < near) (best = node), (near = distance);
  }
  return best;
}

/** @param {HTMLCanvasElement} canvas @param {any} view @param {any} properties */
function draw(canvas, view, { picture, look, hidden, selected }) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const parent = /** @type {HTMLElement} */ (canvas.parentElement);
  view.colours ??= { line: resolved("--line-strong", parent), text: resolved("--text", parent), muted: resolved("--muted", parent), panel: resolved("--panel", parent), accent: resolved("--accent", parent), groups: coloursFor([...picture.nodes.values()].map((node) => groupOf(node, look.colour))) };
  const { colours, zoom } = view;
  const scale = devicePixelRatio * zoom;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, canvas.width / 2 - view.x * scale, canvas.height / 2 - view.y * scale);
  const [left, top] = world(canvas, view, -40, -40), [right, bottom] = world(canvas, view, canvas.clientWidth + 40, canvas.clientHeight + 40);
  const inside = (node) => node.x > left && node.x < right && node.y > top && node.y < bottom;
  const focus = view.over || selected;
  const shown = [...picture.edges.values()].filter((edge) => edge.source.id !== undefined && !hidden.has(`e:${edge.label}`) && !hidden.has(`v:${edge.source.label}`) && !hidden.has(`v:${edge.target.label}`) && (inside(edge.source) || inside(edge.target)));
  const strong = focus ? shown.filter((edge) => edge.source.id === focus || edge.target.id === focus) : [];
  lines(context, shown, colours.line, 1 / zoom, zoom > ARROWS_FROM_ZOOM, look.size);
  lines(context, strong, colours.accent, 2 / zoom, true, look.size);
  // Vertices, a colour at a time.
  const byColour = new Map();
  for (const node of picture.nodes.values()) {
    if (hidden.has(`v:${node.label}`) || node.x === undefined || !inside(node)) continue;
    const colour = colours.groups.get(groupOf(node, look.colour)) ?? colours.muted;
    if (!byColour.has(colour)) byColour.set(colour, []);
    byColour.get(colour).push(node);
  }
  for (const [colour, nodes] of byColour) {
    context.beginPath();
    for (const node of nodes) {
      const r = radius(node, look.size);
      context.moveTo(node.x + r, node.y);
      context.arc(node.x, node.y, r, 0, 2 * Math.PI);
    }
    context.fillStyle = colour;
    context.fill();
    const marked = nodes.filter((node) => node.ghost || node.fx != null || node.id === selected || node.id === view.over);
    for (const node of marked) {
      const r = radius(node, look.size);
      context.beginPath();
      context.arc(node.x, node.y, node.ghost ? r - 2 : r + 2.5 / zoom, 0, 2 * Math.PI);
      if (node.ghost) (context.fillStyle = colours.panel), context.fill();
      context.strokeStyle = node.id === selected ? colours.text : node.fx != null ? colours.muted : colours.accent;
      context.lineWidth = (node.id === selected ? 3 : 1.5) / zoom;
      context.stroke();
    }
  }
  // Texts, where there is room for them.
  const texts = zoom >= TEXT_FROM_ZOOM || picture.nodes.size <= 60;
  context.textAlign = "center";
  context.textBaseline = "top";
  context.font = `${11 / Math.max(0.8, Math.min(zoom, 1.4))}px system-ui, sans-serif`;
  context.lineJoin = "round";
  for (const nodes of byColour.values()) for (const node of nodes) {
    if (!texts && node.id !== focus && node.id !== selected) continue;
    const text = caption(node, look.caption).slice(0, CAPTION_CHARS_MAX);
    context.strokeStyle = colours.panel;
    context.lineWidth = 3;
    context.strokeText(text, node.x, node.y + radius(node, look.size) + 2);
    context.fillStyle = colours.text;
    context.fillText(text, node.x, node.y + radius(node, look.size) + 2);
  }
  if (zoom >= TEXT_FROM_ZOOM && shown.length <= LABELS_MAX) for (const edge of shown) label(context, edge, colours);
  else for (const edge of strong.slice(0, 60)) label(context, edge, colours);
}

/** @param {CanvasRenderingContext2D} context @param {any} edge @param {any} colours */
function label(context, edge, colours) {
  const [x, y] = [(edge.source.x + edge.target.x) / 2, (edge.source.y + edge.target.y) / 2 - 5];
  context.strokeStyle = colours.panel;
  context.lineWidth = 3;
  context.strokeText(edge.label, x, y);
  context.fillStyle = colours.muted;
  context.fillText(edge.label, x, y);
}

/** @param {CanvasRenderingContext2D} context @param {any[]} edges @param {string} colour @param {number} width @param {boolean} arrows @param {string} size */
function lines(context, edges, colour, width, arrows, size) {
  if (edges.length === 0) return;
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  for (const { source, target } of edges) {
    if (source === target) {
      context.moveTo(source.x + 10, source.y - 12);
      context.arc(source.x, source.y - 12, 10, 0, 2 * Math.PI);
      continue;
    }
    context.moveTo(source.x, source.y);
    context.lineTo(target.x, target.y);
  }
  context.stroke();
  if (!arrows) return;
  context.beginPath();
  for (const { source, target } of edges) {
    const [dx, dy] = [target.x - source.x, target.y - source.y];
    const length = Math.hypot(dx, dy) || 1;
    const r = radius(target, size) + 1;
    const [ux, uy] = [dx / length, dy / length];
    const [tx, ty] = [target.x - ux * r, target.y - uy * r];
    context.moveTo(tx, ty);
    context.lineTo(tx - 7 * ux - 3 * uy, ty - 7 * uy + 3 * ux);
    context.lineTo(tx - 7 * ux + 3 * uy, ty - 7 * uy - 3 * ux);
  }
  context.fill();
}
