// Stored procedures, triggers and functions: write, save, run, and see console, charge and the line of an error.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send, list, keyPaths, query } from "../api/client.js";
import { parse, write, ascii } from "../api/json.js";
import { announce, definitionOf, readOnly, unsaved, READ_ONLY } from "../state.js";
import { Choice, Confirm, ErrorBox, Field, Loading } from "../parts/ui.js";
import { Editor } from "../parts/editor.js";

const KINDS = {
  sprocs: { name: "StoredProcedures", one: "stored procedure", title: "Stored procedures", body: `// Runs as one transaction inside one partition key.\nfunction countItems(prefix) {\n  var collection = getContext().getCollection();\n  var accepted = collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c", function (error, items) {\n    if (error) throw error;\n    console.log("found " + items.length);\n    getContext().getResponse().setBody({ prefix: prefix, count: items.length });\n  });\n  if (!accepted) throw new Error("out of time");\n}\n` },
  triggers: { name: "Triggers", one: "trigger", title: "Triggers", body: `// A pre-trigger sees the item before it is written; requests name the triggers they want.\nfunction stamp() {\n  var request = getContext().getRequest();\n  var item = request.getBody();\n  item.stamped = new Date().toISOString();\n  request.setBody(item);\n}\n` },
  udfs: { name: "UserDefinedFunctions", one: "function", title: "Functions", body: `// In queries: SELECT udf.tax(c.total) FROM c\nfunction tax(total) {\n  return total * 0.2;\n}\n` },
};

export default function Scripts({ db, coll }) {
  const [kind, setKind] = useState("sprocs");
  const [all, setAll] = useState(null);
  const [open, setOpen] = useState(null);
  const [error, setError] = useState(null);
  const path = ["dbs", db, "colls", coll, kind];
  const load = async () => {
    try {
      setAll(await list(path, KINDS[kind].name));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    setAll(null);
    setOpen(null);
    load();
    return () => void (unsaved.value = false);
  }, [kind]);
  const create = () => setOpen({ fresh: true, id: "", body: KINDS[kind].body, triggerType: "Pre", triggerOperation: "All" });
  return html`<h1>${coll}</h1><div class="toolbar"><${Choice} label="Kind of script" value=${kind} onChange=${setKind} options=${Object.entries(KINDS).map(([name, one]) => [name, one.title])} /><span class="grow"></span>
      <button class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${create}>New ${KINDS[kind].one}</button></div>
    <${ErrorBox} error=${error} onRetry=${load} />
    <div class="split"><div class="list script-list">${!all ? html`<${Loading} />` : all.length === 0 ? html`<p class="muted">None yet. A new one begins with a template.</p>` : html`<ul class="plain-list">${all.map((one) => html`<li key=${one.id}><button class="plain" aria-pressed=${open?.id === one.id ? "true" : "false"} onClick=${() => setOpen(one)}>${one.id}</button></li>`)}</ul>`}</div>
      ${open && html`<${Script} key=${open.fresh ? "new" : open._rid} kind=${kind} path=${path} db=${db} coll=${coll} script=${open} onClose=${() => setOpen(null)} onSaved=${(saved) => (load(), setOpen(saved))} onDeleted=${() => (setOpen(null), load())} />`}</div>`;
}

function Script({ kind, path, db, coll, script, onClose, onSaved, onDeleted }) {
  const [id, setId] = useState(script.id);
  const [body, setBody] = useState(script.body);
  const [type, setType] = useState(script.triggerType ?? "Pre");
  const [operation, setOperation] = useState(script.triggerOperation ?? "All");
  const [error, setError] = useState(null);
  const [deleting, setDeleting] = useState(false);
  const editor = useRef(/** @type {any} */ (null));
  const failed = (problem) => {
    if (!editor.current) return;
    const { view, cm } = editor.current;
    const spot = placeOf(problem);
    const line = spot && spot.line <= view.state.doc.lines ? view.state.doc.line(spot.line) : null;
    view.dispatch(cm.setDiagnostics(view.state, line ? [{ from: Math.min(line.from + spot.column - 1, line.to), to: line.to, severity: "error", message: problem.message.split("\n")[0] }] : []));
    if (line) view.dispatch({ effects: cm.EditorView.scrollIntoView(line.from, { y: "center" }) });
  };
  const changed = script.fresh || body !== script.body || (kind === "triggers" && (type !== script.triggerType || operation !== script.triggerOperation));
  useEffect(() => void (unsaved.value = changed && !script.fresh), [changed]);
  const save = async () => {
    setError(null);
    try {
      const sent = { id, body, ...(kind === "triggers" && { triggerType: type, triggerOperation: operation }) };
      const answer = script.fresh ? await send("POST", path, { body: sent }) : await send("PUT", [...path, script.id], { body: sent, headers: { "if-match": script._etag } });
      unsaved.value = false;
      failed(null);
      announce("Saved");
      onSaved(answer.value);
      return true;
    } catch (problem) {
      setError(problem);
      failed(problem);
      return false;
    }
  };
  return html`<section class="side wide-side" aria-label=${script.fresh ? "New script" : script.id}>
    <div class="row">${script.fresh ? html`<input aria-label="Name" placeholder="name" autofocus value=${id} onInput=${(event) => setId(event.target.value)} />` : html`<strong>${script.id}</strong>`}
      ${kind === "triggers" && html`<select aria-label="When" value=${type} onChange=${(event) => setType(event.target.value)}><option>Pre</option><option>Post</option></select><select aria-label="Of which operation" value=${operation} onChange=${(event) => setOperation(event.target.value)}>${["All", "Create", "Replace", "Delete", "Update"].map((one) => html`<option key=${one}>${one}</option>`)}</select>`}
      <span class="grow"></span><button class="primary" disabled=${!changed || !id || readOnly.value} title=${readOnly.value ? READ_ONLY : "Ctrl+S"} onClick=${save}>Save</button>
      ${!script.fresh && html`<button disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button>`}<button class="plain" aria-label="Close the script" onClick=${onClose}>✕</button></div>
    <${ErrorBox} error=${error} title="Not saved" />
    <${Editor} label="Script" language="js" size="fill" value=${body} onChange=${setBody} readOnly=${readOnly.value} handle=${(view, cm) => (editor.current = { view, cm })} keys=${{ "Mod-s": save }} />
    ${kind === "sprocs" && !script.fresh && html`<${Run} path=${[...path, script.id]} paths=${keyPaths(definitionOf(db, coll))} changed=${changed} onSave=${save} onFailed=${failed} />`}
    ${kind === "udfs" && !script.fresh && html`<${Try} db=${db} coll=${coll} id=${script.id} changed=${changed} onSave=${save} onFailed=${failed} />`}
    ${deleting && html`<${Confirm} title="Delete this script?" text=${`${script.id} will be deleted.`} action="Delete" onClose=${() => setDeleting(false)} onDo=${async () => {
      await send("DELETE", [...path, script.id]);
      announce("Deleted");
      onDeleted();
    }} />`}
  </section>`;
}

