// What a container knows about its items beyond their index: properties that are computed, vectors, texts to search in.
import { html } from "../vendor/preact.js";
import { Field } from "./ui.js";
import { Rows } from "./rows.js";

const LANGUAGES = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

/** The parts of a definition that the form edits, each absent where it is empty. @param {any} definition */
export const policiesOf = (definition) => ({
  computedProperties: definition.computedProperties ?? [],
  vectorEmbeddings: definition.vectorEmbeddingPolicy?.vectorEmbeddings ?? [],
  defaultLanguage: definition.fullTextPolicy?.defaultLanguage ?? "en-US",
  fullTextPaths: definition.fullTextPolicy?.fullTextPaths ?? [],
  vectorIndexes: definition.indexingPolicy?.vectorIndexes ?? [],
  fullTextIndexes: definition.indexingPolicy?.fullTextIndexes ?? [],
});

/** A definition with them. @param {any} definition @param {ReturnType<typeof policiesOf>} policies */
export function withPolicies(definition, policies) {
  const some = (all) => (all.length ? all : undefined);
  const indexing = { ...(definition.indexingPolicy ?? {}) };
  const set = (name, all) => (all.length ? (indexing[name] = all) : delete indexing[name]);
  set("vectorIndexes", policies.vectorIndexes);
  set("fullTextIndexes", policies.fullTextIndexes);
  return {
    ...definition,
    computedProperties: some(policies.computedProperties),
    vectorEmbeddingPolicy: some(policies.vectorEmbeddings) && { vectorEmbeddings: policies.vectorEmbeddings },
    fullTextPolicy: some(policies.fullTextPaths) && { defaultLanguage: policies.defaultLanguage, fullTextPaths: policies.fullTextPaths },
    indexingPolicy: Object.keys(indexing).length ? { ...indexing, ...((policies.vectorIndexes.length || policies.fullTextIndexes.length) && !indexing.includedPaths && { includedPaths: [{ path: "/*" }], excludedPaths: policies.vectorEmbeddings.map((one) => ({ path: `${one.path}/*` })) }) } : definition.indexingPolicy,
  };
}

/** @param {{value: ReturnType<typeof policiesOf>, onChange: (next: any) => void, disabled?: boolean}} properties */
export function Policies({ value, onChange, disabled = false }) {
  const put = (name) => (rows) => onChange({ ...value, [name]: rows });
  return html`<h3>Computed properties</h3><p class="muted small">A query over one item, usable in queries and indexes as if it were stored.</p>
    <${Rows} title="computed properties" disabled=${disabled} rows=${value.computedProperties} onChange=${put("computedProperties")} blank=${{ name: "", query: "SELECT VALUE LOWER(c.name) FROM c" }} columns=${[{ name: "name", label: "Name", hint: "cp_lowerName" }, { name: "query", label: "Query", wide: true }]} />
    <h3>Vectors</h3>
    <${Rows} title="vector embeddings" disabled=${disabled} rows=${value.vectorEmbeddings} onChange=${put("vectorEmbeddings")} blank=${{ path: "/embedding", dataType: "float32", distanceFunction: "cosine", dimensions: 1536 }} columns=${[{ name: "path", label: "Path", wide: true }, { name: "dataType", label: "Type", options: ["float32", "float16", "int8", "uint8"] }, { name: "distanceFunction", label: "Distance", options: ["cosine", "dotproduct", "euclidean"] }, { name: "dimensions", label: "Dimensions", type: "number" }]} />
    <p></p><${Rows} title="vector indexes" disabled=${disabled} rows=${value.vectorIndexes} onChange=${put("vectorIndexes")} blank=${{ path: value.vectorEmbeddings[0]?.path ?? "/embedding", type: "diskANN" }} columns=${[{ name: "path", label: "Path", wide: true }, { name: "type", label: "Index", options: ["diskANN", "quantizedFlat", "flat"] }]} />
    <h3>Full text</h3>
    <${Field} label="Language where a path has none">${(id) => html`<select id=${id} disabled=${disabled} value=${value.defaultLanguage} onChange=${(event) => onChange({ ...value, defaultLanguage: event.target.value })}>${LANGUAGES.map((one) => html`<option key=${one}>${one}</option>`)}</select>`}</${Field}>
    <${Rows} title="full-text paths" disabled=${disabled} rows=${value.fullTextPaths} onChange=${put("fullTextPaths")} blank=${{ path: "/text", language: value.defaultLanguage }} columns=${[{ name: "path", label: "Path", wide: true }, { name: "language", label: "Language", options: LANGUAGES }]} />
    <p></p><${Rows} title="full-text indexes" disabled=${disabled} rows=${value.fullTextIndexes} onChange=${put("fullTextIndexes")} blank=${{ path: value.fullTextPaths[0]?.path ?? "/text" }} columns=${[{ name: "path", label: "Path", wide: true }]} />`;
}
