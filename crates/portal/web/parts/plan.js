// How a query was answered: what was read for what came out, which indexes served and which would, and each partition's own words.
import { html, useState } from "../vendor/preact.js";
import { ErrorBox, count, duration, bytes } from "./ui.js";

/** @param {string | null} text name=value;… */
export const metricsOf = (text) => Object.fromEntries((text ?? "").split(";").filter(Boolean).map((part) => part.split("=")).map(([name, value]) => [name, Number(value)]));

export function Plan({ plan, rows, definition, onIndex }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [done, setDone] = useState("");
  if (!plan) return html`<p class="muted pad">Run the query to see how it is answered.</p>`;
  const metrics = metricsOf(plan.metrics);
  let lines = [], indexes = {};
  try {
    lines = JSON.parse(plan.explain ?? "[]");
    indexes = JSON.parse(decodeURIComponent(plan.indexes ?? "%7B%7D"));
  } catch {
    // Shown as far as it can be read.
  }
  const steps = [["Items loaded", metrics.retrievedDocumentCount ?? 0], ["Rows of this page", metrics.outputDocumentCount ?? 0]];
  const most = Math.max(1, ...steps.map(([, n]) => Number(n)));
  const single = (/** @type {any} */ one) => one.IndexSpec;
  const used = [...(indexes.UtilizedSingleIndexes ?? []).map(single), ...(indexes.UtilizedCompositeIndexes ?? []).map((/** @type {any} */ one) => one.IndexSpecs.join(", "))];
  const missing = [...(indexes.PotentialSingleIndexes ?? []).map((/** @type {any} */ one) => ({ text: one.IndexSpec, single: one.IndexSpec })), ...(indexes.PotentialCompositeIndexes ?? []).map((/** @type {any} */ one) => ({ text: one.IndexSpecs.join(", "), specs: one.IndexSpecs }))];
  const add = async (/** @type {any} */ wish) => {
    const policy = structuredClone(definition.indexingPolicy ?? {});
    if (wish.specs) {
      (policy.compositeIndexes ??= []).push(wish.specs.map((/** @type {string} */ spec) => {
        const [path, order] = spec.split(" ");
        return { path, order: /^desc/i.test(order ?? "") ? "descending" : "ascending" };
      }));
    } else (policy.includedPaths ??= []).push({ path: wish.single });
    try {
      await onIndex(policy);
      setDone(wish.text);
    } catch (problem) {
      setError(problem);
    }
  };
  const parts = [];
  for (const line of lines) line.startsWith("partition ") ? parts.push([line, []]) : parts.at(-1)?.[1].push(line);
  return html`<div class="cards" tabindex="0" role="region" aria-label="How the query was answered">
    <section class="card"><h2>What was read</h2>
      <div class="funnel" role="img" aria-label=${steps.map(([name, n]) => `${name}: ${n}`).join(", ")}>${steps.map(([name, n]) => html`<div key=${name} class="funnel-step"><span>${name} <strong>${count(Number(n))}</strong></span><div style=${{ width: `${(100 * Number(n)) / most}%` }}></div></div>`)}</div>
      <p class="muted small">${bytes(metrics.retrievedDocumentSize ?? 0)} loaded · index hit ratio ${((metrics.indexUtilizationRatio ?? 0) * 100).toFixed(0)} % · ${duration(metrics.totalExecutionTimeInMs ?? 0)}: plan ${duration(metrics.queryCompileTimeInMs ?? 0)}, index ${duration(metrics.indexLookupTimeInMs ?? 0)}, loading ${duration(metrics.documentLoadTimeInMs ?? 0)}</p>
      <h3>Indexes that served</h3>${used.length ? html`<ul>${used.map((text) => html`<li key=${text}><code>${text}</code></li>`)}</ul>` : html`<p class="muted">None: the items were looked at one by one, or not needed.</p>`}
      ${missing.length > 0 && html`<h3>Indexes that would help</h3><ul>${missing.map((wish) => html`<li key=${wish.text}><code>${wish.text}</code> ${done === wish.text ? html`<span class="badge good">added</span>` : onIndex && html`<button class="small" onClick=${() => add(wish)}>Add this index</button>`}</li>`)}</ul>`}
      <${ErrorBox} error=${error} title="The index was not added" />
    </section>
    <section class="card"><h2>In each partition</h2>
      ${parts.length ? parts.map(([name, text]) => html`<h3 key=${name}>${name}</h3><${Funnel} text=${text.join(" ")} /><pre class="plan-text muted small">${text.join("\n")}</pre>`) : html`<p class="muted">This page needed no partition.</p>`}
    </section>
  </div>`;
}

/** What a partition says of itself, as steps that grow narrower: index entries, items, those that passed, rows. */
function Funnel({ text }) {
  const steps = [["index entries", /read (\d+) index/], ["items loaded", /loaded (\d+) item/], ["passed", /(\d+) passed/], ["rows", /(\d+) rows?/]]
    .map(([name, pattern]) => [name, Number(new RegExp(pattern).exec(text)?.[1] ?? NaN)]).filter(([, n]) => !Number.isNaN(n));
  if (steps.length < 2) return null;
  const most = Math.max(1, ...steps.map(([, n]) => Number(n)));
  return html`<div class="funnel" role="img" aria-label=${steps.map(([name, n]) => `${n} ${name}`).join(", ")}>${steps.map(([name, n]) => html`<div key=${name} class="funnel-step"><span class="small">${count(Number(n))} ${name}</span><div style=${{ width: `${(100 * Number(n)) / most}%` }}></div></div>`)}</div>`;
}
