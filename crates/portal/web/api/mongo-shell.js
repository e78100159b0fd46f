// What is typed for MongoDB, db.orders.find({ total: { $gt: 5 } }).sort({ total: -1 }), as the command that it stands for.
import { Reader, newObjectId } from "./mongo-values.js";

/** A page of a cursor. */
const BATCH = 100;

/** @typedef {{name: string, arguments: string, text: string, writes?: boolean}} Method */
/** The methods of a collection, for whoever types. @type {Method[]} */
export const METHODS = [
  { name: "find", arguments: "(filter, projection)", text: "The documents that a filter finds; .sort(), .skip(), .limit(), .hint(), .collation(), .count() and .explain() may follow." },
  { name: "findOne", arguments: "(filter, projection)", text: "The first of them." },
  { name: "aggregate", arguments: "([stages], options)", text: "What a pipeline of stages makes of the documents." },
  { name: "countDocuments", arguments: "(filter)", text: "How many documents a filter finds." },
  { name: "estimatedDocumentCount", arguments: "()", text: "How many documents there are." },
  { name: "distinct", arguments: "(field, filter)", text: "The different values of a field." },
  { name: "insertOne", arguments: "(document)", text: "Writes a document.", writes: true },
  { name: "insertMany", arguments: "([documents])", text: "Writes documents.", writes: true },
  { name: "updateOne", arguments: "(filter, update, options)", text: "Changes the first document that a filter finds.", writes: true },
  { name: "updateMany", arguments: "(filter, update, options)", text: "Changes all documents that a filter finds.", writes: true },
  { name: "replaceOne", arguments: "(filter, document, options)", text: "Puts a document in the place of another.", writes: true },
  { name: "deleteOne", arguments: "(filter)", text: "Deletes the first document that a filter finds.", writes: true },
  { name: "deleteMany", arguments: "(filter)", text: "Deletes all documents that a filter finds.", writes: true },
  { name: "findOneAndUpdate", arguments: "(filter, update, options)", text: "Changes a document and answers it as it was.", writes: true },
  { name: "findOneAndReplace", arguments: "(filter, document, options)", text: "Replaces a document and answers it as it was.", writes: true },
  { name: "findOneAndDelete", arguments: "(filter, options)", text: "Deletes a document and answers it.", writes: true },
  { name: "getIndexes", arguments: "()", text: "The indexes of the collection." },
  { name: "createIndex", arguments: "({field: 1}, options)", text: "Makes an index.", writes: true },
  { name: "dropIndex", arguments: "(name)", text: "Removes an index.", writes: true },
  { name: "stats", arguments: "()", text: "What the collection holds." },
];
/** What may follow a cursor. */
export const CURSOR_METHODS = ["sort", "skip", "limit", "projection", "hint", "collation", "batchSize", "maxTimeMS", "comment", "count", "explain", "toArray", "pretty"];

/** @param {any} number */
const count = (number) => Number(number?.$numberInt ?? number?.$numberLong ?? number?.$numberDouble ?? NaN);

/** The name of an index, as shells make it. @param {any} key */
export const indexName = (key) => Object.entries(key).map(([path, kind]) => `${path}_${typeof kind === "string" ? kind : count(kind)}`).join("_");

/**
 * A text as a command. `explain`: only how it would be done is wanted.
 * @param {string} text @param {string} coll the collection whose page this is
 * @returns {{command: any, explain: boolean}}
 */
export function commandOf(text, coll) {
  const reader = new Reader(text);
  const start = reader.space().at;
  if (reader.text[start] === "{") return { command: last(reader, reader.value()), explain: false };
  if (reader.name() !== "db") reader.fail(`Begin with db.${/^\w+$/.test(coll) ? coll : `getCollection('${coll}')`}.find({ … })`, start);
  let name = null;
  if (reader.takes("[")) [name] = reader.values("]");
  else {
    reader.needs(".");
    name = collection(reader);
    if (name === "getCollection" && reader.takes("(")) [name] = reader.values(")");
    else if (["runCommand", "adminCommand"].includes(name ?? "") && reader.takes("(")) return { command: last(reader, reader.values(")")[0]), explain: false };
  }
  if (typeof name !== "string" || !name) reader.fail("The name of a collection is missing");
  let explain = false;
  for (let first = true; ; first = false) {
    reader.needs(".");
    const at = reader.space().at;
    const method = reader.name();
    if (method === null || !reader.takes("(")) reader.fail("A method is missing, such as find({ … })", at);
    const given = reader.values(")");
    if (first && method === "explain") {
      explain = true;
      continue;
    }
    const command = built(method, given, name);
    if (!command) reader.fail(`${method}() is not known here`, at);
    for (;;) {
      if (!reader.takes(".")) break;
      const spot = reader.space().at;
      const next = reader.name();
      if (next === null || !reader.takes("(")) reader.fail("A method is missing", spot);
      const [value, second] = reader.values(")");
      if (next === "explain") explain = true;
      else if (next === "count" && command.find) {
        return { command: last(reader, { count: name, query: command.filter, ...(command.limit && { limit: command.limit }), ...(command.skip && { skip: command.skip }) }), explain };
      } else if (!follow(command, next, value, second)) reader.fail(`${next}() cannot follow here`, spot);
    }
    return { command: last(reader, command), explain };
  }
}

