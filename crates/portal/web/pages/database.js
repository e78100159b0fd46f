// A database: its containers, its shared throughput, its forks, its end.
import { html, useEffect, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { announce, databases, go, loadTree, readOnly, to, READ_ONLY } from "../state.js";
import { Confirm, ErrorBox, Loading, figure, plural } from "../parts/ui.js";
import { Scale } from "../parts/scale.js";

/** What was forked from it, and what it was forked from. */
function Forks({ db }) {
  const [forks, setForks] = useState([]);
  const [error, setError] = useState(null);
  const read = () => send("GET", ["_orrery", "forks"], { quiet: true }).then((answer) => setForks(answer.value.forks), () => {});
  useEffect(() => void read(), [db]);
  const fork = async () => {
    setError(null);
    try {
      const made = (await send("POST", ["_orrery", "forks"], { body: { database: db } })).value;
      announce(`Made ${made.id} in ${figure(made.tookUs / 1000)} ms`);
      await loadTree();
      go("d", made.id);
    } catch (problem) {
      setError(problem);
    }
  };
  const origin = forks.find((one) => one.id === db)?.origin;
  const mine = forks.filter((one) => one.origin === db);
  return html`<section class="card"><h2>Forks</h2>
    ${origin ? html`<p>This is a fork of <strong>${origin}</strong>. It ends with the server, or when you delete it.</p>` : html`<p>A fork begins with everything that is here now, to be changed and thrown away. It is made in milliseconds, and ends with the server.</p>`}
    ${mine.length > 0 && html`<ul>${mine.map((one) => html`<li key=${one.id}><a href=${to("d", one.id)}>${one.id}</a></li>`)}</ul>`}
    <${ErrorBox} error=${error} title="Not forked" />
    <button disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${fork}>Fork the database</button></section>`;
}

export default function Database({ db }) {
  const [deleting, setDeleting] = useState(false);
  const database = databases.value?.find((one) => one.id === db);
  if (!databases.value) return html`<${Loading} />`;
  if (!database) return html`<p>There is no database <strong>${db}</strong>. <a href="#/">Home</a></p>`;
  return html`<h1>${db}</h1>
    <section class="card"><h2>${plural(database.containers.length, "container")}</h2>
      <ul>${database.containers.map((one) => html`<li key=${one.id}><a href=${to("c", db, one.id, "items")}>${one.id}</a> <code class="muted">${one.partitionKey?.paths?.join(", ") ?? "fixed"}</code></li>`)}</ul>
      <a class="button" href=${to("new", db)} aria-disabled=${readOnly.value ? "true" : undefined}>New container</a></section>
    <section class="card"><h2>Users and permissions</h2><p>Tokens that open one container, or one partition key, to somebody without a key.</p><a class="button" href=${to("d", db, "users")}>Users and permissions</a></section>
    <section class="card"><h2>Shared throughput</h2><${Scale} of=${database} absent="This database has no throughput of its own; its containers have theirs." /></section>
    <${Forks} db=${db} />
    <section class="card"><h2>Delete</h2><p>The database, its containers and all of their items. There is no way back.</p><button class="danger" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${() => setDeleting(true)}>Delete the database</button></section>
    ${deleting && html`<${Confirm} title="Delete the database?" text=${`${plural(database.containers.length, "container")} with all items will be gone.`} name=${db} action="Delete for good" onClose=${() => setDeleting(false)} onDo=${async () => {
      await send("DELETE", ["dbs", db]);
      announce(`Deleted ${db}`);
      await loadTree();
      go();
    }} />`}`;
}
