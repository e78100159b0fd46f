// A new container, with what it will be said before the button is pressed.
import { html, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { parse } from "../api/json.js";
import { announce, databases, go, loadTree, readOnly, route, session, READ_ONLY } from "../state.js";
import { Choice, ErrorBox, Field, Loading } from "../parts/ui.js";
import { Throughput, throughputHeaders } from "../parts/throughput.js";
import { Editor } from "../parts/editor.js";
import { Policies, policiesOf, withPolicies } from "../parts/policies.js";
import { Synthetic } from "../parts/synthetic.js";
import { sendTable } from "../api/tables.js";
import { run } from "../api/mongo.js";
import { TABLES_DATABASE } from "../api/kinds.js";

const KEYS_MAX = 3;

/** @param {string} coll @param {string} shard the field that divides it, or nothing @param {{kind: string, value: number}} amount */
const collectionCommand = (coll, shard, amount) => ({
  customAction: "CreateCollection", collection: coll, ...(shard && { shardKey: shard }),
  ...(amount.kind === "manual" && { offerThroughput: { $numberInt: String(amount.value) } }), ...(amount.kind === "autoscale" && { autoScaleSettings: { maxThroughput: { $numberInt: String(amount.value) } } }),
});

export default function NewContainer() {
  const [db, setDb] = useState(route.value[1] ?? databases.value?.[0]?.id ?? "");
  const [fresh, setFresh] = useState(!databases.value?.length);
  const [id, setId] = useState("");
  const [kind, setKind] = useState("unlimited");
  const [keys, setKeys] = useState(["/"]);
  const [amount, setAmount] = useState({ kind: session.value.serverless ? "none" : "manual", value: 400 });
  const [shared, setShared] = useState(false);
  const [ttl, setTtl] = useState("");
  const [unique, setUnique] = useState("");
  const [policy, setPolicy] = useState("");
  const [what, setWhat] = useState("container");
  const [policies, setPolicies] = useState(() => policiesOf({}));
  const [shard, setShard] = useState("");
  const [helping, setHelping] = useState(false);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  if (!databases.value) return html`<${Loading} />`;
  const wrongKey = (path) => (!/^\/.+/.test(path) ? "A path such as /customer or /address/city." : what === "graph" && /^\/(id|label)$/.test(path) ? "A graph cannot be partitioned by id or label." : "");
  const wrong = what === "table" ? !id : what === "collection" ? !id || !db : !id || !db || (kind === "unlimited" && keys.some(wrongKey));

  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      if (what === "table") {
        await sendTable("POST", "Tables", { body: JSON.stringify({ TableName: id }), headers: throughputHeaders(amount.kind, amount.value) });
        await loadTree();
        announce(`Created ${id}`);
        return go("c", TABLES_DATABASE, id, "items");
      }
      const headers = throughputHeaders(amount.kind, amount.value);
      if (what === "collection") {
        if (fresh && shared) await send("POST", ["dbs"], { body: { id: db }, headers });
        await run(db, collectionCommand(id, shard.trim(), fresh && shared ? { kind: "none", value: 0 } : amount));
        await loadTree();
        announce(`Created ${id}`);
        return go("c", db, id, "items");
      }
      let body = /** @type {any} */ ({ id });
      if (kind === "unlimited") body.partitionKey = { paths: keys, kind: keys.length > 1 ? "MultiHash" : "Hash", version: 2 };
      if (ttl) body.defaultTtl = Number(ttl);
      if (unique.trim()) body.uniqueKeyPolicy = { uniqueKeys: unique.trim().split("\n").map((line) => ({ paths: line.split(",").map((path) => path.trim()) })) };
      if (policy.trim()) body.indexingPolicy = parse(policy);
      body = withPolicies(body, policies);
      if (fresh) await send("POST", ["dbs"], { body: { id: db }, headers: shared ? headers : {} });
      await send("POST", ["dbs", db, "colls"], { body, headers: { ...(fresh && shared ? {} : headers), ...(kind === "fixed" && { "x-ms-version": "2018-06-18" }) } });
      await loadTree();
      announce(`Created ${id}`);
      go("c", db, id, what === "graph" ? "graph" : "items");
    } catch (problem) {
      setError(problem);
      loadTree();
    }
    setBusy(false);
  };
  return html`<h1>New container</h1>
    <form class="card narrow" onSubmit=${create}>
      <${Choice} label="What to make" value=${what} options=${[["container", "Container"], ["collection", "Collection"], ["graph", "Graph"], ["table", "Table"]]} onChange=${(next) => (setWhat(next), next === "graph" && setKind("unlimited"))} />
      <p class="muted small">${{ container: "Items in JSON, asked in SQL.", collection: "Documents of the MongoDB API, with dates, object ids and all other types of theirs; asked as MongoDB asks, and in SQL.", graph: "Vertices and edges, asked in Gremlin and in SQL.", table: "Entities of the Table API, kept in the database TablesDB; asked with $filter and in SQL." }[what]}</p>
      ${what !== "table" && databases.value.length > 0 && html`<${Choice} label="Database" value=${fresh ? "new" : "there"} options=${[["there", "A database that is there"], ["new", "A new database"]]} onChange=${(value) => (setFresh(value === "new"), setDb(value === "new" ? "" : databases.value?.[0]?.id ?? ""))} />`}
      ${what !== "table" && html`<${Field} label="Database">${(at) => fresh ? html`<input id=${at} required autocomplete="off" value=${db} onInput=${(event) => setDb(event.target.value)} />` : html`<select id=${at} value=${db} onChange=${(event) => setDb(event.target.value)}>${databases.value?.map((one) => html`<option key=${one.id}>${one.id}</option>`)}</select>`}</${Field}>`}
      <${Field} label=${what === "table" ? "Table" : what === "collection" ? "Collection" : "Container"} hint=${what === "table" ? "Letters and digits, beginning with a letter." : ""}>${(at) => html`<input id=${at} required autocomplete="off" value=${id} onInput=${(event) => setId(event.target.value)} />`}</${Field}>
      ${what === "table" ? html`<p class="means">Partitioned by PartitionKey; RowKey names an entity inside of it.</p>` : what === "collection" ? html`<${Field} label="Shard key" hint="The field by which documents are spread: customer, or address.city. Empty: one physical partition for good, up to 10,000 RU/s and 20 GB.">${(at) => html`<input id=${at} class="mono" autocomplete="off" value=${shard} onInput=${(event) => setShard(event.target.value)} />`}</${Field}>` : html`${what === "container" && html`<${Choice} label="Size" value=${kind} options=${[["unlimited", "Unlimited (partitioned)"], ["fixed", "Fixed (20 GB, no key)"]]} onChange=${setKind} />`}
      ${kind === "fixed" ? html`<p class="means">One physical partition for good: up to 10,000 RU/s and 20 GB. A container that may grow needs a partition key.</p>` : html`
        ${keys.map((path, n) => html`<${Field} key=${n} label=${keys.length > 1 ? `Partition key, level ${n + 1}` : "Partition key"} error=${path !== "/" && wrongKey(path)} hint=${n === 0 ? "The property by which items are spread. Good ones have many values, and are known when you read: a customer, a device, a tenant." : ""}>${(at) => html`<div class="row"><input id=${at} class="grow mono" required value=${path} onInput=${(event) => setKeys(keys.map((one, m) => (m === n ? event.target.value : one)))} />${n > 0 && html`<button type="button" aria-label="Remove this level" onClick=${() => setKeys(keys.filter((_, m) => m !== n))}>✕</button>`}</div>`}</${Field}>`)}
        ${keys.length < KEYS_MAX && html`<button type="button" class="small" onClick=${() => setKeys([...keys, "/"])}>Add a level (hierarchical key)</button>`} <button type="button" class="small" aria-expanded=${helping ? "true" : "false"} onClick=${() => setHelping(!helping)}>Make a key of several properties</button>
        ${helping && html`<${Synthetic} onUse=${(path) => (setKeys([path]), setHelping(false))} />`}`}`}
      <h2 class="gap">Throughput</h2>
      ${session.value.serverless ? html`<p class="muted">The account is serverless: nothing is provisioned.</p>` : html`<${Throughput} ...${amount} kinds=${[["manual", "Manual"], ["autoscale", "Autoscale"], ...(!fresh ? [["none", "Shared from the database"]] : [])]} onChange=${setAmount} />
        ${fresh && amount.kind !== "none" && html`<label class="row"><input type="checkbox" checked=${shared} onChange=${(event) => setShared(event.target.checked)} /> Give it to the database, shared by all of its containers</label>`}`}
      ${(what === "container" || what === "graph") && html`<details><summary>More: time to live, unique keys, indexing policy, computed properties, vectors, full text</summary>
        <${Field} label="Time to live, in seconds" hint="Empty: items stay. -1: only items with a ttl of their own expire.">${(at) => html`<input id=${at} type="number" min="-1" value=${ttl} onInput=${(event) => setTtl(event.target.value)} />`}</${Field}>
        <${Field} label="Unique keys" hint="One constraint a line, its paths with commas: /email or /first, /last. They cannot be changed later.">${(at) => html`<textarea id=${at} rows="2" value=${unique} onInput=${(event) => setUnique(event.target.value)}></textarea>`}</${Field}>
        <p><strong>Indexing policy</strong> <span class="muted small">Empty: everything is indexed.</span></p><${Editor} label="Indexing policy as JSON" size="short" value=${policy} onChange=${setPolicy} />
        <${Policies} value=${policies} onChange=${setPolicies} />
      </details>`}
      <${ErrorBox} error=${error} title="Not created" />
      <div class="actions"><button class="primary" disabled=${busy || wrong || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined}>${busy ? "Creating…" : "Create"}</button></div>
    </form>`;
}