/** Names of collections may have dots: all but what a bracket follows. @param {Reader} reader */
function collection(reader) {
  const found = reader.space().match(/[\w$-]+(?:\.[\w$-]+)*(?=\.[A-Za-z]+\s*\()|[\w$-]+/y);
  return found?.[0] ?? null;
}

/** @template T @param {Reader} reader @param {T} command */
function last(reader, command) {
  reader.takes(";");
  if (!reader.over) reader.fail("One command at a time; there is more behind it");
  return command;
}

/** @param {any} command @param {string} method @param {any} value @param {any} second */
function follow(command, method, value, second) {
  if (["toArray", "pretty"].includes(method)) return true;
  const cursor = command.find || command.aggregate;
  if (!cursor || !["sort", "skip", "limit", "projection", "hint", "collation", "batchSize", "maxTimeMS", "comment"].includes(method) || (command.aggregate && ["sort", "skip", "limit", "projection"].includes(method))) return false;
  if (method === "batchSize") command.find ? (command.batchSize = value) : (command.cursor = { batchSize: value });
  else command[method] = second === undefined ? value : { [value]: second };
  return true;
}

/** @param {string} method @param {any[]} given @param {string} coll */
function built(method, given, coll) {
  const [first = {}, second = {}, third = {}] = given;
  const many = method.endsWith("Many");
  const put = (multi) => ({ update: coll, updates: [{ q: first, u: second, multi, ...third }] });
  switch (method) {
    case "find": return { find: coll, filter: first, ...(given[1] && { projection: second }), batchSize: BATCH, ...third };
    case "findOne": return { find: coll, filter: first, ...(given[1] && { projection: second }), limit: 1, singleBatch: true };
    case "aggregate": return Array.isArray(first) ? { aggregate: coll, pipeline: first, cursor: { batchSize: BATCH }, ...second } : { aggregate: coll, pipeline: given, cursor: { batchSize: BATCH } };
    case "countDocuments": return { count: coll, query: first, ...second };
    case "estimatedDocumentCount": return { count: coll };
    case "distinct": return { distinct: coll, key: first, query: second };
    case "insertOne":
    case "insertMany":
    case "insert": return { insert: coll, documents: (Array.isArray(first) ? first : [first]).map((one) => ("_id" in one ? one : { _id: newObjectId(), ...one })) };
    case "updateOne":
    case "updateMany": return put(many);
    case "replaceOne": return put(false);
    case "deleteOne":
    case "deleteMany": return { delete: coll, deletes: [{ q: first, limit: many ? 0 : 1, ...second }] };
    case "findOneAndUpdate":
    case "findOneAndReplace": {
      const { returnDocument, returnNewDocument, projection, ...rest } = third;
      return { findAndModify: coll, query: first, update: second, new: returnDocument === "after" || returnNewDocument === true, ...(projection && { fields: projection }), ...rest };
    }
    case "findOneAndDelete": return { findAndModify: coll, query: first, remove: true, ...second };
    case "getIndexes": return { listIndexes: coll };
    case "createIndex": return { createIndexes: coll, indexes: [{ key: first, name: indexName(first), ...second }] };
    case "dropIndex": return { dropIndexes: coll, index: first };
    case "stats": return { collStats: coll };
    default: return null;
  }
}

/** Whether a command changes something. @param {any} command */
export const writes = (command) => ["insert", "update", "delete", "findAndModify", "createIndexes", "dropIndexes"].some((name) => name in command);

/**
 * The index that a filter and an order would profit from: where documents were looked at one by one though the filter is one that an index
 * answers, or sorted by several fields. @param {any} command @param {any[]} stages @param {string} statement what the filter became
 */
export function wish(command, stages, statement) {
  const scans = stages.some((one) => one.stage === "COLLSCAN") && /\bWHERE\b/.test(statement);
  const sorts = stages.some((one) => one.stage === "SORT") && Object.keys(command.sort ?? {}).length > 1;
  if (!scans && !sorts) return null;
  const filter = command.filter ?? command.query ?? command.pipeline?.[0]?.$match ?? {};
  const fields = Object.entries(filter).filter(([name]) => !name.startsWith("$"));
  const isRange = (value) => value && typeof value === "object" && Object.keys(value).some((name) => ["$gt", "$gte", "$lt", "$lte", "$ne", "$nin", "$regex", "$exists"].includes(name));
  // Equal ones first, then the order, then ranges.
  const key = Object.fromEntries([...fields.filter(([, value]) => !isRange(value)).map(([name]) => [name, 1]), ...Object.entries(command.sort ?? {}).map(([name, way]) => [name, count(way)]), ...fields.filter(([, value]) => isRange(value)).map(([name]) => [name, 1])]);
  delete key._id;
  return Object.keys(key).length ? key : null;
}
