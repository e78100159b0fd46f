// The items of a container: a table of any length, an editor beside it, and what is done with several at once.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { send, query, keyHeader, keyPaths } from "../api/client.js";
import { parse, write, own, at, pathSteps } from "../api/json.js";
import { announce, databases, definitionOf, readOnly, unsaved, READ_ONLY } from "../state.js";
import { Confirm, Dialog, ErrorBox, Loading, count, download, plural } from "../parts/ui.js";
import { Table, columnsOf } from "../parts/table.js";
import { Diff, Editor } from "../parts/editor.js";
import { Import } from "../parts/import.js";

const PAGE_ROWS = 200;
/** Rows that are kept in the page; a filter finds the others. */
const ROWS_MAX = 100_000;
const PARALLEL = 8;

export default function Items({ db, coll }) {
  const definition = definitionOf(db, coll);
  const [filter, setFilter] = useState("");
  const [asked, setAsked] = useState("");
  const [state, setState] = useState({ rows: /** @type {any[]} */ ([]), next: "", done: false, charge: 0 });
  const [error, setError] = useState(/** @type {any} */ (null));
  const [selected, setSelected] = useState(() => new Set());
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const [deleting, setDeleting] = useState(false);
  const [files, setFiles] = useState(/** @type {File[] | null} */ (null));
  const [over, setOver] = useState(false);
  const loading = useRef(/** @type {AbortController | null} */ (null));
  const paths = keyPaths(definition);

  const load = async (fresh = false, text = asked) => {
    if (loading.current && !fresh) return;
    loading.current?.abort();
    const controller = (loading.current = new AbortController());
    if (fresh) {
      setState({ rows: [], next: "", done: false, charge: 0 });
      setSelected(new Set());
    }
    try {
      const continuation = fresh ? "" : state.next;
      const where = text.trim() ? ` WHERE ${text.trim().replace(/^where\s/i, "")}` : "";
      const answer = await query(db, coll, `SELECT * FROM c${where}`, { continuation, count: PAGE_ROWS, signal: controller.signal });
      const next = answer.headers.get("x-ms-continuation") ?? "";
      setState((before) => {
        const rows = fresh ? answer.value.Documents : before.rows.concat(answer.value.Documents);
        return { rows, next, done: !next || rows.length >= ROWS_MAX, charge: (fresh ? 0 : before.charge) + answer.charge };
      });
      setError(null);
    } catch (problem) {
      if (!controller.signal.aborted) setError(problem), setState((before) => ({ ...before, done: true }));
    } finally {
      if (loading.current === controller) loading.current = null;
    }
  };
  useEffect(() => {
    load(true);
    return () => (loading.current?.abort(), (unsaved.value = false));
  }, []);
  useEffect(() => {
    const key = (/** @type {KeyboardEvent} */ event) => {
      if (event.altKey && event.key.toLowerCase() === "n" && !readOnly.value) event.preventDefault(), create();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  });

  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no container <strong>${coll}</strong> in <strong>${db}</strong>. <a href="#/">Home</a></p>`;

  const create = () => setOpen({ fresh: true, item: null, text: write(template(paths)), base: "" });
  const show = (/** @type {number} */ n) => {
    const item = state.rows[n];
    if (item) setOpen({ fresh: false, at: n, item, text: write(item), base: write(item) });
  };
  const chosen = [...selected].map((n) => state.rows[n]).filter(Boolean);
  const remove = async () => {
    const gone = new Set();
    const failures = await each([...selected], PARALLEL, async (n) => {
      await removeItem(db, coll, state.rows[n], paths);
      gone.add(n);
    });
    setState((before) => ({ ...before, rows: before.rows.filter((_, n) => !gone.has(n)) }));
    setSelected(new Set());
    setOpen(null);
    announce(`Deleted ${plural(gone.size, "item")}`);
    if (failures.length) throw failures[0];
  };
  const columns = columnsOf(state.rows, ["id", ...paths.map((/** @type {string} */ path) => pathSteps(path)[0]).filter((/** @type {string} */ name, /** @type {number} */ n, /** @type {string[]} */ all) => name !== "id" && all.indexOf(name) === n)]);
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer?.files.length && !readOnly.value) setFiles([...event.dataTransfer.files]);
  };

  return html`<div class="split ${over ? "dropping" : ""}" onDragOver=${(/** @type {Event} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <div class="list">
      <h1 class="small">${coll}</h1>
      <form class="toolbar" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), setAsked(filter), load(true, filter))}>
        <input type="search" data-filter aria-label="Filter: a condition as after WHERE" placeholder="Filter: c.total > 100 AND c.city = 'Rome'" value=${filter} onInput=${(/** @type {any} */ event) => setFilter(event.target.value)} />
        <button>Apply</button>
        <button type="button" class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "Alt+N"} onClick=${create}>New item</button>
        <button type="button" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : "JSON, NDJSON or CSV; you can also drop files here"} onClick=${() => setFiles([])}>Import</button>
        <button type="button" disabled=${!state.rows.length} onClick=${() => download(`${coll}.ndjson`, (chosen.length ? chosen : state.rows).map((row) => `${write(own(row), 0)}\n`), "application/x-ndjson")}>Export${chosen.length ? ` ${chosen.length}` : ""}</button>
      </form>
      ${selected.size > 0 && html`<div class="toolbar" role="region" aria-label="Selected items"><strong>${plural(selected.size, "item")} selected</strong>
        <button class="danger" disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button><button class="plain" onClick=${() => setSelected(new Set())}>Clear</button></div>`}
      <${ErrorBox} error=${error} title="The items could not be read" onRetry=${() => load(true)} />
      <${Table} label=${`Items of ${coll}`} columns=${columns} rows=${state.rows} selected=${selected} onSelect=${setSelected} onOpen=${show} remember=${`${db}/${coll}`}
        onEnd=${() => !state.done && state.next && load()} onDelete=${() => (selected.size ? setDeleting(true) : null)}
        empty=${!state.done ? html`<${Loading} />` : error ? null : asked ? html`<p class="pad muted">Nothing matches the filter.</p>` : html`<div class="pad"><p><strong>No items yet.</strong></p><p class="muted">Make one with New item, drop a JSON, NDJSON or CSV file here, or write with any SDK: the page Home has snippets.</p></div>`} />
      <div class="status"><span>${plural(state.rows.length, "item")}${state.done ? (state.rows.length >= ROWS_MAX ? "; a filter finds the others" : "") : " so far; more come as you scroll"}</span><span>${state.charge.toFixed(2)} RU</span></div>
    </div>
    ${open && html`<${ItemEditor} key=${open.fresh ? "new" : open.item._self ?? open.item.id} db=${db} coll=${coll} paths=${paths} opened=${open} onClose=${() => (setOpen(null), (unsaved.value = false))}
      onSaved=${(/** @type {any} */ item) => {
        setState((before) => {
          const rows = [...before.rows];
          if (open.fresh) rows.unshift(item);
          else rows[open.at] = item;
          return { ...before, rows };
        });
        setOpen({ fresh: false, at: open.fresh ? 0 : open.at, item, text: write(item), base: write(item) });
      }}
      onDeleted=${() => {
        setState((before) => ({ ...before, rows: before.rows.filter((row) => row !== open.item) }));
        setOpen(null);
      }} />`}
    ${deleting && html`<${Confirm} title="Delete items" text=${`${plural(selected.size, "item")} will be deleted. This cannot be undone.`} action=${`Delete ${plural(selected.size, "item")}`} onDo=${remove} onClose=${() => setDeleting(false)} />`}
    ${files && html`<${Import} db=${db} coll=${coll} paths=${paths} files=${files} onClose=${() => (setFiles(null), load(true))} />`}
  </div>`;
}

function ItemEditor({ db, coll, paths, opened, onClose, onSaved, onDeleted }) {
  const [text, setText] = useState(opened.text);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [conflict, setConflict] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const changed = text !== opened.base;
  useEffect(() => setText(opened.text), [opened]);
  useEffect(() => void (unsaved.value = changed && !readOnly.value), [changed]);

  const save = async (/** @type {string} */ body = text, /** @type {string} */ etag = opened.item?._etag) => {
    if (readOnly.value) return;
    setError(null);
    let item;
    try {
      item = parse(body);
      if (item === null || typeof item !== "object" || Array.isArray(item)) throw new Error("an item is an object: { … }");
    } catch (problem) {
      return setError(new Error(`This is not JSON: ${problem.message}`));
    }
    setBusy(true);
    try {
      const headers = { "x-ms-documentdb-partitionkey": keyHeader(item, paths) };
      const docs = ["dbs", db, "colls", coll, "docs"];
      const sent = write(own(item), 0);
      let answer;
      if (opened.fresh) answer = await send("POST", docs, { headers, body: sent });
      else if (keyHeader(item, paths) !== keyHeader(opened.item, paths)) throw new Error("The partition key of an item cannot be changed. Make a new item with the other key and delete this one.");
      else answer = await send("PUT", [...docs, opened.item.id], { headers: { ...headers, ...(etag && { "if-match": etag }) }, body: sent });
      unsaved.value = false;
      setConflict(null);
      announce(`Saved, ${answer.charge.toFixed(2)} RU`);
      onSaved(answer.value);
    } catch (problem) {
      if (problem.status === 412) await askTheirs(problem);
      else setError(problem);
    }
    setBusy(false);
  };
  const askTheirs = async (/** @type {any} */ problem) => {
    try {
      const theirs = await send("GET", ["dbs", db, "colls", coll, "docs", opened.item.id], { headers: { "x-ms-documentdb-partitionkey": keyHeader(opened.item, paths) } });
      setConflict(theirs.value);
    } catch (gone) {
      setError(gone.status === 404 ? new Error("Somebody deleted this item meanwhile. To keep yours, make a new item with this text.") : problem);
    }
  };
  const remove = async () => {
    await removeItem(db, coll, opened.item, paths, opened.item._etag);
    announce("Deleted");
    unsaved.value = false;
    onDeleted();
  };
  return html`<section class="side" aria-label=${opened.fresh ? "New item" : `Item ${opened.item.id}`}>
    <div class="row"><strong>${opened.fresh ? "New item" : opened.item.id}</strong>${changed && !opened.fresh && html`<span class="badge warn">changed</span>`}<span class="grow"></span>
      <button class="primary" disabled=${busy || readOnly.value || (!changed && !opened.fresh)} title=${readOnly.value ? READ_ONLY : "Ctrl+S"} onClick=${() => save()}>${busy ? "Saving…" : "Save"}</button>
      ${!opened.fresh && html`<button disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button>`}
      <button class="plain" onClick=${onClose} aria-label="Close the item">✕</button></div>
    <${ErrorBox} error=${error} title="Not saved" onClose=${() => setError(null)} />
    <${Editor} label="The item as JSON" value=${text} onChange=${setText} readOnly=${readOnly.value} size="fill" focus=${opened.fresh} keys=${{ "Mod-s": () => save(), Escape: onClose }} />
    ${conflict && html`<${Conflict} mine=${text} theirs=${conflict} onKeep=${(/** @type {string} */ merged) => save(merged, conflict._etag)} onTheirs=${() => (setConflict(null), onSaved(conflict))} onClose=${() => setConflict(null)} busy=${busy} error=${error} />`}
    ${deleting && html`<${Confirm} title="Delete this item?" text=${`${opened.item.id} will be deleted. This cannot be undone.`} action="Delete" onDo=${remove} onClose=${() => setDeleting(false)} />`}
  </section>`;
}

/** Somebody else saved first: theirs on the left, mine on the right, and what is saved is what stands there. */
function Conflict({ mine, theirs, onKeep, onTheirs, onClose, busy, error }) {
  const before = write(own(theirs));
  let after = mine;
  try {
    after = write(own(parse(mine)));
  } catch {
    // As it was typed.
  }
  const merged = useRef(after);
  return html`<${Dialog} title="Somebody changed this item meanwhile" wide=${true} onClose=${onClose}>
    <p>Left is what the server has now, right is yours. Take over single changes with the arrows between them, edit the right side, then save.</p>
    <${Diff} before=${before} after=${after} labels=${["On the server now", "Yours"]} onChange=${(/** @type {string} */ text) => (merged.current = text)} />
    <${ErrorBox} error=${error} />
    <div class="actions"><button onClick=${onClose}>Go on editing</button><button onClick=${onTheirs}>Take theirs</button><button class="primary" disabled=${busy} onClick=${() => onKeep(merged.current)}>Save the right side</button></div>
  </${Dialog}>`;
}

/** @param {string[]} paths */
function template(paths) {
  const item = { id: crypto.randomUUID() };
  for (const path of paths) {
    let inner = /** @type {any} */ (item);
    const steps = pathSteps(path);
    steps.forEach((step, n) => (inner = inner[step] ??= n === steps.length - 1 ? "" : {}));
  }
  return item;
}

/** @param {any} item @param {string[]} paths */
function removeItem(db, coll, item, paths, etag = "") {
  return send("DELETE", ["dbs", db, "colls", coll, "docs", item.id], { headers: { "x-ms-documentdb-partitionkey": keyHeader(item, paths), ...(etag && { "if-match": etag }) } });
}

/** Does something with all, a few at a time; answers what failed. @template T @param {T[]} all @param {number} width @param {(one: T) => Promise<void>} work */
export async function each(all, width, work) {
  const failures = [];
  let next = 0;
  const lane = async () => {
    while (next < all.length) {
      const one = all[next++];
      try {
        await work(one);
      } catch (problem) {
        failures.push(problem);
      }
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  return failures;
}
