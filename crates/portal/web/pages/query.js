// Queries: tabs of text in the languages of the container, parameters found in it, pages of rows, what it cost and how it was done.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { query, keyPaths, send } from "../api/client.js";
import { parse } from "../api/json.js";
import { languagesFor } from "../api/languages.js";
import { forget, kept, save, savedOf } from "../api/saved.js";
import { kindOf } from "../api/kinds.js";
import { announce, databases, definitionOf, loadTree, readOnly } from "../state.js";
import { Choice, Dialog, ErrorBox, Field, Loading, plural } from "../parts/ui.js";
import { Editor } from "../parts/editor.js";
import { completer, pathsOf } from "../parts/sql-mode.js";
import { gremlinCompleter } from "../parts/gremlin-mode.js";
import { ItemEditor, opened } from "../parts/item-editor.js";
import { Results, valuesOf, viewsOf } from "../parts/results.js";
import { run as runCommand } from "../api/mongo.js";
import { deep } from "../api/mongo-values.js";
import { mongoCompleter } from "../parts/mongo-mode.js";
import { DocumentEditor } from "../parts/document-editor.js";
import { pagesOf, useExport } from "../parts/exporting.js";
import { examplesFor } from "../api/examples.js";

const HISTORY_MAX = 30;
const CHECK_MS = 500;
/** Items that are looked at to learn which paths there are. */
const SAMPLE = 50;
/** Values that completion offers. */
const VALUES = 50;
const OPERATORS = ["eq", "ne", "gt", "ge", "lt", "le", "and", "or", "not", "datetime''", "guid''", "PartitionKey", "RowKey", "Timestamp"];

