// A table of the Table API: its entities with the types of their properties, a $filter, and an editor that keeps the types.
import { html, useState } from "../vendor/preact.js";
import { TYPES, bodyOf, entities, entityPath, sendTable } from "../api/tables.js";
import { toCsv } from "../api/files.js";
import { announce, databases, definitionOf, readOnly, READ_ONLY } from "../state.js";
import { Confirm, ErrorBox, Field, Loading, download, plural } from "../parts/ui.js";
import { useRows } from "../parts/list.js";
import { Table } from "../parts/table.js";

const COLUMNS_MAX = 14;
const short = (type) => type.replace("Edm.", "");

export default function Entities({ db, coll }) {
  const definition = definitionOf(db, coll);
  const [filter, setFilter] = useState("");
  const [asked, setAsked] = useState("");
  const [open, setOpen] = useState(null);
  const [deleting, setDeleting] = useState(false);
  const { rows, load, error, selected, setSelected, chosen, table, status } = useRows((text = asked) => (next, count, signal) => entities(coll, { filter: text, top: count, next, signal }));
  if (!databases.value) return html`<${Loading} />`;
  if (!definition) return html`<p>There is no table <strong>${coll}</strong>. <a href="#/">Home</a></p>`;
  const types = new Map();
  for (const one of rows?.sample() ?? []) for (const { name, type } of one.properties) types.set(name, (types.get(name) ?? new Set()).add(short(type)));
  const columns = [...["PartitionKey", "RowKey"].map((name) => ({ name, of: (row) => row[name] })),
    ...[...types].slice(0, COLUMNS_MAX).map(([name, kinds]) => ({ name: `${name} · ${[...kinds].join(" | ")}`, of: (row) => row.properties.find((one) => one.name === name)?.value })), { name: "Timestamp", of: (row) => row.Timestamp }];
  const remove = async () => {
    for (const one of await chosen()) await sendTable("DELETE", entityPath(coll, one), { headers: { "if-match": one.etag } });
    announce(`Deleted ${plural(selected.size, "entity", "entities")}`);
    setOpen(null);
    load();
  };
  return html`<div class="split"><div class="list"><h1 class="small">${coll} <span class="badge">table</span></h1>
      <form class="toolbar" onSubmit=${(event) => (event.preventDefault(), setAsked(filter), load(filter))}>
        <input type="search" data-filter aria-label="Filter: $filter of the Table API" placeholder="$filter: PartitionKey eq 'rome' and Age ge 18" value=${filter} onInput=${(event) => setFilter(event.target.value)} /><button>Apply</button>
        <button type="button" class="primary" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${() => setOpen({ fresh: true, PartitionKey: "", RowKey: "", properties: [...types].map(([name, kinds]) => ({ name, type: `Edm.${[...kinds][0]}`, value: "" })) })}>New entity</button>
        <button type="button" disabled=${!rows?.length} onClick=${() => download(`${coll}.csv`, [toCsv(rows?.loaded() ?? [], columns.map(({ name, of }) => ({ name: name.split(" · ")[0], of })))], "text/csv")}>Export CSV</button></form>
      ${selected.size > 0 && html`<div class="toolbar" role="region" aria-label="Selected entities"><strong>${plural(selected.size, "entity", "entities")} selected</strong><button class="danger" disabled=${readOnly.value} onClick=${() => setDeleting(true)}>Delete</button><button class="plain" onClick=${() => setSelected(new Set())}>Clear</button></div>`}
      <${ErrorBox} error=${error} title="The entities could not be read" onRetry=${() => load()} />
      <${Table} label=${`Entities of ${coll}`} columns=${columns} ...${table} onOpen=${(n) => setOpen(rows?.at(n) ?? null)} onDelete=${() => selected.size && setDeleting(true)} remember=${`${db}/${coll}`}
        empty=${!rows || (!rows.done && !error) ? html`<${Loading} />` : error ? null : html`<p class="pad muted">${asked ? "Nothing matches the filter." : "No entities yet. Make one, or write with any client of Azure tables: the page Home has snippets."}</p>`} />
      ${status("entity", "entities")}</div>
    ${open && html`<${EntityEditor} key=${open.fresh ? "new" : `${open.PartitionKey}\n${open.RowKey}\n${open.etag}`} table=${coll} entity=${open} onClose=${() => setOpen(null)} onSaved=${() => (setOpen(null), load())} />`}
    ${deleting && html`<${Confirm} title="Delete entities" text=${`${plural(selected.size, "entity", "entities")} will be deleted. This cannot be undone.`} action="Delete" onDo=${remove} onClose=${() => setDeleting(false)} />`}
  </div>`;
}

