// A container as a graph: a traversal, its picture, and from there from vertex to vertex. Vertices and edges are items; whatever
// wrote them, they can be walked.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { literal, traverse } from "../api/gremlin.js";
import { keyPaths, query } from "../api/client.js";
import { pathSteps } from "../api/json.js";
import { Picture } from "../api/graph.js";
import { loadSampleGraph } from "../api/sample-graph.js";
import { announce, databases, definitionOf, readOnly, READ_ONLY } from "../state.js";
import { Confirm, Dialog, ErrorBox, Field, Loading, duration, plural } from "../parts/ui.js";
import { Editor } from "../parts/editor.js";
import { GraphView } from "../parts/graph-view.js";
import { gremlinCompleter } from "../parts/gremlin-mode.js";

/** What expanding brings at once. */
const EXPAND_MAX = 200;
const FIRST = "g.V().limit(50)";

export default function Graph({ db, coll }) {
  const store = `orrery-graph:${db}/${coll}`;
  const definition = definitionOf(db, coll);
  const [text, setText] = useState(() => sessionStorage.getItem(store) ?? FIRST);
  const picture = useRef(new Picture());
  const [version, setVersion] = useState(0);
  const [run, setRun] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [there, setThere] = useState(/** @type {boolean | null} */ (null));
  const [dropping, setDropping] = useState(null);
  const [setting, setSetting] = useState(null);
  const [steps, setSteps] = useState([]);
  const controller = useRef(null);
  const again = () => setVersion((n) => n + 1);
  const known = useRef(/** @type {any} */ ({ steps: [], names: [] }));
  const labels = picture.current.labels();
  known.current = { steps, names: [...labels.vertices, ...labels.edges].map(([name]) => name).concat(picture.current.properties()) };
  const complete = useRef(gremlinCompleter(() => known.current.steps, () => known.current.names));

  const ask = async (gremlin, keep = false, by = "") => {
    controller.current?.abort();
    const mine = (controller.current = new AbortController());
    setBusy(true);
    setError(null);
    try {
      const answer = await traverse(db, coll, gremlin, { signal: mine.signal });
      if (!keep) picture.current = new Picture();
      let added = picture.current.add(answer.rows, by);
      // Vertices without their edges are a heap: the edges among them belong to the picture.
      const inner = await between(mine.signal);
      const figures = { rows: answer.rows.length, charge: answer.charge + inner.charge, ms: answer.ms + inner.ms, elements: added.found };
      setRun({ ...figures, plain: added.found === 0 && answer.rows.length > 0 ? answer.rows : null, vertices: added.added });
      announce(`${plural(added.added, "element")} more, ${figures.charge.toFixed(1)} RU`);
    } catch (problem) {
      if (!mine.signal.aborted) setError(problem);
    }
    setBusy(false);
    again();
  };
  const between = async (signal) => {
    const nodes = [...picture.current.nodes.values()].filter((node) => !node.ghost);
    if (nodes.length < 2) return { charge: 0, ms: 0 };
    const ids = nodes.map((node) => node.id);
    const found = await query(db, coll, "SELECT * FROM c WHERE c._isEdge = true AND ARRAY_CONTAINS(@ids, c._vertexId) AND ARRAY_CONTAINS(@ids, c._sink)", { parameters: [{ name: "@ids", value: ids }], count: 1000, signal, quiet: true });
    picture.current.add(found.value.Documents);
    return found;
  };
  useEffect(() => {
    fetch(new URL("../api/steps.json", import.meta.url)).then((response) => response.json()).then(setSteps, () => {});
    // Whether there is a graph at all is what its items tell.
    query(db, coll, "SELECT TOP 1 VALUE c.id FROM c WHERE IS_STRING(c.label)", { count: 1, quiet: true }).then((answer) => {
      const found = answer.value.Documents.length > 0;
      setThere(found);
      if (found && picture.current.size === 0) ask(text);
    }, setError);
    return () => controller.current?.abort();
  }, []);
  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no container <strong>${coll}</strong> in <strong>${db}</strong>. <a href="#/">Home</a></p>`;
  const key = pathSteps(keyPaths(definition)[0] ?? "/")[0] ?? "";
  /** A vertex by its partition and id, where the partition is known. */
  const named = (node) => {
    const value = node.properties.find(([name]) => name === key)?.[1][0];
    return value === undefined ? `g.V(${literal(node.id)})` : `g.V([${literal(value)}, ${literal(node.id)}])`;
  };
  const expand = async (id, direction) => {
    const node = picture.current.nodes.get(id);
    if (node) await ask(`${named(node)}.union(identity(), ${direction}E().limit(${EXPAND_MAX}).union(identity(), otherV()))`, true, id);
  };
  const start = () => (sessionStorage.setItem(store, text), ask(text));
  const sample = async () => {
    setBusy(true);
    setError(null);
    try {
      await loadSampleGraph(db, coll, key);
      setThere(true);
      await ask((setText(FIRST), FIRST));
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  return html`<h1 class="small">${coll}</h1>
    <div class="graph-ask"><${Editor} label="Traversal" language="gremlin" size="one" value=${text} onChange=${setText} complete=${complete.current} hint="g.V().hasLabel('person').out('knows')" keys=${{ "Mod-Enter": start, "Mod-Shift-Enter": () => ask(text, true) }} />
      <div class="row">${busy ? html`<button class="danger" onClick=${() => controller.current?.abort()}>Cancel</button>` : html`<button class="primary" onClick=${start}>Run <kbd class="on-primary">Ctrl ⏎</kbd></button>`}<button title="Keeps what is shown (Ctrl+Shift+Enter)" disabled=${busy} onClick=${() => ask(text, true)}>Add to the picture</button>
        <button class="plain" onClick=${() => (picture.current = new Picture(), setRun(null), again())}>Clear</button><span class="grow"></span>
        ${run && html`<span class="muted small" role="status">${plural(run.rows, "result")} · ${run.charge.toFixed(2)} RU · ${duration(run.ms)}</span>`}</div></div>
    <${ErrorBox} error=${error} title="The traversal was not answered" onClose=${() => setError(null)} />
    ${there === false && picture.current.size === 0 ? html`<section class="card"><h2>No vertices yet</h2>
        <p>Any container can be a graph. A vertex is an item with a label; an edge lies beside the vertex that it leaves:</p>
        <pre tabindex="0" aria-label="A vertex and an edge as items">g.addV('person').property('id', 'ann').property(${literal(key || "pk")}, 'a').property('name', 'Ann')
g.addV('person').property('id', 'bob').property(${literal(key || "pk")}, 'b').property('name', 'Bob')
g.V('ann').addE('knows').to(g.V('bob'))</pre>
        <button disabled=${readOnly.value || busy || !key || ["id", "label"].includes(key)} title=${readOnly.value ? READ_ONLY : ["id", "label"].includes(key) ? "A graph cannot be partitioned by id or label" : undefined} onClick=${sample}>${busy ? "Writing…" : "Load a sample graph"}</button></section>`
    : run?.plain ? html`<section class="card"><h2>The answer has no vertices and edges</h2><pre class="plain-answer" tabindex="0" aria-label="Answer">${JSON.stringify(run.plain.slice(0, 200), null, 2)}</pre></section>`
    : html`<${GraphView} picture=${picture.current} version=${version} busy=${busy} onChange=${again} onExpand=${expand}
        onDrop=${readOnly.value ? undefined : setDropping} onProperty=${readOnly.value ? undefined : setSetting} />`}
    ${dropping && html`<${Confirm} title="Delete this vertex?" text=${`${dropping.id} and all of its edges will be deleted. This cannot be undone.`} action="Delete" onClose=${() => setDropping(null)} onDo=${async () => {
      await traverse(db, coll, `${named(dropping)}.drop()`);
      picture.current.remove(dropping.id);
      announce("Deleted");
      again();
    }} />`}
    ${setting && html`<${SetProperty} node=${setting} onClose=${() => setSetting(null)} onSet=${async (name, value) => {
      await traverse(db, coll, `${named(setting)}.property(${literal(name)}, ${value})`);
      picture.current.add((await traverse(db, coll, named(setting))).rows);
      announce("Saved");
      again();
    }} />`}`;
}

function SetProperty({ node, onSet, onClose }) {
  const [name, setName] = useState(node.properties[0]?.[0] ?? "");
  const [value, setValue] = useState("");
  const [error, setError] = useState(null);
  const save = async (event) => {
    event.preventDefault();
    try {
      await onSet(name, /^(-?\d+(\.\d+)?|true|false)$/.test(value) ? value : literal(value));
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${Dialog} title=${`A property of ${node.id}`} onClose=${onClose}><form onSubmit=${save}>
    <${Field} label="Property">${(id) => html`<input id=${id} required value=${name} onInput=${(event) => setName(event.target.value)} />`}</${Field}>
    <${Field} label="Value" hint="Numbers, true and false as they are; anything else is text.">${(id) => html`<input id=${id} value=${value} onInput=${(event) => setValue(event.target.value)} />`}</${Field}>
    <${ErrorBox} error=${error} title="Not saved" /><div class="actions"><button type="button" onClick=${onClose}>Cancel</button><button class="primary">Save</button></div></form></${Dialog}>`;
}
