// The official JavaScript SDK (@azure/cosmos), unmodified, against a running server.
//
//     COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] node suite.js [WORD]
//
// Every `test` is named by the sentence it proves; WORD selects those whose name holds it. With COSMOS_CA_FILE the
// certificate is verified against that file alone. The last line is `N passed, N failed`, and so says the exit status.
//
// Not here: `items.readAll()`, which this SDK sends as a query.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { CosmosClient, PartitionKeyKind } from "@azure/cosmos";
import { addAccess } from "./access.js";
import { addEncryption } from "./encryption.js";
import { addQueries } from "./queries.js";
import { addScripts } from "./scripts.js";
import { addThrottling } from "./throttling.js";
import { addSplits } from "./splits.js";

const { COSMOS_ENDPOINT, COSMOS_KEY, COSMOS_CA_FILE } = process.env;
const agent = COSMOS_CA_FILE ? new Agent({ ca: readFileSync(COSMOS_CA_FILE), keepAlive: true }) : undefined;
const tests = [];

const test = (name, body) => tests.push({ name, body });
const connect = (options = {}) => new CosmosClient({ endpoint: COSMOS_ENDPOINT, key: COSMOS_KEY, agent, ...options });

/** Awaits an action that must be refused with this status; the error is returned for a closer look. */
async function refused(status, action) {
  let outcome;
  try {
    outcome = await action;
  } catch (error) {
    assert.equal(error.code, status, `expected ${status}, got ${error.code}: ${error.message}`);
    return error;
  }
  // Reading something absent is an answer for this SDK, not an exception.
  if (status === 404 && outcome.statusCode === 404) return outcome;
  return assert.fail(`expected ${status}, but it succeeded with ${outcome.statusCode}`);
}

const plain = (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !name.startsWith("_")));
const create = async (database, id, path, more = {}) =>
  (await database.containers.create({ id, partitionKey: { paths: [path], version: 2 }, ...more })).container;

// Databases and containers

test("a database is created, read, listed and deleted", async ({ client }) => {
  const id = `javascript-extra-${randomUUID()}`;
  const created = await client.databases.create({ id });
  assert.equal(created.statusCode, 201);
  const read = await client.database(id).read();
  assert.equal(read.resource._self, `dbs/${read.resource._rid}/`);
  const { resources } = await client.databases.readAll().fetchAll();
  assert.ok(resources.some((each) => each.id === id));
  assert.equal((await client.database(id).delete()).statusCode, 204);
  await refused(404, client.database(id).read());
});

test("what exists is a conflict, unless it may exist", async ({ client, database, items }) => {
  await refused(409, client.databases.create({ id: database.id }));
  await refused(409, database.containers.create({ id: "items", partitionKey: "/pk" }));
  const again = await database.containers.createIfNotExists({ id: "items", partitionKey: "/pk" });
  assert.equal(again.resource._rid, (await items.read()).resource._rid);
  const same = await client.databases.createIfNotExists({ id: database.id });
  assert.equal(same.database.id, database.id);
});

test("a container comes back with the policies the service fills in", async ({ database }) => {
  const { resource } = await (await create(database, "defaults", "/pk")).read();
  assert.equal(resource.indexingPolicy.indexingMode, "consistent");
  assert.deepEqual(resource.indexingPolicy.includedPaths.map((each) => each.path), ["/*"]);
  assert.deepEqual(resource.indexingPolicy.excludedPaths.map((each) => each.path), ['/"_etag"/?']);
  assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash", version: 2 });
  assert.equal(resource.conflictResolutionPolicy.conflictResolutionPath, "/_ts");
});

test("a container is replaced, listed and deleted, and its rid is not given out again", async ({ database }) => {
  const container = await create(database, "replaced", "/pk");
  const before = (await container.read()).resource;
  const { resource: after } = await container.replace({ ...before, defaultTtl: 60 });
  assert.equal(after.defaultTtl, 60);
  assert.notEqual(after._etag, before._etag);
  await refused(400, container.replace({ ...before, partitionKey: { paths: ["/other"], version: 2 } }));
  const { resources } = await database.containers.readAll().fetchAll();
  assert.ok(resources.some((each) => each.id === "replaced"));
  assert.equal((await container.delete()).statusCode, 204);
  await refused(404, container.read());
  const again = await create(database, "replaced", "/pk");
  assert.notEqual((await again.read()).resource._rid, before._rid);
});

