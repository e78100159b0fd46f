// The picture of a graph as data: which vertices and edges it shows, how they came, how they look. No drawing, no requests.
import { elementsIn } from "./kinds.js";

/** Vertices and edges together; a picture of more says nothing. */
export const ELEMENTS_MAX = 2000;
/** Colours that can be told apart in light and dark, by most eyes; with letters where it matters. */
export const PALETTE = ["#4c6ef5", "#e8590c", "#2b8a3e", "#ae3ec9", "#0b7285", "#c2255c", "#866118", "#5f3dc4", "#1971c2", "#66a80f"];

/** @typedef {{id: string, label: string, properties: [string, any[]][], ghost: boolean, x?: number, y?: number, vx?: number, vy?: number, fx?: number | null, fy?: number | null, degree: number, by: string}} Node */
/** @typedef {{id: string, label: string, properties: [string, any[]][], source: any, target: any}} Edge */

export class Picture {
  constructor() {
    /** @type {Map<string, Node>} */
    this.nodes = new Map();
    /** @type {Map<string, Edge>} */
    this.edges = new Map();
    this.left = 0;
  }

  get size() {
    return this.nodes.size + this.edges.size;
  }

  /**
   * Adds whatever vertices and edges an answer holds. An end of an edge that nobody has read yet is a ghost: its id and label are known.
   * @param {any} answer @param {string} [by] the vertex that was expanded
   */
  add(answer, by = "") {
    const found = elementsIn(answer);
    const near = this.nodes.get(by);
    const put = (id, label, properties) => {
      const there = this.nodes.get(id);
      if (there) {
        if (properties) Object.assign(there, { label, properties, ghost: false });
        return true;
      }
      if (this.size >= ELEMENTS_MAX) return false;
      const spread = 30 + Math.random() * 60, angle = Math.random() * 2 * Math.PI;
      const place = near ? { x: (near.x ?? 0) + spread * Math.cos(angle), y: (near.y ?? 0) + spread * Math.sin(angle) } : {};
      this.nodes.set(id, { id, label, properties: properties ?? [], ghost: !properties, degree: 0, by, ...place });
      return true;
    };
    const before = this.size;
    let left = 0;
    for (const one of found) if (!one.edge && !put(one.id, one.label, one.properties)) left += 1;
    for (const one of found) {
      if (!one.edge || this.edges.has(one.id)) continue;
      if (this.size >= ELEMENTS_MAX || !put(one.from, one.fromLabel ?? "", null) || !put(one.to, one.toLabel ?? "", null) || this.size >= ELEMENTS_MAX) left += 1;
      else this.edges.set(one.id, { id: one.id, label: one.label, properties: one.properties, source: one.from, target: one.to });
    }
    this.left = left;
    this.count();
    return { found: found.length, added: this.size - before, left };
  }

  count() {
    for (const node of this.nodes.values()) node.degree = 0;
    for (const edge of this.edges.values()) for (const id of ends(edge)) {
      const node = this.nodes.get(id);
      if (node) node.degree += 1;
    }
  }

  /** Takes a vertex out, with its edges. @param {string} id */
  remove(id) {
    this.nodes.delete(id);
    for (const edge of [...this.edges.values()]) if (ends(edge).includes(id)) this.edges.delete(edge.id);
    this.count();
  }

  /** Takes back what expanding a vertex brought: the neighbours that nothing else holds. @param {string} id */
  collapse(id) {
    const gone = [...this.nodes.values()].filter((node) => node.by === id && this.neighbours(node.id).every((other) => other === id || this.nodes.get(other)?.by === id));
    for (const node of gone) this.remove(node.id);
    return gone.length;
  }

  /** @param {string} id */
  neighbours(id) {
    return [...this.edges.values()].flatMap((edge) => {
      const [from, to] = ends(edge);
      return from === id ? [to] : to === id ? [from] : [];
    });
  }

  /** Labels with how many there are. @returns {{vertices: [string, number][], edges: [string, number][]}} */
  labels() {
    const counted = (/** @type {Iterable<any>} */ all) => {
      const counts = new Map();
      for (const one of all) counts.set(one.label, (counts.get(one.label) ?? 0) + 1);
      return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
    };
    return { vertices: counted(this.nodes.values()), edges: counted(this.edges.values()) };
  }

  /** Names of properties, most common first. */
  properties() {
    const counts = new Map();
    for (const node of this.nodes.values()) for (const [name] of node.properties) counts.set(name, (counts.get(name) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  }
}

/** The ids of an edge's ends, before and after the layout has put vertices in their place. @param {Edge} edge @returns {[string, string]} */
export const ends = (edge) => [edge.source.id ?? edge.source, edge.target.id ?? edge.target];

/** The text under a vertex. @param {Node} node @param {string} by "id", "label" or a property */
export function caption(node, by) {
  if (by === "label") return node.label;
  const value = by && by !== "id" ? node.properties.find(([name]) => name === by)?.[1][0] : undefined;
  return value === undefined ? node.id : typeof value === "string" ? value : JSON.stringify(value);
}

/** What a vertex is coloured by. @param {Node} node @param {string} by "label" or a property */
export const groupOf = (node, by) => (by === "label" ? node.label : String(node.properties.find(([name]) => name === by)?.[1][0] ?? "–"));

/** Colours for groups, always the same for the same set of names. @param {string[]} groups @returns {Map<string, string>} */
export const coloursFor = (groups) => new Map([...new Set(groups)].sort().map((name, n) => [name, PALETTE[n % PALETTE.length]]));