function Run({ path, paths, changed, onSave, onFailed }) {
  const [keys, setKeys] = useState(() => paths.map(() => ""));
  const [text, setText] = useState("[]");
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const value = (typed) => {
    try {
      return parse(typed);
    } catch {
      return typed;
    }
  };
  const run = async () => {
    setBusy(true);
    setError(null);
    setResult(null);
    onFailed(null);
    try {
      if (changed && !(await onSave())) return;
      const answer = await send("POST", path, { headers: { "x-ms-documentdb-script-enable-logging": "true", ...(paths.length && { "x-ms-documentdb-partitionkey": ascii(keys.map(value)) }) }, body: write(parse(text), 0) });
      setResult({ body: answer.text, log: decodeURIComponent(answer.headers.get("x-ms-documentdb-script-log-results") ?? ""), charge: answer.charge, ms: answer.ms });
    } catch (problem) {
      setError(problem);
      onFailed(problem);
    } finally {
      setBusy(false);
    }
  };
  return html`<div class="card"><h2>Run</h2><div class="row">
      ${paths.map((path, n) => html`<label key=${path} class="row"><code>${path}</code><input aria-label=${`Partition key ${path}`} placeholder="value" value=${keys[n]} onInput=${(event) => setKeys(keys.map((one, m) => (m === n ? event.target.value : one)))} /></label>`)}
      <label class="row grow">Arguments <input class="grow mono" aria-label="Arguments, a JSON array" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <button class="primary" disabled=${busy || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${run}>${busy ? "Running…" : changed ? "Save and run" : "Run"}</button></div>
    <${ErrorBox} error=${error} title=${`The script failed${placeOf(error) ? ` in line ${placeOf(error)?.line}` : ""}; nothing was written`} />
    ${error?.log && html`<h3>Console until then</h3><pre>${error.log}</pre>`}
    ${result && html`<p class="muted small">${result.charge.toFixed(2)} RU · ${Math.round(result.ms)} ms</p>${result.log && html`<h3>Console</h3><pre>${result.log}</pre>`}<h3>Answer</h3><pre>${result.body || "(empty)"}</pre>`}</div>`;
}

/** Where a script failed, as its stack says; null where it does not. @param {any} problem */
function placeOf(problem) {
  const found = /\.js:(\d+):(\d+)|line (\d+),? column (\d+)/i.exec(`${problem?.raw ?? ""}\n${problem?.message ?? ""}`);
  return found ? { line: Number(found[1] ?? found[3]), column: Math.max(1, Number(found[2] ?? found[4])) } : null;
}

/** A function is tried in a query that has nothing but it. */
function Try({ db, coll, id, changed, onSave, onFailed }) {
  const [text, setText] = useState("[100]");
  const [result, setResult] = useState(null);
  const [error, setError] = useState(null);
  const run = async () => {
    setError(null);
    onFailed(null);
    try {
      if (changed && !(await onSave())) return;
      const values = parse(text);
      const answer = await query(db, coll, `SELECT VALUE udf.${id}(${values.map((_, n) => `@a${n}`).join(", ")})`, { parameters: values.map((value, n) => ({ name: `@a${n}`, value })) });
      setResult({ rows: answer.value.Documents, charge: answer.charge });
    } catch (problem) {
      setError(problem);
      onFailed(problem);
    }
  };
  return html`<div class="card"><h2>Try</h2><div class="row"><label class="row grow">Arguments <input class="grow mono" aria-label="Arguments, a JSON array" value=${text} onInput=${(event) => setText(event.target.value)} /></label><button class="primary" onClick=${run}>${changed ? "Save and try" : "Try"}</button></div>
    <${ErrorBox} error=${error} title=${`The function failed${placeOf(error) ? ` in line ${placeOf(error)?.line}` : ""}`} />${result && html`<pre>${result.rows.length ? write(result.rows[0]) : "undefined"}</pre><p class="muted small">${result.charge.toFixed(2)} RU</p>`}</div>`;
}