test("thirty thousand units make three partitions, found by the keys the SDK hashes", async ({ database }) => {
  const container = await create(database, "wide", "/pk", { throughput: 30000 });
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 3);
  assert.equal(ranges[0].minInclusive, "");
  assert.equal(ranges[2].maxExclusive, "FF");
  assert.equal((await container.getFeedRanges()).length, 3);

  // Bulk groups its operations by the range that the SDK's own hash says: a wrong range would be refused.
  const keys = [...Array(60)].map((_, n) => [`k${n}`, n, n % 2 === 0, null][n % 4]);
  const operations = keys.map((pk, n) => ({ operationType: "Create", resourceBody: { id: `i${n}`, pk }, partitionKey: pk }));
  const results = await container.items.executeBulkOperations(operations);
  assert.deepEqual(results.map((each) => each.response?.statusCode ?? each.error), Array(60).fill(201));
  const reads = keys.map((pk, n) => ({ operationType: "Read", id: `i${n}`, partitionKey: pk }));
  const read = await container.items.executeBulkOperations(reads);
  read.forEach((each, n) => assert.deepEqual(each.response.resourceBody.pk, keys[n]));
});

// Items

test("an item is created, read, replaced and deleted", async ({ items }) => {
  const created = await items.items.create({ id: "life", pk: "p", n: 1 });
  assert.equal(created.statusCode, 201);
  assert.equal(created.etag, created.resource._etag);
  assert.ok(created.requestCharge > 0);
  const item = items.item("life", "p");
  assert.deepEqual((await item.read()).resource, created.resource);
  const replaced = await item.replace({ id: "life", pk: "p", n: 2 });
  assert.equal(replaced.statusCode, 200);
  assert.equal(replaced.resource._rid, created.resource._rid);
  assert.equal((await item.delete()).statusCode, 204);
  await refused(404, item.read());
  await refused(404, item.delete());
  await refused(404, item.replace({ id: "life", pk: "p" }));
});

test("upsert inserts with 201 and replaces with 200", async ({ items }) => {
  assert.equal((await items.items.upsert({ id: "up", pk: "p", old: true })).statusCode, 201);
  const second = await items.items.upsert({ id: "up", pk: "p", n: 2 });
  assert.equal(second.statusCode, 200);
  assert.deepEqual(plain(second.resource), { id: "up", pk: "p", n: 2 });
});

test("the same id lives once in each partition key", async ({ items }) => {
  await items.items.create({ id: "twin", pk: "left" });
  await items.items.create({ id: "twin", pk: "right" });
  await refused(409, items.items.create({ id: "twin", pk: "left" }));
});

test("null, missing and empty partition keys are three places", async ({ items }) => {
  await items.items.create({ id: "k", pk: null, kind: "null" });
  await items.items.create({ id: "k", kind: "missing" });
  await items.items.create({ id: "k", pk: "", kind: "empty" });
  assert.equal((await items.item("k", null).read()).resource.kind, "null");
  assert.equal((await items.item("k", undefined).read()).resource.kind, "missing");
  assert.equal((await items.item("k", "").read()).resource.kind, "empty");
});

test("properties keep their order and text its characters", async ({ items }) => {
  const item = { id: "order", zulu: 1, alpha: { b: 1.5, a: [true, null, { y: "ü€😀", x: "" }] }, pk: "ключ" };
  await items.items.create(item);
  const read = (await items.item("order", "ключ").read()).resource;
  assert.equal(JSON.stringify(plain(read)), JSON.stringify(item));
});

test("ids may hold blanks, percent signs and any script", async ({ items }) => {
  for (const id of ["a b", "100%", "a%20b", "Ünïcødé", "日本", "x".repeat(255)]) {
    await items.items.create({ id, pk: "ids" });
    assert.equal((await items.item(id, "ids").read()).resource.id, id);
    await items.item(id, "ids").delete();
  }
});