export default function Query({ db, coll }) {
  const store = `orrery-query:${db}/${coll}`;
  const definition = definitionOf(db, coll);
  const languages = languagesFor(kindOf(db, definition), coll);
  const fresh = (id = 1, language = languages[0]) => ({ id, language: language.id, text: language.first, values: {} });
  const [tabs, setAll] = useState(() => kept(store, [fresh()]));
  /** Kept before it is drawn: a reload that comes at once loses nothing. */
  const setTabs = (/** @type {any[] | ((all: any[]) => any[])} */ next) => setAll((all) => {
    const tabs = typeof next === "function" ? next(all) : next;
    sessionStorage.setItem(store, JSON.stringify(tabs));
    return tabs;
  });
  const [active, setActive] = useState(() => tabs[0].id);
  const [history, setHistory] = useState(() => kept(`${store}:history`, []));
  const [saved, setSaved] = useState(() => savedOf(db, coll));
  const [naming, setNaming] = useState(false);
  const [sample, setSample] = useState([]);
  const [documents, setDocuments] = useState([]);
  const [words, setWords] = useState(/** @type {any} */ ({ functions: [], steps: [], operators: [] }));
  const [run, setRun] = useState(null);
  const [view, setView] = useState("table");
  const file = useExport(coll);
  const [item, setItem] = useState(null);
  const controller = useRef(null);
  const editor = useRef(/** @type {any} */ (null));
  const tab = tabs.find((one) => one.id === active) ?? tabs[0];
  const language = languages.find((one) => one.id === (tab.language ?? "sql")) ?? languages[0];
  useEffect(() => {
    query(db, coll, `SELECT TOP ${SAMPLE} * FROM c`, { count: SAMPLE, quiet: true }).then((answer) => setSample(answer.value.Documents), () => {});
    if (kindOf(db, definition) === "collection") runCommand(db, { find: coll, limit: SAMPLE, singleBatch: true }, { quiet: true }).then(({ reply }) => setDocuments(reply.cursor.firstBatch.map(deep)), () => {});
    const list = (name) => fetch(new URL(`../api/${name}.json`, import.meta.url)).then((response) => response.json(), () => []);
    Promise.all([list("functions"), list("steps"), list("operators")]).then(([functions, steps, operators]) => setWords({ functions, steps, operators }));
    return () => controller.current?.abort();
  }, []);
  const known = useRef(/** @type {any} */ (null));
  const labels = [...new Set(sample.flatMap((one) => [one?.label, ...Object.keys(one ?? {})]).filter((name) => typeof name === "string" && !name.startsWith("_")))];
  known.current = { paths: pathsOf(sample), fields: pathsOf(documents.length ? documents : sample), ...words, labels };
  const complete = useRef({
    sql: completer(() => known.current.paths, () => known.current.functions, async (expression) => {
      const path = expression.split(".").slice(1).map((step) => `[${JSON.stringify(step)}]`).join("");
      const answer = await query(db, coll, `SELECT DISTINCT TOP ${VALUES} VALUE c${path} FROM c`, { count: VALUES, quiet: true }).catch(() => null);
      return answer?.value.Documents ?? [];
    }),
    mongo: mongoCompleter(() => known.current.operators, () => known.current.fields, coll),
    gremlin: gremlinCompleter(() => known.current.steps, () => known.current.labels),
    filter: (context) => {
      const word = context.matchBefore(/[\w.]+$/);
      return word || context.explicit ? { from: word?.from ?? context.pos, options: [...OPERATORS, ...known.current.labels.filter((name) => !name.startsWith("$") && name !== "id")].map((label) => ({ label })), validFor: /^\w*$/ } : null;
    },
  });

  const change = (part) => setTabs((all) => all.map((one) => (one.id === tab.id ? { ...one, ...part } : one)));
  const names = language.parameters ? [...new Set(tab.text.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--.*$/gm, "").match(language.parameters) ?? [])] : [];
  const parameters = () => names.map((name) => {
    const text = tab.values[name] ?? "";
    try {
      return { name, value: parse(text) };
    } catch {
      return { name, value: text };
    }
  });

  const ask = async (text, before = null) => {
    controller.current?.abort();
    const mine = (controller.current = new AbortController());
    const first = !before;
    const earlier = run && !run.error && !run.next && run.text === text ? { charge: run.charge, ms: run.ms } : null;
    const base = before ?? { text, language: language.id, rows: [], charge: 0, ms: 0, pages: 0, next: "", plan: null, error: null, before: earlier };
    setRun({ ...base, busy: true, error: null, cancelled: false });
    setItem(null);
    if (first && text.trim()) {
      const next = [{ text, language: language.id }, ...history.filter((one) => (one.text ?? one) !== text)].slice(0, HISTORY_MAX);
      setHistory(next);
      sessionStorage.setItem(`${store}:history`, JSON.stringify(next));
    }
    try {
      const onSome = (rows) => setRun((now) => now && { ...now, rows: [...rows] });
      const page = await language.page({ db, coll, text, next: base.next, parameters: parameters(), signal: mine.signal, onSome });
      const result = { ...base, rows: base.rows.concat(page.rows), charge: base.charge + page.charge, ms: base.ms + page.ms, pages: base.pages + 1, next: page.next, plan: page.plan, busy: false, error: null };
      setRun(result);
      if (first && !viewsOf(result).some(([name]) => name === view)) setView("table");
      if (first) announce(`${plural(result.rows.length, "row")}, ${page.charge.toFixed(2)} RU`);
      mark(null);
      return result;
    } catch (error) {
      if (mine.signal.aborted) setRun((now) => now && { ...now, busy: false, cancelled: true });
      else setRun({ ...base, busy: false, error }), mark(error);
      return null;
    }
  };
  /** Underlines where the server found an error. */
  const mark = async (error) => {
    if (!editor.current) return;
    const { view: at, cm } = editor.current;
    const length = at.state.doc.length;
    const found = /"?start"?\s*:\s*(\d+).*?"?end"?\s*:\s*(\d+)/s.exec(error?.raw ?? "");
    // Gremlin says line and column instead.
    const spot = /line (\d+),? (?:column|character|col) (\d+)/i.exec(error?.message ?? "");
    const from = error?.at !== undefined ? error.at : found ? Number(found[1]) : spot && Number(spot[1]) <= at.state.doc.lines ? at.state.doc.line(Number(spot[1])).from + Number(spot[2]) - 1 : -1;
    const to = found ? Math.max(Number(found[2]), from + 1) : from + 1;
    at.dispatch(cm.setDiagnostics(at.state, from < 0 ? [] : [{ from: Math.min(from, length), to: Math.min(to, length), severity: "error", message: error.message }]));
  };
  // What is wrong is underlined while somebody types, a moment after the last letter.
  useEffect(() => {
    if (!language.check || !tab.text.trim()) return;
    const timer = setTimeout(async () => {
      const errors = await language.check?.(tab.text).catch(() => []);
      const at = editor.current;
      if (!at || at.view.state.doc.toString() !== tab.text) return;
      const length = at.view.state.doc.length;
      at.view.dispatch(at.cm.setDiagnostics(at.view.state, (errors ?? []).map(({ message, start: from, end: to }) => ({ from: Math.min(from, Math.max(0, length - 1)), to: Math.min(Math.max(to, from + 1), length), severity: "error", message }))));
    }, CHECK_MS);
    return () => clearTimeout(timer);
  }, [tab.text, language.id]);
  const start = () => ask(tab.text);
  const startSelection = () => {
    const state = editor.current?.view.state;
    const text = state ? state.sliceDoc(state.selection.main.from, state.selection.main.to) : "";
    ask(text || tab.text);
  };
  const more = () => run && !run.busy && run.next && ask(run.text, run);
  /** All pages into a file: what is here, then what comes behind it, which the page itself does not keep. */
  const exportAll = async (/** @type {"json" | "ndjson" | "csv"} */ kind) => {
    const shown = run;
    const ask = (next, count, signal) => language.page({ db, coll, text: shown.text, next, count, parameters: parameters(), signal, onSome: () => {} });
    try {
      await file.start(kind, (signal) => pagesOf(ask, signal, shown), (rows) => valuesOf({ ...shown, rows }));
    } catch (error) {
      setRun({ ...shown, error });
    }
  };
  const addTab = (part = {}) => {
    const id = Math.max(...tabs.map((one) => one.id)) + 1;
    setTabs([...tabs, { ...fresh(id), ...part }]);
    choose(id);
  };
  const choose = (id) => (controller.current?.abort(), setActive(id), setRun(null), setItem(null));
  const closeTab = (id) => {
    const rest = tabs.filter((one) => one.id !== id);
    setTabs(rest.length ? rest : [fresh()]);
    if (id === active) choose(rest[0]?.id ?? 1);
  };
  useEffect(() => {
    const key = (event) => {
      const typing = event.target instanceof HTMLElement && (event.target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName));
      if (typing || event.ctrlKey || event.metaKey || event.altKey || !["[", "]"].includes(event.key) || localStorage.getItem("orrery-letters") === "off") return;
      const at = tabs.findIndex((one) => one.id === tab.id);
      choose(tabs[(at + (event.key === "]" ? 1 : tabs.length - 1)) % tabs.length].id);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  });
  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no container <strong>${coll}</strong> in <strong>${db}</strong>. <a href="#/">Home</a></p>`;
  const examples = examplesFor(language.id, language.id === "mongo" ? known.current.fields : known.current.paths, keyPaths(definition), language.id === "mongo" && documents.length ? documents : sample, coll);
  const views = viewsOf(run);
  const paths = keyPaths(definition);
  const open = (n) => {
    const row = run.rows[n];
    if (language.id === "mongo") {
      if (run.plan?.mongo?.command.find && !run.plan.mongo.command.projection && row?._id !== undefined) setItem({ document: row });
    } else if (language.id === "sql" && row?._self && row._etag && row.id !== undefined) setItem(opened(row));
  };
  const pick = (event, all, /** @type {(one: any) => void} */ then) => event.target.value !== "" && then(all[Number(event.target.value)]);

  return html`<h1 class="small">${coll}</h1>
    <div class="toolbar" role="group" aria-label="Queries">
      ${tabs.map((one, n) => html`<span key=${one.id} class="choice"><button aria-pressed=${one.id === tab.id ? "true" : "false"} onClick=${() => choose(one.id)}>${one.name ?? `Query ${n + 1}`}</button>${tabs.length > 1 && html`<button aria-label=${`Close query ${n + 1}`} onClick=${() => closeTab(one.id)}>✕</button>`}</span>`)}
      <button class="plain" onClick=${() => addTab()} aria-label="New query">+</button>
      ${languages.length > 1 && html`<${Choice} label="Language" value=${language.id} options=${languages.map((one) => [one.id, one.title])} onChange=${(id) => {
        const next = /** @type {any} */ (languages.find((one) => one.id === id));
        change({ language: id, text: tab.text === language.first ? next.first : (tab.texts?.[id] ?? next.first), texts: { ...tab.texts, [language.id]: tab.text } });
        setRun(null);
      }} />`}
      <span class="grow"></span>
      <label class="small muted">Saved <select aria-label="Saved queries" value="" onChange=${(event) => pick(event, saved, (one) => addTab({ text: one.text, language: one.language, name: one.name }))}><option value="">${saved.length ? "…" : "none"}</option>${saved.map((one, n) => html`<option key=${one.name} value=${n}>${one.name}</option>`)}</select></label>
      <label class="small muted">Earlier <select aria-label="Earlier queries" value="" onChange=${(event) => pick(event, history, (one) => addTab({ text: one.text ?? one, language: one.language ?? "sql" }))}><option value="">…</option>${history.map((one, n) => html`<option key=${n} value=${n}>${(one.text ?? one).slice(0, 80)}</option>`)}</select></label>
      <label class="small muted">Examples <select aria-label="Example queries" value="" onChange=${(event) => pick(event, examples, ([, text]) => change({ text }))}><option value="">…</option>${examples.map(([title], n) => html`<option key=${title} value=${n}>${title}</option>`)}</select></label>
    </div>
    <${Editor} key=${`${tab.id}:${language.id}`} label="Query text" language=${language.mode} size="short" focus=${true} hint=${language.hint} value=${tab.text} onChange=${(text) => change({ text })} complete=${complete.current[language.mode]} handle=${(view, cm) => (editor.current = { view, cm })}
      keys=${{ "Mod-Enter": start, "Mod-Shift-Enter": startSelection, "Mod-Shift-e": () => setView("plan"), "Mod-s": () => setNaming(true) }} />
    ${names.length > 0 && html`<div class="toolbar parameters">${names.map((name) => html`<label key=${name} class="row small"><code>${name}</code> <input value=${tab.values[name] ?? ""} placeholder="JSON or text" onInput=${(event) => change({ values: { ...tab.values, [name]: event.target.value } })} /></label>`)}</div>`}
    <div class="toolbar run-bar">
      ${run?.busy ? html`<button class="danger" onClick=${() => controller.current?.abort()}>Cancel</button>` : html`<button class="primary" onClick=${start}>Run <kbd class="on-primary">Ctrl ⏎</kbd></button>`}
      <${Choice} label="Show the answer as" value=${view} options=${views} onChange=${setView} />
      <button class="plain" title="Ctrl+S" onClick=${() => setNaming(true)}>Save query</button>
      <span class="grow"></span>
      ${file.view ?? (run?.rows.length > 0 && html`<span class="small muted">All pages as</span>${["JSON", "NDJSON", "CSV"].map((kind) => html`<button key=${kind} class="small" disabled=${run.busy} onClick=${() => exportAll(/** @type {any} */ (kind.toLowerCase()))}>${kind}</button>`)}`)}
    </div>
    <${ErrorBox} error=${run?.error} title="The query was not answered" />
    ${run?.error && !run.rows.length ? null : run ? html`<div class="split answer"><${Results} run=${run} db=${db} view=${views.some(([name]) => name === view) ? view : "table"} definition=${definition} onMore=${more} onOpen=${open} onIndex=${readOnly.value ? null : (policy) => applyPolicy(db, definition, policy)} />
        ${item?.document && html`<${DocumentEditor} key=${JSON.stringify(item.document)} db=${db} coll=${run.plan.mongo.command.find} document=${item.document} onClose=${() => setItem(null)}
          onSaved=${(now) => (setRun({ ...run, rows: run.rows.map((row) => (row === item.document ? now : row)) }), setItem({ document: now }))} onDeleted=${() => (setRun({ ...run, rows: run.rows.filter((row) => row !== item.document) }), setItem(null))} />`}
        ${item?.item && html`<${ItemEditor} key=${item.item._self} db=${db} coll=${coll} paths=${paths} opened=${item} onClose=${() => setItem(null)}
          onSaved=${(now) => (setRun({ ...run, rows: run.rows.map((row) => (row === item.item ? now : row)) }), setItem(opened(now)))} onDeleted=${() => (setRun({ ...run, rows: run.rows.filter((row) => row !== item.item) }), setItem(null))} />`}</div>`
    : html`<p class="muted pad">Ctrl+Enter runs the query; Ctrl+Space shows what can be typed: ${language.id === "gremlin" ? `${plural(words.steps.length, "step")} and ${plural(labels.length, "name")} of your graph` : language.id === "mongo" ? `methods, ${plural(words.operators.length, "operator")} and the fields of your documents` : `${known.current.paths.size ? `${plural(known.current.paths.size, "path")} of your items` : "keywords"} and ${plural(words.functions.length, "function")}`}.</p>`}
    ${naming && html`<${SaveQuery} saved=${saved} name=${tab.name ?? ""} onClose=${() => setNaming(false)} onForget=${(name) => (forget(db, coll, name), setSaved(savedOf(db, coll)))}
      onSave=${(name) => {
        save({ name, db, coll, language: language.id, text: tab.text });
        setSaved(savedOf(db, coll));
        change({ name });
        announce(`Saved as ${name}`);
        setNaming(false);
      }} />`}`;
}

function SaveQuery({ saved, name, onSave, onForget, onClose }) {
  const [typed, setTyped] = useState(name);
  return html`<${Dialog} title="Save the query" onClose=${onClose}><form onSubmit=${(event) => (event.preventDefault(), typed.trim() && onSave(typed.trim()))}>
    <${Field} label="Name" hint="Kept in this browser, for this container.">${(id) => html`<input id=${id} autofocus autocomplete="off" value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}</${Field}>
    <div class="actions"><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${!typed.trim()}>Save</button></div></form>
    ${saved.length > 0 && html`<h3>Saved</h3><ul class="plain-list">${saved.map((one) => html`<li key=${one.name} class="row"><span class="grow">${one.name} <code class="muted small">${one.text.slice(0, 40)}</code></span><button class="plain small" aria-label=${`Forget ${one.name}`} onClick=${() => onForget(one.name)}>✕</button></li>`)}</ul>`}
  </${Dialog}>`;
}

/** @param {string} db @param {any} definition @param {any} indexingPolicy */
async function applyPolicy(db, definition, indexingPolicy) {
  const { _rid, _self, _etag, _ts, _docs, _sprocs, _triggers, _udfs, _conflicts, ...rest } = definition;
  await send("PUT", ["dbs", db, "colls", definition.id], { body: { ...rest, indexingPolicy } });
  announce("The index is being built");
  await loadTree();
}
