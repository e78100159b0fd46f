// The official Table SDK for JavaScript (@azure/data-tables), unmodified, against a running server.
//
//     COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] node suite.js [WORD]
//
// Every `test` is named by the sentence it proves; WORD selects those whose name holds it. Each runs twice: the SDK
// speaks the dialect of storage to 127.0.0.1 and that of Cosmos DB to localhost.
// The last line is `N passed, N failed`, and so says the exit status.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { AzureNamedKeyCredential, TableClient, TableServiceClient, odata } from "@azure/data-tables";

const { COSMOS_ENDPOINT, COSMOS_KEY, COSMOS_CA_FILE, COSMOS_ACCOUNT = "orrery" } = process.env;
const tests = [];
const test = (name, body) => tests.push({ name, body });
const options = {
  allowInsecureConnection: true,
  ...(COSMOS_CA_FILE && { tlsOptions: { ca: readFileSync(COSMOS_CA_FILE) } }),
};
const url = (host) => `${COSMOS_ENDPOINT.replace(/\/$/, "").replace("127.0.0.1", host)}/${COSMOS_ACCOUNT}`;
const credential = (key = COSMOS_KEY) => new AzureNamedKeyCredential(COSMOS_ACCOUNT, key);

async function refused(status, action) {
  try {
    await action;
  } catch (error) {
    assert.equal(error.statusCode, status, `expected ${status}, got ${error.statusCode}: ${error.message}`);
    return error;
  }
  return assert.fail(`expected ${status}, but it succeeded`);
}

async function all(pages) {
  const found = [];
  for await (const entity of pages) found.push(entity);
  return found;
}

test("every type comes back as it was", async ({ table }) => {
  const entity = {
    partitionKey: "types", rowKey: "1", text: "it's ü", flag: true, small: -5, half: 2.5, large: 2n ** 60n,
    bytes: new Uint8Array([0, 255]), guid: { type: "Guid", value: randomUUID() },
    time: { type: "DateTime", value: "2020-01-02T03:04:05.6789012Z" },
  };
  await table.createEntity(entity);
  const found = await table.getEntity("types", "1");
  for (const name of ["text", "flag", "small", "half", "large"]) assert.equal(found[name], entity[name], name);
  assert.deepEqual([...found.bytes], [0, 255]);
  assert.equal(found.guid.value, entity.guid.value);
  await refused(409, table.createEntity(entity));
});

test("an entity is changed only in the version that was read", async ({ table }) => {
  await table.createEntity({ partitionKey: "etag", rowKey: "1", n: 1 });
  const { etag } = await table.getEntity("etag", "1");
  await table.updateEntity({ partitionKey: "etag", rowKey: "1", n: 2 }, "Replace");
  await refused(412, table.updateEntity({ partitionKey: "etag", rowKey: "1", n: 3 }, "Replace", { etag }));
  await refused(412, table.deleteEntity("etag", "1", { etag }));
  assert.equal((await table.getEntity("etag", "1")).n, 2);
});

test("a merge keeps what it does not name", async ({ table }) => {
  const key = { partitionKey: "merge", rowKey: "1" };
  await table.upsertEntity({ ...key, a: 1, b: 1 }, "Merge");
  await table.upsertEntity({ ...key, b: 2 }, "Merge");
  const merged = await table.getEntity("merge", "1");
  assert.deepEqual([merged.a, merged.b], [1, 2]);
});

test("queries find, page and select", async ({ table }) => {
  const create = Array.from({ length: 100 }, (_, n) => [
    "create", { partitionKey: "query", rowKey: String(n).padStart(3, "0"), n, even: n % 2 === 0 },
  ]);
  await table.submitTransaction(create);
  const filter = odata`PartitionKey eq ${"query"} and n ge ${90} and even eq true`;
  const found = await all(table.listEntities({ queryOptions: { filter } }));
  assert.deepEqual(found.map((entity) => entity.n), [90, 92, 94, 96, 98]);
  const sizes = [];
  const pages = table.listEntities({ queryOptions: { filter: odata`PartitionKey eq ${"query"}`, select: ["n"] } });
  for await (const page of pages.byPage({ maxPageSize: 30 })) sizes.push(page.length);
  assert.deepEqual(sizes, [30, 30, 30, 10]);
});

test("a transaction is all or nothing", async ({ table }) => {
  await table.createEntity({ partitionKey: "batch", rowKey: "1" });
  const changes = [
    ["upsert", { partitionKey: "batch", rowKey: "2" }, "Merge"],
    ["create", { partitionKey: "batch", rowKey: "1" }],
  ];
  await refused(409, table.submitTransaction(changes));
  await refused(404, table.getEntity("batch", "2"));
});

test("keys may hold what addresses may not", async ({ table }) => {
  for (const key of ["O'Brien", "a b", "100%", "a+b=c&d", "ü💡", "(x)", "a''b"]) {
    await table.upsertEntity({ partitionKey: key, rowKey: key, n: 1 });
    assert.equal((await table.getEntity(key, key)).partitionKey, key);
    assert.equal((await all(table.listEntities({ queryOptions: { filter: odata`RowKey eq ${key}` } }))).length, 1);
  }
});

test("a wrong key opens nothing", async ({ host }) => {
  const wrong = new TableServiceClient(url(host), credential("d3Jvbmc="), options);
  await refused(403, all(wrong.listTables()));
});

const selected = tests.filter((each) => each.name.includes(process.argv[2] ?? ""));
let passed = 0;
let failed = 0;
for (const host of ["127.0.0.1", "localhost"]) {
  const table = new TableClient(url(host), `javascript${randomUUID().replaceAll("-", "")}`, credential(), options);
  await table.createTable();
  for (const { name, body } of selected) {
    try {
      await body({ table, host });
      passed += 1;
      console.log(`ok   ${name} (${host})`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name} (${host})\n${error.stack}`);
    }
  }
  await table.deleteTable();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