test("an item without an id, or of more than two megabytes, is refused", async ({ items }) => {
  await refused(400, items.items.create({ pk: "p" }, { disableAutomaticIdGeneration: true }));
  await refused(413, items.items.create({ id: "huge", pk: "p", text: "x".repeat(2 * 1024 * 1024) }));
  await refused(404, items.item("huge", "p").read());
});

test("the items of one partition key are deleted together", async ({ items }) => {
  for (let n = 0; n < 20; n++) await items.items.create({ id: `d${n}`, pk: "doomed" });
  await items.items.create({ id: "d0", pk: "spared" });
  await items.deleteAllItemsForPartitionKey("doomed");
  const deadline = Date.now() + 10_000;
  while ((await items.item("d7", "doomed").read()).statusCode !== 404) {
    assert.ok(Date.now() < deadline, "items were still there after ten seconds");
    await sleep(100);
  }
  assert.equal((await items.item("d0", "spared").read()).statusCode, 200);
});

test("a hierarchical key has up to three levels", async ({ database }) => {
  const partitionKey = { paths: ["/tenant", "/user", "/session"], version: 2, kind: PartitionKeyKind.MultiHash };
  const { container } = await database.containers.create({ id: "levels", partitionKey, throughput: 30000 });
  const keys = [["a", 1, "s"], ["a", null, "s"], ["b", true, "s"]];
  for (const [tenant, user, session] of keys) {
    await container.items.create({ id: "x", tenant, user, session });
    assert.equal((await container.item("x", [tenant, user, session]).read()).resource.user, user);
  }
  await refused(404, container.item("x", ["c", 1, "s"]).read());
  await refused(400, database.containers.create({ id: "deep", partitionKey: { ...partitionKey, paths: ["/a", "/b", "/c", "/d"] } }));
  const operations = keys.map((key) => ({ operationType: "Read", id: "x", partitionKey: key }));
  const results = await container.items.executeBulkOperations(operations);
  assert.deepEqual(results.map((each) => each.response?.statusCode ?? each.error), [200, 200, 200]);
});

test("a container without a partition key is given a system key", async ({ database }) => {
  const { container } = await database.containers.create({ id: "keyless" });
  await container.items.create({ id: "only", n: 1 });
  assert.equal((await container.item("only").read()).resource.n, 1);
  await refused(409, container.items.create({ id: "only" }));
});

// Patch

test("every patch operation does what it says", async ({ items }) => {
  await items.items.create({ id: "patch", pk: "p", n: 1, gone: 1, old: "v", list: [1, 3], keep: { a: 1 } });
  const { resource } = await items.item("patch", "p").patch([
    { op: "add", path: "/added", value: { x: 1 } },
    { op: "add", path: "/list/1", value: 2 },
    { op: "add", path: "/list/-", value: 4 },
    { op: "set", path: "/keep/b", value: null },
    { op: "replace", path: "/list/0", value: "one" },
    { op: "remove", path: "/gone" },
    { op: "incr", path: "/n", value: 41 },
    { op: "incr", path: "/counter", value: 2.5 },
    { op: "move", from: "/old", path: "/keep/moved" },
  ]);
  assert.deepEqual(plain(resource), {
    id: "patch", pk: "p", n: 42, list: ["one", 2, 3, 4], keep: { a: 1, b: null, moved: "v" }, added: { x: 1 }, counter: 2.5,
  });
});

test("a patch condition decides, and a patch that cannot be applied changes nothing", async ({ items }) => {
  await items.items.create({ id: "cond", pk: "p", n: 1, text: "t" });
  const item = items.item("cond", "p");
  const operations = [{ op: "incr", path: "/n", value: 1 }];
  assert.equal((await item.patch({ operations, condition: "from c where c.n = 1" })).resource.n, 2);
  await refused(412, item.patch({ operations, condition: "from c where c.n = 1" }));
  await refused(400, item.patch([...operations, { op: "remove", path: "/absent" }]));
  await refused(400, item.patch([{ op: "replace", path: "/absent", value: 1 }]));
  await refused(400, item.patch([{ op: "incr", path: "/text", value: 1 }]));
  await refused(400, item.patch([{ op: "set", path: "/pk", value: "q" }]));
  assert.equal((await item.read()).resource.n, 2);
});

// Conditional requests

