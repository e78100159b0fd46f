// How a command of MongoDB is answered: stage by stage, what each partition does, and an index that would help, with a button.
import { html, useEffect, useState } from "../vendor/preact.js";
import { addIndex, explain, numberOf } from "../api/mongo.js";
import { wish } from "../api/mongo-shell.js";
import { shown } from "../api/mongo-values.js";
import { readOnly, READ_ONLY } from "../state.js";
import { ErrorBox, Loading, count, duration, figure, plural } from "./ui.js";

const SAYS = { COLLSCAN: "looks at every document", IXSCAN: "reads an index", FETCH: "reads the documents that it found", SORT: "sorts them", IDHACK: "reads the one document of the id", EOF: "finds nothing: there is no such collection" };
const WIDTH = 300, BOX = 54, GAP = 30;

/** The stages of a plan, the first that runs first. @param {any} plan @returns {any[]} */
const stagesOf = (plan) => (plan ? [...stagesOf(plan.inputStage), plan] : []);

/** The stages of a pipeline behind the part that finds documents. @param {any} reply */
const pipelineOf = (reply) => (reply.stages ?? []).slice(1).map((stage) => ({ stage: Object.keys(stage)[0], pipeline: true, text: shown(Object.values(stage)[0], 0) }));

export function MongoPlan({ plan, db, coll }) {
  const [told, setTold] = useState(plan.reply ? plan : null);
  const [error, setError] = useState(null);
  const [added, setAdded] = useState("");
  useEffect(() => {
    if (!plan.reply) explain(plan.db, plan.command).then(setTold, setError);
  }, [plan]);
  if (error) return html`<${ErrorBox} error=${error} title="The plan could not be had" />`;
  if (!told) return html`<${Loading} what="Asking how it is answered" />`;
  const planner = told.reply.queryPlanner ?? {};
  const stats = told.reply.executionStats ?? told.reply.stages?.[0]?.$cursor?.executionStats ?? {};
  const found = stagesOf(planner.winningPlan);
  const way = planner.orrery ?? {};
  const stages = [...found, ...pipelineOf(told.reply)];
  const missing = wish(told.command, found, way.statement ?? "");
  const add = async () => {
    try {
      const name = told.command.find ?? told.command.aggregate ?? told.command.count ?? coll;
      await addIndex(db, name, missing);
      setAdded(shown(missing, 0));
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<div class="cards plan" tabindex="0" role="region" aria-label="How the command was answered">
    <section class="card"><h2>Stage by stage</h2><${Stages} stages=${stages} returned=${numberOf(stats.nReturned)} />
      <p class="muted small">${plural(numberOf(stats.nReturned), "document")} found · ${duration(numberOf(stats.executionTimeMillis))} · ${figure(told.charge)} RU for the explanation</p>
      ${added ? html`<p><span class="badge good">the index ${added} is there</span></p>` : missing && html`<h3>An index that would help</h3><p><code>${shown(missing, 0)}</code> <button class="small" disabled=${readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${add}>Add this index</button></p>`}
    </section>
    <section class="card"><h2>In each partition</h2>
      ${way.statement && html`<p class="small"><span class="muted">Asked of the store:</span> <code>${way.statement}</code></p>`}
      ${(way.partitions ?? []).map((one) => html`<details key=${numberOf(one.range)} open=${way.partitions.length === 1}><summary>Partition ${count(numberOf(one.range))}</summary><pre class="plan-text muted small">${one.plan}</pre></details>`)}
      ${!way.statement && html`<p class="muted">One document by its id: nothing is searched.</p>`}
    </section>
  </div>`;
}

function Stages({ stages, returned }) {
  const height = stages.length * (BOX + GAP) + 24;
  const detail = (one) => (one.pipeline ? one.text : one.stage === "IXSCAN" ? `${one.indexName ?? ""} ${shown(one.keyPattern ?? {}, 0)}` : one.stage === "SORT" ? shown(one.sortPattern ?? {}, 0) : SAYS[one.stage] ?? "");
  return html`<svg class="plot stages-plot" viewBox=${`0 0 ${WIDTH} ${height}`} role="img" aria-label=${`${stages.map((one) => `${one.stage}: ${one.pipeline ? "stage of the pipeline" : SAYS[one.stage] ?? ""} ${detail(one)}`).join("; then ")}; ${returned} documents`}>
    ${stages.map((one, n) => {
      const y = n * (BOX + GAP) + 2, text = detail(one);
      return html`<g key=${n}><rect x="2" y=${y} width=${WIDTH - 4} height=${BOX} rx="8" class=${one.stage === "COLLSCAN" ? "stage-box slow" : "stage-box"} />
        <text x="14" y=${y + 22} class="strong">${one.stage}</text><text x="14" y=${y + 40} class="muted">${text.length > 44 ? `${text.slice(0, 43)}…` : text}</text>
        <path d=${`M${WIDTH / 2} ${y + BOX}V${y + BOX + GAP - 6}m-4 -5l4 5l4 -5`} class="stage-arrow" /></g>`;
    })}
    <text x=${WIDTH / 2} y=${height - 6} class="middle strong">${plural(returned, "document")}</text>
  </svg>`;
}
