// What is here, how to connect, and something to begin with.
import { html, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { WELL_KNOWN_KEY } from "../api/sign.js";
import { announce, databases, go, loadTree, readOnly, session, to, wellKnownKey, READ_ONLY } from "../state.js";
import { Choice, Copy, ErrorBox, Loading, bytes, count, figure, plural, usePolling } from "../parts/ui.js";
import { APIS } from "../api/snippets.js";
import { loadSample } from "../api/sample.js";

export default function Home() {
  const [report, setReport] = useState(null);
  const [error, setError] = useState(null);
  usePolling(async () => {
    try {
      setReport((await send("GET", ["_orrery", "partitions"], { query: "keys=0", quiet: true })).value);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  }, 3000);
  const sums = new Map();
  for (const one of report?.partitions ?? []) {
    const name = `${one.database}\n${one.container}`;
    const sum = sums.get(name) ?? { partitions: 0, items: 0, size: 0, rate: 0, throttled: 0, throughput: 0 };
    sums.set(name, { partitions: sum.partitions + 1, items: sum.items + one.items, size: sum.size + one.sizeBytes, rate: sum.rate + one.ruPerSecond, throttled: sum.throttled + one.throttled, throughput: sum.throughput + one.throughput });
  }
  const containers = (databases.value ?? []).flatMap((db) => db.containers.map((one) => ({ db: db.id, id: one.id, key: one.partitionKey?.paths?.join(", ") ?? "–", ...(sums.get(`${db.id}\n${one.id}`) ?? {}) })));
  return html`<h1>${session.value.account} <small class="muted">at ${location.host}</small></h1>
    <${ErrorBox} error=${error} title="The figures could not be read" />
    ${!databases.value ? html`<${Loading} />` : containers.length === 0 ? html`<${Begin} />` : html`<section class="card"><h2>Containers</h2><div class="scroll-x" tabindex="0" role="region" aria-label="Containers and their figures"><table class="plain-table">
      <thead><tr><th>Container</th><th>Partition key</th><th class="number">Items</th><th class="number">Size</th><th class="number">Partitions</th><th class="number">RU/s provisioned</th><th class="number">RU/s now</th><th class="number">429s</th></tr></thead>
      <tbody>${containers.map((one) => html`<tr key=${`${one.db}/${one.id}`}><td><a href=${to("c", one.db, one.id, "items")}>${one.id}</a> <span class="muted small">${one.db}</span></td><td><code>${one.key}</code></td>
        <td class="number">${one.items === undefined ? "–" : count(one.items)}</td><td class="number nowrap">${one.size === undefined ? "–" : bytes(one.size)}</td><td class="number">${one.partitions ? html`<a href=${to("c", one.db, one.id, "partitions")}>${one.partitions}</a>` : "–"}</td>
        <td class="number">${one.throughput === undefined ? "–" : figure(one.throughput)}</td><td class="number">${one.rate === undefined ? "–" : figure(one.rate)}</td><td class="number">${one.throttled ? html`<span class="badge bad">${count(one.throttled)}</span>` : one.throttled === 0 ? "0" : "–"}</td></tr>`)}</tbody></table></div></section>`}
    <${Connect} />`;
}

function Begin() {
  const [state, setState] = useState("");
  const [error, setError] = useState(null);
  const run = async () => {
    setError(null);
    try {
      await loadSample((text) => setState(text));
      await loadTree();
      announce("The sample data are there");
      go("c", "sample", "orders-by-country", "partitions");
    } catch (problem) {
      setError(problem);
      setState("");
    }
  };
  return html`<section class="card"><h2>Nothing here yet</h2>
    <p>Make a container of your own, or load the sample: the same orders under a good and under a bad partition key, side by side.</p>
    <div class="row"><a class="button primary" href="#/new" aria-disabled=${readOnly.value ? "true" : undefined}>Create a container</a><button disabled=${readOnly.value || state} title=${readOnly.value ? READ_ONLY : undefined} onClick=${run}>Load sample data</button>
      ${state && html`<span role="status" class="muted"><span class="spinner" aria-hidden="true"></span> ${state}</span>`}</div>
    <${ErrorBox} error=${error} title="The sample was not loaded" />
  </section>`;
}

function Connect() {
  const [api, setApi] = useState("nosql");
  const [language, setLanguage] = useState("python");
  const [shown, setShown] = useState(false);
  const key = wellKnownKey ? WELL_KNOWN_KEY : "<your key>";
  const at = { origin: location.origin, host: location.host, secure: location.protocol === "https:", account: session.value.account, key };
  const one = APIS.find(({ id }) => id === api) ?? APIS[0];
  const program = one.languages[language] ?? Object.values(one.languages)[0];
  const masked = (text) => (shown || !wellKnownKey ? text : text.replaceAll(key, "••••••••").replaceAll(encodeURIComponent(key), "••••••••"));
  return html`<section class="card"><h2>Connect</h2>
    <${Choice} label="API" value=${api} onChange=${setApi} options=${APIS.map(({ id, title }) => [id, title])} />
    <p class="row"><code class="connection">${masked(one.connection(at))}</code> ${wellKnownKey && html`<button class="plain small" onClick=${() => setShown(!shown)}>${shown ? "Hide" : "Show"} the key</button>`}<${Copy} text=${one.connection(at)} what="connection string" /></p>
    <p><${Choice} label="Language" value=${program === one.languages[language] ? language : Object.keys(one.languages)[0]} onChange=${setLanguage} options=${Object.entries(one.languages).map(([id, { title }]) => [id, title])} /> ${program.install && html`<code class="muted small">${program.install}</code>`}</p>
    <div class="row top-aligned"><pre class="grow snippet" tabindex="0" aria-label="Example">${masked(program.text(at))}</pre><${Copy} text=${program.text(at)} what="example" /></div>
    <p class="muted small">With https the server shows its own certificate: <a href="/_explorer/emulator.pem" download="orrery.pem">emulator.pem</a>. Figures for Prometheus: <a href="/metrics">/metrics</a>.</p>
  </section>`;
}
