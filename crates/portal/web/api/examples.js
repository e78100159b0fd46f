// Queries that say something about these very items.

/** @param {string} language @param {Map<string, any>} paths @param {string[]} keys @param {any[]} sample @param {string} coll @returns {[string, string][]} */
export function examplesFor(language, paths, keys, sample, coll) {
  if (language === "gremlin") return gremlin(sample);
  if (language === "filter") return filters(sample);
  if (language === "mongo") return mongo(paths, sample, coll);
  const plain = [...paths].filter(([path]) => !path.startsWith("_") && !path.includes("["));
  const numbers = plain.filter(([, { kind }]) => kind === "number").map(([path]) => path);
  const texts = plain.filter(([path, { kind }]) => kind === "string" && path !== "id").map(([path]) => path);
  const key = keys[0]?.slice(1).replaceAll("/", ".");
  const examples = /** @type {[string, string][]} */ ([["Count the items", "SELECT VALUE COUNT(1) FROM c"]]);
  if (key && /^[\w.]+$/.test(key)) examples.push(["Items by partition key", `SELECT c.${key}, COUNT(1) AS items FROM c GROUP BY c.${key}`]);
  if (numbers[0]) examples.push([`Largest ${numbers[0]}`, `SELECT TOP 10 * FROM c ORDER BY c.${numbers[0]} DESC`]);
  if (numbers[0] && texts[0]) examples.push([`${numbers[0]} by ${texts[0]}`, `SELECT c.${texts[0]}, AVG(c.${numbers[0]}) AS mean, COUNT(1) AS items\nFROM c\nGROUP BY c.${texts[0]}`]);
  if (texts[0] && typeof sample[0]?.[texts[0]] === "string") examples.push([`By ${texts[0]}`, `SELECT * FROM c WHERE c.${texts[0]} = ${JSON.stringify(sample[0][texts[0]])}`]);
  return examples;
}

/** @param {Map<string, any>} paths @param {any[]} sample @param {string} coll @returns {[string, string][]} */
function mongo(paths, sample, coll) {
  const at = /^[A-Za-z_][\w$]*$/.test(coll) ? `db.${coll}` : `db.getCollection(${JSON.stringify(coll)})`;
  const fields = [...paths].filter(([path]) => /^[A-Za-z]\w*$/.test(path) && path !== "id");
  const numbers = fields.filter(([, { kind }]) => kind === "number").map(([path]) => path);
  const texts = fields.filter(([path, { kind }]) => kind === "string" && typeof sample[0]?.[path] === "string").map(([path]) => path);
  const examples = /** @type {[string, string][]} */ ([["Count the documents", `${at}.countDocuments({})`], ["Its indexes", `${at}.getIndexes()`]]);
  if (texts[0]) examples.push([`By ${texts[0]}`, `${at}.find({ ${texts[0]}: ${JSON.stringify(sample[0][texts[0]])} })`]);
  if (numbers[0]) examples.push([`Largest ${numbers[0]}`, `${at}.find({}).sort({ ${numbers[0]}: -1 }).limit(10)`]);
  if (texts[0] && numbers[0]) examples.push([`${numbers[0]} by ${texts[0]}`, `${at}.aggregate([\n  { $group: { _id: "$${texts[0]}", mean: { $avg: "$${numbers[0]}" }, documents: { $sum: 1 } } },\n  { $sort: { documents: -1 } }\n])`]);
  if (texts[0]) examples.push([`Index on ${texts[0]}`, `${at}.createIndex({ ${texts[0]}: 1 })`]);
  return examples;
}

/** @param {any[]} sample @returns {[string, string][]} */
function gremlin(sample) {
  const quoted = (text) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const label = sample.find((one) => typeof one?.label === "string" && !one._isEdge)?.label ?? "person";
  const edge = sample.find((one) => one?._isEdge)?.label ?? "knows";
  return [["Count the vertices", "g.V().count()"], ["Vertices by label", "g.V().groupCount().by(label)"], [`All ${label}`, `g.V().hasLabel(${quoted(label)})`], [`Along ${edge}`, `g.V().hasLabel(${quoted(label)}).limit(10).outE(${quoted(edge)}).inV().path()`],
    ["Most connected", "g.V().order().by(bothE().count(), desc).limit(10).project('id', 'edges').by(id).by(bothE().count())"]];
}

/** @param {any[]} sample @returns {[string, string][]} */
function filters(sample) {
  const one = sample[0] ?? {};
  const quoted = (text) => `'${String(text ?? "").replaceAll("'", "''")}'`;
  const number = Object.entries(one).find(([, value]) => value && typeof value === "object" && (value.$t === 16 || value.$t === 1));
  return [["One partition", `PartitionKey eq ${quoted(one.$pk)}`], ["One entity", `PartitionKey eq ${quoted(one.$pk)} and RowKey eq ${quoted(one.$id)}`], ["Row keys from here on", `RowKey ge ${quoted(one.$id)}`],
    ...(number ? [/** @type {[string, string]} */ ([`By ${number[0]}`, `${number[0]} ge ${JSON.stringify(number[1].$v)}`])] : []), ["The last hour", `Timestamp ge datetime'${new Date(Date.now() - 3_600_000).toISOString()}'`]];
}
