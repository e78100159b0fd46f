// Device readings with the JavaScript SDK: writing, reading by key, and queries over two physical partitions.
import { randomUUID } from "node:crypto";
import { CosmosClient } from "@azure/cosmos";

const {
  COSMOS_ENDPOINT: endpoint = "http://127.0.0.1:8081",
  COSMOS_KEY: key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
} = process.env;
const DEVICES = 20;
const READINGS = 5;

const client = new CosmosClient({ endpoint, key });
const { database } = await client.databases.create({ id: `readings-${randomUUID()}` });
try {
  // 20,000 RU/s are more than one physical partition serves, so there are two.
  const { container } = await database.containers.create({
    id: "readings",
    partitionKey: { paths: ["/deviceId"], version: 2 },
    throughput: 20000,
  });
  console.log("partitions:", (await container.getFeedRanges()).length);

  for (let device = 0; device < DEVICES; device++) {
    for (let n = 0; n < READINGS; n++) {
      await container.items.create({
        id: `${device}-${n}`,
        deviceId: `device-${device}`,
        metricType: n % 2 === 0 ? "Temperature" : "Humidity",
        metricValue: device * 10 + n,
      });
    }
  }

  // A key and an id lead straight to the item.
  const item = container.item("3-2", "device-3");
  const { resource: one } = await item.read();
  console.log("read:", one.metricValue);
  const { resource: replaced } = await item.replace({ ...one, metricValue: 99 });
  console.log("replaced:", replaced.metricValue);
  await item.delete();
  if ((await item.read()).statusCode === 404) console.log("deleted");

  // The filter fixes the partition key: one partition answers.
  const ofDevice = await container.items
    .query({
      query: "SELECT VALUE c.metricValue FROM c WHERE c.deviceId = @device ORDER BY c.metricValue",
      parameters: [{ name: "@device", value: "device-7" }],
    })
    .fetchAll();
  console.log("device-7:", JSON.stringify(ofDevice.resources).replaceAll(",", ", "));

  // Over all partitions, merged by the SDK, several partitions at a time.
  const { resources: hot } = await container.items
    .query(
      'SELECT c.deviceId, c.metricValue FROM c WHERE c.metricType = "Temperature" AND c.metricValue > 100 ' +
        "ORDER BY c.metricValue DESC",
      { maxDegreeOfParallelism: 4 },
    )
    .fetchAll();
  console.log("hot:", hot.length, "hottest:", hot[0].deviceId, hot[0].metricValue);

  for (const aggregate of ["COUNT(1)", "MIN(c.metricValue)", "MAX(c.metricValue)", "SUM(c.metricValue)", "AVG(c.metricValue)"]) {
    const { resources } = await container.items.query(`SELECT VALUE ${aggregate} FROM c`).fetchAll();
    console.log(`${aggregate.split("(")[0]}: ${resources[0].toFixed(2)}`);
  }
} finally {
  await database.delete();
}
console.log("done");
// The SDK keeps a timer for the account's endpoints; nothing is left to wait for.
process.exit(0);
