// Queries over three physical partitions: what the SDK merges by itself from the server's plans.
//
// Sixty readings: `score` is a permutation of 0..59, so every order is known; `v` turns with `n`, so every distance is.
import assert from "node:assert/strict";

const COUNT = 60;
const KINDS = ["a", "b", "c"];
const TEXTS = ["swim in the lake", "run up the hill", "walk home slowly", "walk home slowly"];
const reading = (n) => ({
  id: `i${n}`,
  pk: `k${n % 20}`,
  n,
  kind: KINDS[n % 3],
  score: (n * 37) % COUNT,
  v: [n, 1],
  text: TEXTS[n % 4],
});
const numbers = (from, count) => [...Array(count)].map((_, n) => from + n);

let container;

/** Makes the container on first use; all tests here share it. */
async function readings(database) {
  if (container) return container;
  const made = await database.containers.create({
    id: "readings",
    partitionKey: { paths: ["/pk"], version: 2 },
    throughput: 30000,
    indexingPolicy: {
      includedPaths: [{ path: "/*" }],
      excludedPaths: [{ path: "/v/*" }],
      compositeIndexes: [[{ path: "/kind", order: "ascending" }, { path: "/score", order: "descending" }]],
      vectorIndexes: [{ path: "/v", type: "flat" }],
      fullTextIndexes: [{ path: "/text" }],
    },
    vectorEmbeddingPolicy: {
      vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 2, distanceFunction: "cosine" }],
    },
    fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] },
  });
  const { resources: ranges } = await made.container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 3);
  await Promise.all(numbers(0, COUNT).map((n) => made.container.items.create(reading(n))));
  container = made.container;
  return container;
}

async function rows(database, query, options = {}) {
  const { resources } = await (await readings(database)).items.query(query, options).fetchAll();
  return resources;
}

