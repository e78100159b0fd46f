// Commands of MongoDB as requests: Extended JSON there and back, signed as everything else is. A browser cannot speak MongoDB's own
// protocol; what it can do here, any client over HTTP can.
import { send } from "./client.js";
import { commandOf, indexName } from "./mongo-shell.js";

const CURSOR_NOT_FOUND = 43;

/** @param {any} number */
export const numberOf = (number) => Number(number?.$numberInt ?? number?.$numberLong ?? number?.$numberDouble ?? number ?? 0);

/** An error of MongoDB, with its own number. @param {any} problem */
function named(problem) {
  const reply = problem.body;
  if (!reply?.errmsg) return problem;
  return Object.assign(new Error(reply.errmsg), { status: problem.status, substatus: numberOf(reply.code), raw: reply.errmsg, name: reply.codeName ?? "MongoDB" });
}

/** @param {string} db @param {any} command @param {{signal?: AbortSignal, quiet?: boolean}} [options] */
export async function run(db, command, options = {}) {
  try {
    const answer = await send("POST", ["_orrery", "mongo"], { body: { ...command, $db: db }, ...options });
    return { reply: answer.value, charge: answer.charge, ms: answer.ms };
  } catch (problem) {
    throw named(problem);
  }
}

/** Writes answer 200 with what was refused inside. @param {any} reply */
function refusal(reply) {
  const error = reply.writeErrors?.[0];
  if (error) throw Object.assign(new Error(error.errmsg), { status: numberOf(error.code) === 11000 ? 409 : 400, substatus: numberOf(error.code) });
  return reply;
}

/** @param {string} db @param {any} command @param {{signal?: AbortSignal}} [options] */
export const write = async (db, command, options) => {
  const answer = await run(db, command, options);
  refusal(answer.reply);
  return answer;
};

/** The cursor that goes on, as a text. @param {any} cursor @param {string} coll */
const onwards = (cursor, coll) => (numberOf(cursor?.id) === 0 ? "" : JSON.stringify({ id: cursor.id, coll }));

/** The rows of any reply. @param {any} command @param {any} reply */
function rowsOf(command, reply) {
  if (reply.cursor) return reply.cursor.firstBatch ?? reply.cursor.nextBatch ?? [];
  if (Array.isArray(reply.values)) return reply.values;
  if ("findAndModify" in command) return reply.value ? [reply.value] : [];
  const { ok, $clusterTime, operationTime, ...rest } = refusal(reply);
  return [rest];
}

/** One page of a text of the shell. @param {{db: string, coll: string, text: string, next: string, count?: number, signal: AbortSignal}} asked */
export async function page({ db, coll, text, next, count = 100, signal }) {
  const { command, explain } = commandOf(text, coll);
  if (next) return goOn(db, next, count, signal);
  const answer = await run(db, explain ? { explain: command, verbosity: "executionStats" } : command, { signal });
  if (explain) return { rows: [answer.reply], charge: answer.charge, ms: answer.ms, next: "", plan: { mongo: { command, reply: answer.reply, charge: answer.charge } } };
  return { rows: rowsOf(command, answer.reply), charge: answer.charge, ms: answer.ms, next: onwards(answer.reply.cursor, coll), plan: command.find || command.aggregate || command.count ? { mongo: { command, db } } : null };
}

/** @param {string} db @param {string} next @param {number} count @param {AbortSignal} signal */
async function goOn(db, next, count, signal) {
  const { id, coll } = JSON.parse(next);
  const answer = await run(db, { getMore: id, collection: coll, batchSize: count }, { signal });
  return { rows: answer.reply.cursor.nextBatch, charge: answer.charge, ms: answer.ms, next: onwards(answer.reply.cursor, coll) };
}

/**
 * Pages of documents that can be read again: a token is a place in the answer. Forward a cursor goes on; back there the documents
 * before the place are skipped.
 * @param {string} db @param {string} coll @param {any} filter @param {any} sort
 */
export function documentPages(db, coll, filter, sort) {
  let cursor = { id: null, at: -1 };
  return async (token, size, /** @type {AbortSignal} */ signal) => {
    const at = Number(token || 0);
    let answer = null;
    if (cursor.at === at) {
      const asked = { getMore: cursor.id, collection: coll, batchSize: size };
      cursor = { id: null, at: -1 };
      // A cursor that waited too long is gone.
      answer = await run(db, asked, { signal }).catch((problem) => (problem.substatus === CURSOR_NOT_FOUND ? null : Promise.reject(problem)));
    }
    answer ??= await run(db, { find: coll, filter, ...(sort && { sort }), ...(at && { skip: at }), batchSize: size }, { signal });
    const found = answer.reply.cursor;
    const rows = found.firstBatch ?? found.nextBatch;
    const end = at + rows.length;
    const open = numberOf(found.id) !== 0;
    if (open) cursor = { id: found.id, at: end };
    return { rows, charge: answer.charge, next: open ? String(end) : "" };
  };
}

/** The indexes of a collection. @param {string} db @param {string} coll */
export async function indexes(db, coll) {
  const { reply } = await run(db, { listIndexes: coll }, { quiet: true });
  return reply.cursor.firstBatch;
}

/** @param {string} db @param {string} coll @param {any} key @param {object} [options] */
export const addIndex = (db, coll, key, options = {}) => run(db, { createIndexes: coll, indexes: [{ key, name: indexName(key), ...options }] });

/** How a command is answered. @param {string} db @param {any} command */
export async function explain(db, { batchSize, cursor, ...command }) {
  const answer = await run(db, { explain: { ...command, ...(command.aggregate && { cursor: {} }) }, verbosity: "executionStats" });
  return { command, reply: answer.reply, charge: answer.charge };
}
