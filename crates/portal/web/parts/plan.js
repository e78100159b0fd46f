// How a query was answered, as a picture: which index, how many entries, items and rows at each step, and what every partition took.
import { html, useState } from "../vendor/preact.js";
import { ErrorBox, bytes, count, duration, figure } from "./ui.js";

/** @param {string | null} text name=value;… */
export const metricsOf = (text) => Object.fromEntries((text ?? "").split(";").filter(Boolean).map((part) => part.split("=")).map(([name, value]) => [name, Number(value)]));

const STEPS = [["indexEntries", "index entries", "read from the index"], ["loaded", "items loaded", "read from the store"], ["matched", "items that fit", "passed the condition"], ["rows", "rows", "in the answer"]];
const WIDTH = 480, LEFT = 150, ROW = 62, BAR = 28;

/** What the headers of a page say. @param {any} plan */
export function read(plan) {
  let figures = { partitions: [], plans: [], others: 0 }, indexes = {};
  try {
    figures = { ...figures, ...JSON.parse(plan.explain ?? "{}") };
    indexes = JSON.parse(decodeURIComponent(plan.indexes ?? "%7B%7D"));
  } catch {
    // Shown as far as it can be read.
  }
  const composite = (one) => one.IndexSpecs.join(", ");
  return {
    ...figures,
    used: [...(indexes.UtilizedSingleIndexes ?? []).map((one) => one.IndexSpec), ...(indexes.UtilizedCompositeIndexes ?? []).map(composite)],
    missing: [...(indexes.PotentialSingleIndexes ?? []).map((one) => ({ text: one.IndexSpec, single: one.IndexSpec })), ...(indexes.PotentialCompositeIndexes ?? []).map((one) => ({ text: composite(one), specs: one.IndexSpecs }))],
  };
}

/** A policy with an index more. @param {any} policy @param {any} wish */
export function withIndex(policy, wish) {
  const next = structuredClone(policy ?? {});
  if (wish.specs) {
    (next.compositeIndexes ??= []).push(wish.specs.map((spec) => {
      const [path, order] = spec.split(" ");
      return { path, order: /^desc/i.test(order ?? "") ? "descending" : "ascending" };
    }));
  } else {
    (next.includedPaths ??= []).push({ path: wish.single });
    next.excludedPaths = (next.excludedPaths ?? []).filter((one) => one.path !== wish.single);
  }
  return next;
}

export function Plan({ plan, definition, onIndex }) {
  const [error, setError] = useState(null);
  const [done, setDone] = useState("");
  if (!plan) return html`<p class="muted pad">Run the query to see how it is answered.</p>`;
  const metrics = metricsOf(plan.metrics);
  const told = read(plan);
  const total = (name) => told.partitions.reduce((sum, one) => sum + one[name], 0);
  const add = async (wish) => {
    try {
      await onIndex(withIndex(definition.indexingPolicy, wish));
      setDone(wish.text);
    } catch (problem) {
      setError(problem);
    }
  };
  const ru = Math.max(1e-9, ...told.partitions.map((one) => one.ru));
  return html`<div class="cards plan" tabindex="0" role="region" aria-label="How the query was answered">
    <section class="card"><h2>From the index to the rows</h2>
      <${Funnel} steps=${STEPS.map(([name, one, what]) => ({ name: one, what, n: total(name) }))} used=${told.used} way=${told.plans[0]?.text.split("\n")[0] ?? ""} />
      <p class="muted small">${bytes(metrics.retrievedDocumentSize ?? 0)} loaded · index hit ratio ${((metrics.indexUtilizationRatio ?? 0) * 100).toFixed(0)} % · ${duration(metrics.totalExecutionTimeInMs ?? 0)}: plan ${duration(metrics.queryCompileTimeInMs ?? 0)}, index ${duration(metrics.indexLookupTimeInMs ?? 0)}, loading ${duration(metrics.documentLoadTimeInMs ?? 0)}</p>
      <h3>Indexes that served</h3>${told.used.length ? html`<ul>${told.used.map((text) => html`<li key=${text}><code>${text}</code></li>`)}</ul>` : html`<p class="muted">None: the items were looked at one by one, or not needed.</p>`}
      ${told.missing.length > 0 && html`<h3>Indexes that would help</h3><ul>${told.missing.map((wish) => html`<li key=${wish.text}><code>${wish.text}</code> ${done === wish.text ? html`<span class="badge good">added; it is being built</span>` : onIndex && html`<button class="small" onClick=${() => add(wish)}>Add this index</button>`}</li>`)}</ul>`}
      <${ErrorBox} error=${error} title="The index was not added" />
    </section>
    <section class="card"><h2>In each partition <small class="muted">${figure(total("ru"))} RU for this page</small></h2>
      ${told.partitions.length ? html`<div class="bars" role="img" aria-label=${told.partitions.map((one) => `Partition ${one.range}: ${one.ru} RU, ${one.rows} rows`).join("; ")}>${told.partitions.map((one) => html`<div key=${one.range} class="bar-row"><span>Partition ${one.range}</span><span class="bar-track"><span class="bar-fill" style=${{ width: `${(100 * one.ru) / ru}%` }}></span></span>
        <span class="number">${figure(one.ru)} RU <span class="muted">${count(one.loaded)} → ${count(one.rows)} rows</span></span></div>`)}</div>` : html`<p class="muted">This page needed no partition.</p>`}
      ${told.others > 0 && html`<p class="muted small">and ${count(told.others)} more</p>`}
      ${told.plans.map((one) => html`<details key=${one.range}><summary>Plan of partition ${one.range}</summary><pre class="plan-text muted small">${one.text}</pre></details>`)}
    </section>
  </div>`;
}

/** Steps that grow narrower, with how much each let through. */
function Funnel({ steps, used, way }) {
  const shown = steps.filter((one, n) => n > 0 || one.n > 0);
  const most = Math.max(1, ...shown.map((one) => one.n));
  const width = (n) => Math.max(2, (WIDTH - LEFT) * Math.sqrt(n / most));
  const height = 40 + shown.length * ROW;
  const middle = LEFT + (WIDTH - LEFT) / 2;
  return html`<svg class="plot funnel-plot" viewBox=${`0 0 ${WIDTH} ${height}`} role="img" aria-label=${`${way}. ${shown.map((one) => `${one.n} ${one.name}`).join(", ")}`}>
    <text x="0" y="18" class="strong">${way}</text><text x=${WIDTH} y="18" class="end muted">${used.length ? used.join("  ").slice(0, 40) : "no index"}</text>
    ${shown.map((one, n) => {
      const y = 34 + n * ROW, w = width(one.n), next = shown[n + 1];
      const after = next ? width(next.n) : 0;
      return html`<g key=${one.name}>
        <text x="0" y=${y + 14} class="strong">${count(one.n)} ${one.name}</text><text x="0" y=${y + 29} class="muted">${one.what}</text>
        <rect x=${middle - w / 2} y=${y} width=${w} height=${BAR} rx="4" class="funnel-bar" />
        ${next && html`<path d=${`M${middle - w / 2} ${y + BAR}L${middle + w / 2} ${y + BAR}L${middle + after / 2} ${y + ROW}L${middle - after / 2} ${y + ROW}Z`} class="funnel-flow" />
          ${one.n > 0 && html`<text x=${middle} y=${y + BAR + 21} class="middle muted">${figure((100 * next.n) / one.n)} %</text>`}`}
      </g>`;
    })}
  </svg>`;
}
