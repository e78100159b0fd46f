// Who may do what in a database: users, their permissions, and tokens that open one container for some time.
import { html, useEffect, useState } from "../vendor/preact.js";
import { list, send } from "../api/client.js";
import { ascii, parse } from "../api/json.js";
import { announce, databases, readOnly, to, READ_ONLY } from "../state.js";
import { Choice, Confirm, Copy, Dialog, ErrorBox, Field, Loading } from "../parts/ui.js";

const HOUR_S = 3600;
const SPANS = [[600, "10 minutes"], [HOUR_S, "1 hour"], [5 * HOUR_S, "5 hours"], [24 * HOUR_S, "24 hours"]];

export default function Access({ db }) {
  const [users, setUsers] = useState(null);
  const [open, setOpen] = useState("");
  const [error, setError] = useState(null);
  const [name, setName] = useState("");
  const [deleting, setDeleting] = useState("");
  const path = ["dbs", db, "users"];
  const load = async () => {
    try {
      setUsers(await list(path, "Users"));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => void load(), [db]);
  const add = async (event) => {
    event.preventDefault();
    try {
      await send("POST", path, { body: { id: name.trim() } });
      setOpen(name.trim());
      setName("");
      await load();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<p class="small"><a href=${to("d", db)}>${db}</a></p><h1>Users and permissions</h1>
    <p>A permission opens one container, or one partition key of it, to somebody who has no key: the server makes a token that says so. Tokens are shown once and are not kept.</p>
    <${ErrorBox} error=${error} title="That did not work" onClose=${() => setError(null)} />
    <form class="toolbar" onSubmit=${add}><input aria-label="Name of the new user" placeholder="name of a user" value=${name} onInput=${(event) => setName(event.target.value)} /><button class="primary" disabled=${!name.trim() || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined}>Add the user</button></form>
    ${!users ? !error && html`<${Loading} />` : users.length === 0 ? html`<p class="muted">No users yet.</p>` : users.map((user) => html`<section key=${user.id} class="card"><div class="row"><button class="plain" aria-expanded=${open === user.id ? "true" : "false"} onClick=${() => setOpen(open === user.id ? "" : user.id)}>${open === user.id ? "▾" : "▸"} <strong>${user.id}</strong></button><span class="grow"></span><button class="small" disabled=${readOnly.value} onClick=${() => setDeleting(user.id)}>Delete the user</button></div>
      ${open === user.id && html`<${Permissions} db=${db} user=${user.id} />`}</section>`)}
    ${deleting && html`<${Confirm} title="Delete the user?" text=${`${deleting} and all of their permissions will be gone; their tokens open nothing any more.`} action="Delete" onClose=${() => setDeleting("")} onDo=${async () => {
      await send("DELETE", [...path, deleting]);
      announce(`Deleted ${deleting}`);
      await load();
    }} />`}`;
}

function Permissions({ db, user }) {
  const path = ["dbs", db, "users", user, "permissions"];
  const [all, setAll] = useState(null);
  const [error, setError] = useState(null);
  const [adding, setAdding] = useState(false);
  const [token, setToken] = useState(null);
  const [deleting, setDeleting] = useState("");
  const containers = databases.value?.find((one) => one.id === db)?.containers ?? [];
  const load = async () => {
    try {
      setAll(await list(path, "Permissions"));
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => void load(), []);
  const what = (link) => link.replace(/^dbs\/[^/]+\//, "").split("/").filter((_, n) => n % 2 === 1).join(" / ");
  const renew = async (id, seconds) => {
    setError(null);
    try {
      const answer = await send("GET", [...path, id], { headers: { "x-ms-documentdb-expiry-seconds": String(seconds) } });
      setToken({ id, text: answer.value._token, until: Date.now() + seconds * 1000 });
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${ErrorBox} error=${error} />
    ${!all ? html`<${Loading} />` : html`<table class="plain-table"><thead><tr><th>Permission</th><th>May</th><th>On</th><th><span class="muted">Token</span></th></tr></thead><tbody>${all.map((one) => html`<tr key=${one.id}><td>${one.id}</td><td>${one.permissionMode === "All" ? "read and write" : "read"}</td><td>${what(one.resource)}${one.resourcePartitionKey ? html` <code>${JSON.stringify(one.resourcePartitionKey)}</code>` : ""}</td>
      <td class="nowrap"><select aria-label=${`A token of ${one.id} for`} value="" onChange=${(event) => event.target.value && renew(one.id, Number(event.target.value))}><option value="">Token for…</option>${SPANS.filter(([seconds]) => seconds <= 24 * HOUR_S).map(([seconds, text]) => html`<option key=${seconds} value=${seconds}>${text}</option>`)}</select> <button class="plain small" disabled=${readOnly.value} aria-label=${`Delete ${one.id}`} onClick=${() => setDeleting(one.id)}>✕</button></td></tr>`)}</tbody></table>`}
    <button class="small gap-top" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${() => setAdding(true)}>Add a permission</button>
    ${token && html`<${Token} token=${token} onClose=${() => setToken(null)} />`}
    ${adding && html`<${NewPermission} containers=${containers} onClose=${() => setAdding(false)} onAdd=${async (body) => {
      await send("POST", path, { body: { ...body, resource: `dbs/${db}/colls/${body.resource}` } });
      announce("The permission is there");
      await load();
    }} />`}
    ${deleting && html`<${Confirm} title="Delete the permission?" text=${`${deleting} will be gone; its tokens open nothing any more.`} action="Delete" onClose=${() => setDeleting("")} onDo=${async () => {
      await send("DELETE", [...path, deleting]);
      await load();
    }} />`}`;
}

/** A token, once, with the time that it has left. */
function Token({ token, onClose }) {
  const [shown, setShown] = useState(false);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.round((token.until - now) / 1000));
  return html`<div class="means" role="status"><strong>Token of ${token.id}</strong> <span class="muted">${left ? `good for ${Math.floor(left / 60)} min ${left % 60} s` : "expired"}</span> <${Copy} text=${token.text} what="token" /><button class="plain small" onClick=${() => setShown(!shown)}>${shown ? "Hide" : "Show"}</button><button class="plain small" onClick=${onClose}>Done</button>${shown && html`<pre>${token.text}</pre>`}<p class="muted small">It is not kept. Whoever has it can use it until it expires or the permission is deleted.</p></div>`;
}

function NewPermission({ containers, onAdd, onClose }) {
  const [id, setId] = useState("");
  const [mode, setMode] = useState("Read");
  const [container, setContainer] = useState(containers[0]?.id ?? "");
  const [key, setKey] = useState("");
  const [error, setError] = useState(null);
  const add = async (event) => {
    event.preventDefault();
    try {
      let value = /** @type {any} */ (key);
      try {
        value = parse(key);
      } catch {
        // A text without quotes.
      }
      await onAdd({ id, permissionMode: mode, resource: container, ...(key && { resourcePartitionKey: JSON.parse(ascii(Array.isArray(value) ? value : [value])) }) });
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${Dialog} title="Add a permission" onClose=${onClose}><form onSubmit=${add}>
    <${Field} label="Name">${(at) => html`<input id=${at} required autofocus value=${id} onInput=${(event) => setId(event.target.value)} />`}</${Field}>
    <${Field} label="Container">${(at) => html`<select id=${at} value=${container} onChange=${(event) => setContainer(event.target.value)}>${containers.map((one) => html`<option key=${one.id}>${one.id}</option>`)}</select>`}</${Field}>
    <${Choice} label="May" value=${mode} onChange=${setMode} options=${[["Read", "Read"], ["All", "Read and write"]]} />
    <${Field} label="Only this partition key" hint="Empty: the whole container. Text, or JSON; an array for hierarchical keys.">${(at) => html`<input id=${at} value=${key} onInput=${(event) => setKey(event.target.value)} />`}</${Field}>
    <${ErrorBox} error=${error} title="Not added" /><div class="actions"><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${!id || !container}>Add</button></div></form></${Dialog}>`;
}