test("a stale etag is refused, and an unchanged item is not sent again", async ({ items }) => {
  const first = (await items.items.create({ id: "etag", pk: "p", n: 1 })).resource._etag;
  const item = items.item("etag", "p");
  const unchanged = await item.read({ accessCondition: { type: "IfNoneMatch", condition: first } });
  assert.equal(unchanged.statusCode, 304);
  const second = (await items.items.upsert({ id: "etag", pk: "p", n: 2 })).resource._etag;
  const stale = { accessCondition: { type: "IfMatch", condition: first } };
  await refused(412, item.replace({ id: "etag", pk: "p", n: 3 }, stale));
  await refused(412, items.items.upsert({ id: "etag", pk: "p", n: 3 }, stale));
  await refused(412, item.patch([{ op: "set", path: "/n", value: 3 }], stale));
  await refused(412, item.delete(stale));
  const current = { accessCondition: { type: "IfMatch", condition: second } };
  assert.equal((await item.replace({ id: "etag", pk: "p", n: 3 }, current)).resource.n, 3);
});

// Batch and bulk

test("a batch does all of its operations", async ({ items }) => {
  await items.items.create({ id: "b-old", pk: "batch", n: 1 });
  await items.items.create({ id: "b-gone", pk: "batch" });
  const { result } = await items.items.batch([
    { operationType: "Create", resourceBody: { id: "b-new", pk: "batch" } },
    { operationType: "Upsert", resourceBody: { id: "b-up", pk: "batch" } },
    { operationType: "Replace", id: "b-old", resourceBody: { id: "b-old", pk: "batch", n: 2 } },
    { operationType: "Read", id: "b-old" },
    { operationType: "Patch", id: "b-old", resourceBody: { operations: [{ op: "incr", path: "/n", value: 5 }] } },
    { operationType: "Delete", id: "b-gone" },
  ], "batch");
  assert.deepEqual(result.map((each) => each.statusCode), [201, 201, 200, 200, 200, 204]);
  assert.equal(result[3].resourceBody.n, 2);
  assert.equal((await items.item("b-old", "batch").read()).resource.n, 7);
});

test("a failed batch leaves no trace", async ({ items }) => {
  const { resource: before } = await items.items.create({ id: "r-old", pk: "rollback" });
  const { result, code } = await items.items.batch([
    { operationType: "Create", resourceBody: { id: "r-new", pk: "rollback" } },
    { operationType: "Create", resourceBody: { id: "r-old", pk: "rollback" } },
    { operationType: "Delete", id: "r-old" },
  ], "rollback");
  assert.equal(code, 207);
  assert.deepEqual(result.map((each) => each.statusCode), [424, 409, 424]);
  await refused(404, items.item("r-new", "rollback").read());
  assert.equal((await items.item("r-old", "rollback").read()).resource._etag, before._etag);
});

test("a batch may leave out the items it wrote", async ({ items }) => {
  const operations = [{ operationType: "Upsert", resourceBody: { id: "quiet", pk: "quiet" } }];
  const { result } = await items.items.batch(operations, "quiet", { contentResponseOnWriteEnabled: false });
  assert.equal(result[0].statusCode, 201);
  assert.equal(result[0].resourceBody, undefined);
  assert.ok(result[0].eTag);
});

test("bulk reports each operation by itself", async ({ items }) => {
  await items.items.create({ id: "exists", pk: "bulk" });
  const operations = [
    { operationType: "Create", resourceBody: { id: "exists", pk: "bulk" }, partitionKey: "bulk" },
    { operationType: "Upsert", resourceBody: { id: "new", pk: "bulk-2", n: 1 }, partitionKey: "bulk-2" },
    { operationType: "Read", id: "absent", partitionKey: "bulk" },
    { operationType: "Delete", id: "exists", partitionKey: "bulk" },
  ];
  const results = await items.items.executeBulkOperations(operations);
  assert.deepEqual(results.map((each) => each.response?.statusCode ?? each.error?.code), [409, 201, 404, 204]);
  const patch = { operationType: "Patch", id: "new", partitionKey: "bulk-2", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } };
  const older = await items.items.bulk([patch], { continueOnError: true });
  assert.equal(older[0].resourceBody.n, 2);
});