export function addQueries(test) {
  test("ORDER BY merges the sorted rows of all partitions", async ({ database }) => {
    assert.deepEqual(await rows(database, "SELECT VALUE c.score FROM c ORDER BY c.score"), numbers(0, COUNT));
    const falling = await rows(database, "SELECT * FROM c ORDER BY c.score DESC", { maxItemCount: 7 });
    assert.deepEqual(falling.map((each) => each.score), numbers(0, COUNT).reverse());
  });

  test("ORDER BY two properties follows the composite index", async ({ database }) => {
    const found = await rows(database, "SELECT c.kind, c.score FROM c ORDER BY c.kind ASC, c.score DESC");
    const wanted = numbers(0, COUNT).map(reading).map(({ kind, score }) => ({ kind, score }));
    wanted.sort((a, b) => a.kind.localeCompare(b.kind) || b.score - a.score);
    assert.deepEqual(found, wanted);
  });

  test("TOP and OFFSET LIMIT count over all partitions", async ({ database }) => {
    assert.deepEqual(await rows(database, "SELECT TOP 5 VALUE c.score FROM c ORDER BY c.score"), numbers(0, 5));
    const window = "SELECT VALUE c.score FROM c ORDER BY c.score OFFSET 10 LIMIT 7";
    assert.deepEqual(await rows(database, window), numbers(10, 7));
    assert.equal((await rows(database, "SELECT TOP 9 * FROM c")).length, 9);
    assert.equal((await rows(database, "SELECT VALUE c.n FROM c OFFSET 55 LIMIT 100")).length, 5);
  });

  test("DISTINCT gives every value once", async ({ database }) => {
    assert.deepEqual((await rows(database, "SELECT DISTINCT VALUE c.kind FROM c")).sort(), KINDS);
    assert.deepEqual(await rows(database, "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC"), ["c", "b", "a"]);
  });

  test("GROUP BY adds up the groups of all partitions", async ({ database }) => {
    const query = "SELECT c.kind, COUNT(1) AS count, SUM(c.n) AS total, MAX(c.n) AS high FROM c GROUP BY c.kind";
    const found = (await rows(database, query)).sort((a, b) => a.kind.localeCompare(b.kind));
    assert.deepEqual(found, [
      { kind: "a", count: 20, total: 570, high: 57 },
      { kind: "b", count: 20, total: 590, high: 58 },
      { kind: "c", count: 20, total: 610, high: 59 },
    ]);
  });

  test("aggregates are those of all items", async ({ database }) => {
    for (const [aggregate, wanted] of [["COUNT(1)", 60], ["SUM(c.n)", 1770], ["MIN(c.n)", 0], ["MAX(c.n)", 59], ["AVG(c.n)", 29.5]]) {
      assert.deepEqual(await rows(database, `SELECT VALUE ${aggregate} FROM c`), [wanted], aggregate);
    }
    const parameters = [{ name: "@kind", value: "b" }];
    assert.deepEqual(await rows(database, { query: "SELECT VALUE COUNT(1) FROM c WHERE c.kind = @kind", parameters }), [20]);
  });

  test("the nearest vectors of all partitions come first", async ({ database }) => {
    const query = "SELECT TOP 3 c.id, VectorDistance(c.v, [1, 0]) AS similarity FROM c ORDER BY VectorDistance(c.v, [1, 0])";
    const found = await rows(database, query);
    assert.deepEqual(found.map((each) => each.id), ["i59", "i58", "i57"]);
    assert.ok(found[0].similarity > found[2].similarity);
  });

  test("items without a comparable vector come last by similarity and first by distance", async ({ database }) => {
    for (const distanceFunction of ["cosine", "dotproduct", "euclidean"]) {
      const { container: few } = await database.containers.create({
        id: `few-${distanceFunction}`,
        partitionKey: { paths: ["/pk"], version: 2 },
        throughput: 30000,
        indexingPolicy: { vectorIndexes: [{ path: "/v", type: "diskANN" }] },
        vectorEmbeddingPolicy: {
          vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 3, distanceFunction }],
        },
      });
      const vectors = { a: [1, 0, 0], b: [0, 1, 0], c: [1, 0], d: undefined };
      for (const [id, v] of Object.entries(vectors)) await few.items.create({ id, pk: id, v });
      const ids = async (query) => (await few.items.query(query).fetchAll()).resources.map((each) => each.id);
      const distance = "VectorDistance(c.v, [1, 0, 0])";
      const found = await ids(`SELECT TOP 4 c.id FROM c ORDER BY ${distance}`);
      // Which of the two without a distance comes first is up to their partitions.
      const first = distanceFunction === "euclidean" ? 0 : 2;
      assert.deepEqual(found.slice(first, first + 2).sort(), ["c", "d"], distanceFunction);
      assert.deepEqual(found.filter((id) => id < "c"), ["a", "b"], distanceFunction);
      const skipped = await ids(`SELECT c.id FROM c ORDER BY ${distance} OFFSET 2 LIMIT 2`);
      assert.deepEqual(skipped.sort(), first ? ["c", "d"] : ["a", "b"], distanceFunction);
    }
  });

  test("full-text and vector ranks are fused over all partitions", async ({ database }) => {
    // Objects: this SDK takes a bare value for a row of another form.
    const text = "SELECT TOP 15 c.n FROM c ORDER BY RANK FullTextScore(c.text, 'lake')";
    assert.ok((await rows(database, text)).every(({ n }) => n % 4 === 0));
    const both = "SELECT TOP 4 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'lake'), VectorDistance(c.v, [1, 0]))";
    assert.deepEqual((await rows(database, both)).map(({ id }) => id), ["i59", "i58", "i56", "i57"]);
  });

  test("a query goes on in another iterator where its continuation says", async ({ database }) => {
    const seen = [];
    let continuationToken;
    do {
      const options = { maxItemCount: 7, continuationToken };
      const page = await (await readings(database)).items.query("SELECT * FROM c WHERE c.n >= 0", options).fetchNext();
      seen.push(...page.resources.map((each) => each.n));
      continuationToken = page.continuationToken;
    } while (continuationToken);
    assert.deepEqual(seen.sort((a, b) => a - b), numbers(0, COUNT));
  });

  test("a filter on the partition key asks one partition", async ({ database }) => {
    const query = { query: "SELECT VALUE c.n FROM c WHERE c.pk = @pk ORDER BY c.n", parameters: [{ name: "@pk", value: "k7" }] };
    assert.deepEqual(await rows(database, query), [7, 27, 47]);
    assert.deepEqual(await rows(database, "SELECT VALUE c.n FROM c ORDER BY c.n", { partitionKey: "k7" }), [7, 27, 47]);
  });
}
