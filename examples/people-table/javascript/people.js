// People in a table with the JavaScript SDK: last name and first name are the keys.
import { randomUUID } from "node:crypto";
import { TableClient, odata } from "@azure/data-tables";

const connection =
  process.env.TABLES_COSMOS_CONNECTION_STRING ||
  "DefaultEndpointsProtocol=http;AccountName=orrery;" +
    "AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==;" +
    "TableEndpoint=http://localhost:8902/orrery;";
const PEOPLE = [
  ["Smith", "Jeff", 47, "425-555-0104"],
  ["Smith", "Ben", 31, "425-555-0101"],
  ["Smith", "Anna", 28, "425-555-0102"],
  ["Harp", "Walter", 52, "425-555-0103"],
  ["Jones", "Alice", 35, "425-555-0105"],
];
const person = (partitionKey, rowKey, Age, PhoneNumber) => ({ partitionKey, rowKey, Age, PhoneNumber });

const table = TableClient.fromConnectionString(connection, `people${randomUUID().replaceAll("-", "")}`, {
  allowInsecureConnection: true,
});

async function find(filter) {
  const found = [];
  for await (const entity of table.listEntities({ queryOptions: { filter } })) found.push(entity);
  return found;
}

const names = (entities) => entities.map(({ rowKey }) => rowKey).join(", ");

// The status with which something is refused.
async function refused(action) {
  try {
    await action;
  } catch ({ statusCode }) {
    return statusCode;
  }
  return "not refused";
}

await table.createTable();
try {
  for (const one of PEOPLE) await table.createEntity(person(...one));
  console.log("inserted:", PEOPLE.length);

  // Both keys lead straight to the entity.
  const ben = await table.getEntity("Smith", "Ben");
  console.log("read:", ben.rowKey, ben.partitionKey, ben.PhoneNumber);
  const change = { partitionKey: "Smith", rowKey: "Ben", PhoneNumber: "425-555-0199", Email: "ben@contoso.example" };
  await table.updateEntity(change, "Merge");
  const merged = await table.getEntity("Smith", "Ben");
  console.log("merged:", merged.rowKey, merged.partitionKey, merged.PhoneNumber, merged.Email);

  // What was read before the merge is no longer what is there.
  const replaced = table.updateEntity(person("Smith", "Ben", 32, ben.PhoneNumber), "Replace", { etag: ben.etag });
  console.log("changed meanwhile:", await refused(replaced));

  // The filter fixes the partition: one partition answers, in the order of first names.
  console.log("Smith:", names(await find("PartitionKey eq 'Smith'")));
  console.log("Smith, by first name from B on:", names(await find("PartitionKey eq 'Smith' and RowKey ge 'B'")));

  // Over all of them, by an index.
  const older = await find(odata`Age gt ${40}`);
  const shown = older.map(({ partitionKey, rowKey, Age }) => `${partitionKey} ${rowKey} ${Age}`);
  console.log("older than 40:", shown.join(", "));

  const together = await table.submitTransaction([
    ["create", person("Jones", "Bob", 22, "425-555-0106")],
    ["create", person("Jones", "Carol", 23, "425-555-0107")],
    ["upsert", person("Jones", "Alice", 36, "425-555-0105")],
  ]);
  console.log("together:", together.subResponses.length);
  const failing = table.submitTransaction([
    ["create", person("Jones", "Dave", 24, "425-555-0108")],
    ["create", person("Jones", "Bob", 99, "425-555-0109")],
  ]);
  if ((await refused(failing)) === 409) console.log("a batch that fails: refused");
  console.log("of Jones:", names(await find("PartitionKey eq 'Jones'")));

  await table.deleteEntity("Harp", "Walter");
  console.log("deleted:", await refused(table.getEntity("Harp", "Walter")));
} finally {
  await table.deleteTable();
}
console.log("done");