test("a thousand items go in through bulk", async ({ database }) => {
  const container = await create(database, "bulk", "/pk", { throughput: 30000 });
  const operations = [...Array(1000)].map((_, n) => ({
    operationType: "Create", resourceBody: { id: `i${n}`, pk: `p${n % 100}`, text: "x".repeat(500) }, partitionKey: `p${n % 100}`,
  }));
  const results = await container.items.executeBulkOperations(operations);
  assert.equal(results.filter((each) => each.response?.statusCode === 201).length, 1000);
});

// Time to live, unique keys

test("items expire as their container and they themselves say", async ({ database }) => {
  const container = await create(database, "expiring", "/pk", { defaultTtl: 1 });
  await container.items.create({ id: "default", pk: "p" });
  await container.items.create({ id: "never", pk: "p", ttl: -1 });
  await sleep(2200);
  await refused(404, container.item("default", "p").read());
  assert.equal((await container.item("never", "p").read()).statusCode, 200);
  await refused(400, container.items.create({ id: "wrong", pk: "p", ttl: 0 }));
});

test("unique keys hold within a partition key", async ({ database }) => {
  const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/email"] }] };
  const container = await create(database, "unique", "/pk", { uniqueKeyPolicy });
  await container.items.create({ id: "1", pk: "p", email: "a" });
  await refused(409, container.items.create({ id: "2", pk: "p", email: "a" }));
  await container.items.create({ id: "2", pk: "q", email: "a" });
  await container.item("1", "p").delete();
  await container.items.create({ id: "3", pk: "p", email: "a" });
});

// Throughput, sessions, authorization

test("throughput is read and replaced", async ({ client, database }) => {
  const container = await create(database, "offers", "/pk", { throughput: 500 });
  const { resource: offer } = await container.readOffer();
  assert.equal(offer.content.offerThroughput, 500);
  offer.content.offerThroughput = 700;
  await client.offer(offer.id).replace(offer);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 700);
  const automatic = await create(database, "autoscale", "/pk", { maxThroughput: 4000 });
  assert.equal((await automatic.readOffer()).resource.content.offerAutopilotSettings.maxThroughput, 4000);
});

test("a container in a database that owns the throughput has none of its own", async ({ client }) => {
  const { database } = await client.databases.create({ id: `javascript-shared-${randomUUID()}`, throughput: 600 });
  try {
    assert.equal((await database.readOffer()).resource.content.offerThroughput, 600);
    const { container } = await database.containers.create({ id: "shared", partitionKey: "/pk" });
    assert.equal((await container.readOffer()).resource, undefined);
  } finally {
    await database.delete();
  }
});

test("another client reads what a session token promises", async ({ database, items }) => {
  const { headers } = await items.items.create({ id: "session", pk: "p" });
  const other = connect({ consistencyLevel: "Session" });
  const item = other.database(database.id).container("items").item("session", "p");
  const read = await item.read({ sessionToken: headers["x-ms-session-token"] });
  assert.equal(read.resource.id, "session");
  const stronger = connect({ consistencyLevel: "Strong" });
  await refused(400, stronger.database(database.id).container("items").item("session", "p").read());
});

addQueries(test);

test("a wrong key opens nothing", async ({ database }) => {
  await refused(401, connect({ key: "d3Jvbmc=" }).database(database.id).read());
});

addAccess(test, { connect, create, refused });
addEncryption(test, { connect, refused });
const server = { endpoint: COSMOS_ENDPOINT, key: COSMOS_KEY, agent };
addSplits(test, { server, create });
addScripts(test, { refused });
addThrottling(test, { server, connect, refused });

const selected = tests.filter((each) => each.name.includes(process.argv[2] ?? ""));
const client = connect();
const { database } = await client.databases.create({ id: `javascript-${randomUUID()}` });
let passed = 0;
let failed = 0;
try {
  const items = await create(database, "items", "/pk");
  for (const { name, body } of selected) {
    const started = performance.now();
    try {
      await body({ client, database, items });
      passed += 1;
      console.log(`ok   ${name} (${((performance.now() - started) / 1000).toFixed(2)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}\n${error.stack}`);
    }
  }
} finally {
  await database.delete();
}
console.log(`${passed} passed, ${failed} failed`);
// The SDK keeps a timer for the account's endpoints; nothing is left to wait for.
process.exit(failed ? 1 : 0);
