// The drawer: every request that the portal sent, as something to learn from.
import { html, useState } from "../vendor/preact.js";
import { requests } from "../api/client.js";
import { PROGRAMS, programOf, shapeOf } from "../api/programs.js";
import { curlOf } from "../api/snippets.js";
import { Choice, Copy, duration } from "../parts/ui.js";

export default function Requests() {
  const [open, setOpen] = useState("");
  const [form, setForm] = useState("request");
  const forms = [["request", "As sent"], ["curl", "curl"], ...Object.entries(PROGRAMS).map(([id, { title }]) => [id, title])];
  const text = (one) => (form === "curl" ? curlOf(one) : (PROGRAMS[form] && programOf(form, one)) || `${Object.entries(one.headers).map(([name, value]) => `${name}: ${value}`).join("\n")}${one.body ? `\n\n${one.body}` : ""}`);
  return html`<div class="drawer-body" tabindex="0" role="region" aria-label="Requests of this page">
    <div class="row"><span class="muted small">Newest first. Keys and signatures are not kept.</span><span class="grow"></span><button class="small" onClick=${() => (requests.value = [])}>Clear</button></div>
    <table class="plain-table"><thead><tr><th>Time</th><th>Request</th><th class="number">Status</th><th class="number">RU</th><th class="number">Time</th><th><span class="muted">Copy</span></th></tr></thead>
    <tbody>${requests.value.map((one) => html`<tr key=${one.id}><td class="nowrap muted">${one.at.toLocaleTimeString()}</td>
      <td><button class="link" aria-expanded=${open === one.id ? "true" : "false"} onClick=${() => setOpen(open === one.id ? "" : one.id)}><code>${one.method} ${decodeURIComponent(one.url)}</code></button>
        ${open === one.id && html`<div class="row">${html`<${Choice} label="Show the request as" value=${form === "request" || form === "curl" || shapeOf(one) ? form : "request"} onChange=${setForm} options=${shapeOf(one) ? forms : forms.slice(0, 2)} />`}<${Copy} text=${() => text(one)} what="what is shown" /></div><pre class="small" tabindex="0" aria-label="The request">${text(one)}</pre>`}</td>
      <td class="number"><span class=${`badge ${one.status >= 400 ? "bad" : "good"}`}>${one.status}</span></td><td class="number">${one.charge ? one.charge.toFixed(2) : "–"}</td><td class="number nowrap">${duration(one.ms)}</td>
      <td><${Copy} text=${() => curlOf(one)} what="request as a curl command" label="curl" /></td></tr>`)}</tbody></table></div>`;
}
