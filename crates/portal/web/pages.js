// The pages: path, module, title, letter after `g`. Those of a container depend on what it is.
import { kindOf } from "./api/kinds.js";

export const PAGES = {
  "": ["home", "Home"],
  new: ["new-container", "New container"],
  activity: ["activity", "Activity"],
  faults: ["faults", "Faults & throttling"],
};

const OF_CONTAINER = {
  items: ["items", "Items", "i"],
  query: ["query", "Query", "q"],
  graph: ["graph", "Graph", "v"],
  partitions: ["partitions", "Partitions", "p"],
  settings: ["settings", "Scale & settings", "s"],
  scripts: ["scripts", "Scripts", "r"],
  changes: ["changes", "Changes", "c"],
  advisor: ["advisor", "Advisor", "a"],
};
const OF_TABLE = { ...OF_CONTAINER, items: ["entities", "Entities", "i"] };
delete OF_TABLE.graph;
delete OF_TABLE.advisor;

const OF_COLLECTION = { ...OF_CONTAINER, items: ["documents", "Documents", "i"] };
delete OF_COLLECTION.graph;
const PAGES_OF = { table: OF_TABLE, collection: OF_COLLECTION, container: OF_CONTAINER };

/** @param {string} db @param {any} definition @returns {Record<string, string[]>} */
export const pagesOf = (db, definition) => PAGES_OF[kindOf(db, definition)];
