// Queries that are kept: those of this tab until it closes, and those that somebody saved by name for as long as the browser keeps them.

/** What was asked in this tab of the browser; gone with it. @param {string} name @param {any} otherwise */
export function kept(name, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

const SAVED = "orrery-saved-queries";
/** Of all containers together. */
const SAVED_MAX = 200;

/** @returns {{name: string, db: string, coll: string, language: string, text: string}[]} */
function all() {
  try {
    return JSON.parse(localStorage.getItem(SAVED) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {string} db @param {string} coll */
export const savedOf = (db, coll) => all().filter((one) => one.db === db && one.coll === coll);

/** Saves a query, in place of one of the same name. @param {{name: string, db: string, coll: string, language: string, text: string}} query */
export function save(query) {
  const rest = all().filter((one) => one.db !== query.db || one.coll !== query.coll || one.name !== query.name);
  localStorage.setItem(SAVED, JSON.stringify([query, ...rest].slice(0, SAVED_MAX)));
}

/** @param {string} db @param {string} coll @param {string} name */
export const forget = (db, coll, name) => localStorage.setItem(SAVED, JSON.stringify(all().filter((one) => one.db !== db || one.coll !== coll || one.name !== name)));
