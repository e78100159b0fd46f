// What a container is to the other APIs: its items may be entities of a table, documents, or vertices and edges. A table is told by where
// it is and by its key, a collection of the MongoDB API by the size that it lets documents have; whether a container is a graph only its
// items tell, so any other container may be one.

/** The database of the Table API, as the service calls it. */
export const TABLES_DATABASE = "TablesDB";
/** Kept by the Table API for itself. */
const SERVICE_CONTAINER = "$service";
/** Kept by the MongoDB API for itself. */
const MONGO_CONTAINER = "$mongo";

/** @param {string} db @param {any} definition @returns {"table" | "collection" | "container"} */
export function kindOf(db, definition) {
  if (definition?.itemRules && definition.id !== MONGO_CONTAINER) return "collection";
  const path = definition?.partitionKey?.paths?.[0] ?? "";
  return db === TABLES_DATABASE && definition?.id !== SERVICE_CONTAINER && /^\/['"]?\$pk['"]?$/.test(path) ? "table" : "container";
}

/** Whether rows are vertices and edges, as Gremlin answers them or as SQL shows their items. @param {any[]} rows */
export const areElements = (rows) => rows.length > 0 && rows.slice(0, 20).every((row) => elementOf(row) !== null);

/**
 * A row as a vertex or an edge: {id, label, pk, edge, from, to, properties}; null where it is neither.
 * @param {any} row
 */
export function elementOf(row) {
  if (row === null || typeof row !== "object" || Array.isArray(row) || typeof row.label !== "string" || row.id === undefined) return null;
  const id = String(row.id);
  if (row.type === "edge" || row.type === "vertex") {
    const properties = Object.entries(row.properties ?? {}).map(([name, value]) => [name, Array.isArray(value) ? value.map((one) => one?.value ?? one) : [value]]);
    return row.type === "edge"
      ? { id, label: row.label, edge: true, from: String(row.outV), to: String(row.inV), fromLabel: row.outVLabel, toLabel: row.inVLabel, properties }
      : { id, label: row.label, edge: false, properties };
  }
  const own = Object.entries(row).filter(([name]) => !name.startsWith("_") && name !== "id" && name !== "label");
  if (row._isEdge === true) return { id, label: row.label, edge: true, from: String(row._vertexId), to: String(row._sink), fromLabel: row._vertexLabel, toLabel: row._sinkLabel, properties: own.map(([name, value]) => [name, [value]]) };
  if (!("_self" in row)) return null;
  return { id, label: row.label, edge: false, properties: own.map(([name, value]) => [name, Array.isArray(value) ? value.map((one) => one?._value ?? one) : [value]]) };
}

/** All vertices and edges inside of whatever a traversal answered: paths, maps, lists. @param {any} value @returns {any[]} */
export function elementsIn(value, found = /** @type {any[]} */ ([]), depth = 0) {
  const element = elementOf(value);
  if (element) found.push(element);
  else if (value !== null && typeof value === "object" && depth < 8) for (const inner of Object.values(value)) elementsIn(inner, found, depth + 1);
  return found;
}
