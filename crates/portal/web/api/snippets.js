// A first program in each language, against this very server.

/** @param {string} origin @param {string} key @returns {Record<string, string>} */
export const snippets = (origin, key) => ({
  python: `from azure.cosmos import CosmosClient, PartitionKey

client = CosmosClient("${origin}/", "${key}")
database = client.create_database_if_not_exists("shop")
orders = database.create_container_if_not_exists("orders", PartitionKey("/customer"))
orders.upsert_item({"id": "1", "customer": "ada", "total": 12.5})
print(list(orders.query_items("SELECT * FROM c", enable_cross_partition_query=True)))`,
  javascript: `import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: "${origin}/", key: "${key}" });
const { database } = await client.databases.createIfNotExists({ id: "shop" });
const { container } = await database.containers.createIfNotExists({ id: "orders", partitionKey: "/customer" });
await container.items.upsert({ id: "1", customer: "ada", total: 12.5 });
console.log((await container.items.query("SELECT * FROM c").fetchAll()).resources);`,
  java: `CosmosClient client = new CosmosClientBuilder()
    .endpoint("${origin}/").key("${key}").gatewayMode().buildClient();
client.createDatabaseIfNotExists("shop");
CosmosDatabase shop = client.getDatabase("shop");
shop.createContainerIfNotExists("orders", "/customer");
shop.getContainer("orders").upsertItem(Map.of("id", "1", "customer", "ada", "total", 12.5));`,
  go: `credential, _ := azcosmos.NewKeyCredential("${key}")
client, err := azcosmos.NewClientWithKey("${origin}/", credential, nil)
container, err := client.NewContainer("shop", "orders")
item := []byte(\`{"id": "1", "customer": "ada", "total": 12.5}\`)
_, err = container.UpsertItem(ctx, azcosmos.NewPartitionKeyString("ada"), item, nil)`,
  dotnet: `using var client = new CosmosClient("${origin}/", "${key}",
    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway });
Database shop = await client.CreateDatabaseIfNotExistsAsync("shop");
Container orders = await shop.CreateContainerIfNotExistsAsync("orders", "/customer");
await orders.UpsertItemAsync(new { id = "1", customer = "ada", total = 12.5 }, new PartitionKey("ada"));`,
  curl: `export ORRERY_KEY='${key}'
orrery partitions --endpoint ${origin}
orrery workload --endpoint ${origin} --help`,
});

/** A request as a line for a shell. The signature is left to whoever runs it. @param {any} request */
export function curlOf(request) {
  const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(request.headers).filter(([name]) => name !== "x-ms-date").map(([name, value]) => `  -H ${quote(`${name}: ${value}`)}`);
  return [`curl -X ${request.method} ${quote(location.origin + request.url)}`, ...headers, `  -H "x-ms-date: $DATE" -H "authorization: $SIGNATURE"`, ...(request.body ? [`  --data ${quote(request.body)}`] : [])].join(" \\\n");
}
