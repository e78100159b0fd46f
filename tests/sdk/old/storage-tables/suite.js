// The storage client for JavaScript of 2015 to 2020 (azure-storage), unmodified, against the tables of a running server.
//
//     COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] node suite.js
//
// Every `test` is named by the sentence it proves. Each runs twice: addressed to 127.0.0.1 the server speaks the dialect of
// storage, to localhost that of Cosmos DB. The last line is `N passed, N failed`.
const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const { randomUUID } = require("node:crypto");

const { COSMOS_ENDPOINT, COSMOS_KEY, COSMOS_CA_FILE } = process.env;
// The client has no option for certificates, and Node reads which ones it trusts when it starts.
if (COSMOS_CA_FILE && process.env.NODE_EXTRA_CA_CERTS !== COSMOS_CA_FILE) {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: COSMOS_CA_FILE };
  process.exit(spawnSync(process.execPath, process.argv.slice(1), { env, stdio: "inherit" }).status ?? 1);
}
const azure = require("azure-storage");
const of = azure.TableUtilities.entityGenerator;
const { TableQuery, TableBatch } = azure;
const tests = [];
const test = (name, body) => tests.push({ name, body });

function connect(host) {
  const endpoint = COSMOS_ENDPOINT.replace(/\/$/, "").replace("127.0.0.1", host);
  const service = azure.createTableService("orrery", COSMOS_KEY, `${endpoint}/orrery`);
  // Every method of the client ends in a callback.
  const call = (method, ...args) =>
    new Promise((resolve, reject) =>
      service[method](...args, (error, result) => (error ? reject(error) : resolve(result))));
  return { service, call };
}

async function refused(status, action) {
  try {
    await action;
  } catch (error) {
    assert.equal(error.statusCode, status, error.message);
    return error;
  }
  return assert.fail(`expected ${status}, but it succeeded`);
}

const entity = (partition, row, more = {}) => ({ PartitionKey: of.String(partition), RowKey: of.String(row), ...more });

test("a table is created once and listed", async ({ call, table }) => {
  assert.equal((await call("createTableIfNotExists", table)).created, false);
  await refused(409, call("createTable", table));
  const { entries } = await call("listTablesSegmentedWithPrefix", table, null);
  assert.deepEqual(entries, [table]);
});

test("every type comes back as it was", async ({ call, table }) => {
  const guid = randomUUID();
  const time = new Date("2020-01-02T03:04:05.678Z");
  await call("insertEntity", table, entity("types", "1", {
    text: of.String("it's ü"), flag: of.Boolean(true), small: of.Int32(-5), large: of.Int64("1152921504606846976"),
    half: of.Double(2.5), guid: of.Guid(guid), time: of.DateTime(time), bytes: of.Binary(Buffer.from([0, 255])),
  }));
  const found = await call("retrieveEntity", table, "types", "1");
  assert.equal(found.text._, "it's ü");
  assert.deepEqual([found.flag._, found.small._, found.half._], [true, -5, 2.5]);
  assert.equal(String(found.large._), "1152921504606846976");
  assert.equal(found.guid._, guid);
  assert.equal(found.time._.getTime(), time.getTime());
  assert.deepEqual([...found.bytes._], [0, 255]);
});

test("entities are changed in every way", async ({ call, table }) => {
  const first = await call("insertEntity", table, entity("ways", "1", { a: of.Int32(1), b: of.Int32(1) }));
  await refused(409, call("insertEntity", table, entity("ways", "1")));
  await call("mergeEntity", table, entity("ways", "1", { b: of.Int32(2) }));
  const stale = entity("ways", "1", { ".metadata": { etag: first[".metadata"].etag } });
  await refused(412, call("replaceEntity", table, stale));
  const found = await call("retrieveEntity", table, "ways", "1");
  assert.deepEqual([found.a._, found.b._], [1, 2]);
  await call("insertOrMergeEntity", table, entity("ways", "2", { a: of.Int32(1) }));
  await call("insertOrReplaceEntity", table, entity("ways", "2", { b: of.Int32(1) }));
  assert.equal((await call("retrieveEntity", table, "ways", "2")).a, undefined);
  await call("deleteEntity", table, entity("ways", "2"));
  await refused(404, call("retrieveEntity", table, "ways", "2"));
});

test("queries find, page and select", async ({ call, table }) => {
  const batch = new TableBatch();
  for (let n = 0; n < 100; n++) {
    batch.insertEntity(entity("query", String(n).padStart(3, "0"), { n: of.Int32(n), even: of.Boolean(n % 2 === 0) }));
  }
  await call("executeBatch", table, batch);
  const query = new TableQuery().where("PartitionKey eq ?", "query").and("even eq ?", true).and("n ge ?", 90).select("n");
  const { entries } = await call("queryEntities", table, query, null);
  assert.deepEqual(entries.map((one) => one.n._), [90, 92, 94, 96, 98]);
  const pages = [];
  let token = null;
  do {
    const page = await call("queryEntities", table, new TableQuery().where("PartitionKey eq ?", "query").top(40), token);
    pages.push(page.entries.length);
    token = page.continuationToken;
  } while (token);
  assert.deepEqual(pages, [40, 40, 20]);
});

test("a batch is all or nothing", async ({ call, table }) => {
  await call("insertEntity", table, entity("batch", "there"));
  const failing = new TableBatch();
  failing.insertEntity(entity("batch", "new"));
  failing.insertEntity(entity("batch", "there"));
  await refused(409, call("executeBatch", table, failing));
  await refused(404, call("retrieveEntity", table, "batch", "new"));
  const batch = new TableBatch();
  batch.insertOrReplaceEntity(entity("batch", "new"));
  batch.mergeEntity(entity("batch", "there", { n: of.Int32(1) }));
  assert.equal((await call("executeBatch", table, batch)).length, 2);
});

test("a signature opens what it says", async ({ service, call, table }) => {
  await call("insertEntity", table, entity("sas", "1"));
  const policy = { AccessPolicy: { Permissions: "r", Expiry: new Date(Date.now() + 3_600_000) } };
  const token = service.generateSharedAccessSignature(table, policy);
  const guest = azure.createTableServiceWithSas(service.host.primaryHost, token);
  const asGuest = (method, ...args) =>
    new Promise((resolve, reject) => guest[method](...args, (error, result) => (error ? reject(error) : resolve(result))));
  assert.equal((await asGuest("retrieveEntity", table, "sas", "1")).RowKey._, "1");
  await refused(403, asGuest("deleteEntity", table, entity("sas", "1")));
});

async function main() {
  let [passed, failed] = [0, 0];
  for (const host of ["127.0.0.1", "localhost"]) {
    const { service, call } = connect(host);
    const table = `old${randomUUID().replaceAll("-", "")}`;
    await call("createTable", table);
    for (const { name, body } of tests) {
      try {
        await body({ service, call, table });
        passed++;
        console.log(`ok   ${host} ${name}`);
      } catch (error) {
        failed++;
        console.log(`FAIL ${host} ${name}\n${error.stack}`);
      }
    }
    await call("deleteTable", table);
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