function EntityEditor({ table, entity, onClose, onSaved }) {
  const [pk, setPk] = useState(entity.PartitionKey);
  const [rk, setRk] = useState(entity.RowKey);
  const [properties, setProperties] = useState(() => entity.properties.map((one) => ({ ...one, value: typeof one.value === "string" ? one.value : JSON.stringify(one.value) })));
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const put = (n, part) => setProperties(properties.map((one, m) => (m === n ? { ...one, ...part } : one)));
  const save = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const body = bodyOf(pk, rk, properties.filter((one) => one.name && (one.value !== "" || one.type === "Edm.String")));
      if (entity.fresh) await sendTable("POST", encodeURIComponent(table), { body, headers: { prefer: "return-no-content" } });
      else await sendTable("PUT", entityPath(table, entity), { body, headers: { "if-match": entity.etag } });
      announce("Saved");
      onSaved();
    } catch (problem) {
      setError(problem.status === 412 ? new Error("Somebody changed this entity meanwhile. Close it and open it again to see what they did.") : problem);
    }
    setBusy(false);
  };
  return html`<form class="side" onSubmit=${save} aria-label=${entity.fresh ? "New entity" : "Entity"}>
    <div class="row"><strong>${entity.fresh ? "New entity" : `${entity.PartitionKey} / ${entity.RowKey}`}</strong><span class="grow"></span><button class="primary" disabled=${busy || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined}>${busy ? "Saving…" : "Save"}</button><button type="button" class="plain" aria-label="Close the entity" onClick=${onClose}>✕</button></div>
    <${ErrorBox} error=${error} title="Not saved" />
    <div class="entity"><${Field} label="PartitionKey">${(id) => html`<input id=${id} value=${pk} disabled=${!entity.fresh} onInput=${(event) => setPk(event.target.value)} />`}</${Field}>
    <${Field} label="RowKey">${(id) => html`<input id=${id} value=${rk} disabled=${!entity.fresh} onInput=${(event) => setRk(event.target.value)} />`}</${Field}>
    <table class="plain-table"><thead><tr><th>Property</th><th>Type</th><th>Value</th><th><span class="muted">Remove</span></th></tr></thead><tbody>${properties.map((one, n) => html`<tr key=${n}><td><input aria-label=${`Name of property ${n + 1}`} value=${one.name} onInput=${(event) => put(n, { name: event.target.value })} /></td>
      <td><select aria-label=${`Type of ${one.name || `property ${n + 1}`}`} value=${one.type} onChange=${(event) => put(n, { type: event.target.value })}>${TYPES.map((type) => html`<option key=${type} value=${type}>${short(type)}</option>`)}</select></td>
      <td>${one.type === "Edm.Boolean" ? html`<select aria-label=${`Value of ${one.name}`} value=${one.value || "false"} onChange=${(event) => put(n, { value: event.target.value })}><option>true</option><option>false</option></select>` : html`<input aria-label=${`Value of ${one.name || `property ${n + 1}`}`} value=${one.value} onInput=${(event) => put(n, { value: event.target.value })} />`}</td>
      <td><button type="button" class="plain small" aria-label=${`Remove ${one.name || `property ${n + 1}`}`} onClick=${() => setProperties(properties.filter((_, m) => m !== n))}>✕</button></td></tr>`)}</tbody></table>
    <button type="button" class="small" onClick=${() => setProperties([...properties, { name: "", type: "Edm.String", value: "" }])}>Add a property</button>
    ${entity.Timestamp && html`<p class="muted small">Timestamp ${entity.Timestamp}</p>`}</div></form>`;
}
