// A first program for each API and language, against this very server. One more API is one more line of the table.

/**
 * What a program needs to know of the server.
 * @typedef {{origin: string, host: string, secure: boolean, account: string, key: string}} Place
 * @typedef {{id: string, title: string, connection: (at: Place) => string, languages: Record<string, {title: string, install: string, text: (at: Place) => string}>}} Api
 * @type {Api[]}
 */
export const APIS = [
  {
    id: "nosql", title: "NoSQL", connection: ({ origin, key }) => `AccountEndpoint=${origin}/;AccountKey=${key};`,
    languages: {
      python: {
        title: "Python", install: "pip install azure-cosmos", text: ({ origin, key }) => `from azure.cosmos import CosmosClient, PartitionKey

client = CosmosClient("${origin}/", "${key}")
database = client.create_database_if_not_exists("shop")
orders = database.create_container_if_not_exists("orders", PartitionKey("/customer"))
orders.upsert_item({"id": "1", "customer": "ada", "total": 12.5})
print(list(orders.query_items("SELECT * FROM c", enable_cross_partition_query=True)))` },
      javascript: {
        title: "JavaScript", install: "npm install @azure/cosmos", text: ({ origin, key }) => `import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: "${origin}/", key: "${key}" });
const { database } = await client.databases.createIfNotExists({ id: "shop" });
const { container } = await database.containers.createIfNotExists({ id: "orders", partitionKey: "/customer" });
await container.items.upsert({ id: "1", customer: "ada", total: 12.5 });
console.log((await container.items.query("SELECT * FROM c").fetchAll()).resources);` },
      java: {
        title: "Java", install: "com.azure:azure-cosmos", text: ({ origin, key }) => `CosmosClient client = new CosmosClientBuilder()
    .endpoint("${origin}/").key("${key}").gatewayMode().buildClient();
client.createDatabaseIfNotExists("shop");
CosmosDatabase shop = client.getDatabase("shop");
shop.createContainerIfNotExists("orders", "/customer");
shop.getContainer("orders").upsertItem(Map.of("id", "1", "customer", "ada", "total", 12.5));` },
      dotnet: {
        title: ".NET", install: "dotnet add package Microsoft.Azure.Cosmos", text: ({ origin, key }) => `using var client = new CosmosClient("${origin}/", "${key}",
    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway });
Database shop = await client.CreateDatabaseIfNotExistsAsync("shop");
Container orders = await shop.CreateContainerIfNotExistsAsync("orders", "/customer");
await orders.UpsertItemAsync(new { id = "1", customer = "ada", total = 12.5 }, new PartitionKey("ada"));` },
      go: {
        title: "Go", install: "go get github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", text: ({ origin, key }) => `credential, _ := azcosmos.NewKeyCredential("${key}")
client, _ := azcosmos.NewClientWithKey("${origin}/", credential, nil)
client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil)
shop, _ := client.NewDatabase("shop")
key := azcosmos.PartitionKeyDefinition{Paths: []string{"/customer"}}
shop.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "orders", PartitionKeyDefinition: key}, nil)
orders, _ := shop.NewContainer("orders")
item := []byte(\`{"id": "1", "customer": "ada", "total": 12.5}\`)
_, err := orders.UpsertItem(ctx, azcosmos.NewPartitionKeyString("ada"), item, nil)` },
      rust: {
        title: "Rust", install: "cargo add azure_data_cosmos --features hmac_rust,reqwest,rustls,key_auth,control_plane", text: ({ origin, key }) => `let account = AccountReference::with_authentication_key("${origin}/".parse()?, "${key}".to_owned());
let client = CosmosClient::builder().build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await?;
client.create_database("shop", None).await?;
let shop = client.database_client("shop");
let key = PartitionKeyDefinition::new(vec!["/customer".into()]);
shop.create_container(ContainerProperties::new("orders".to_owned(), key), None).await?;
let orders = shop.container_client("orders", None).await?;
orders.upsert_item("ada", "1", json!({"id": "1", "customer": "ada", "total": 12.5}), None).await?;` },
      orrery: {
        title: "orrery", install: "", text: ({ origin, key }) => `export ORRERY_KEY='${key}'
orrery partitions --endpoint ${origin}
orrery workload --endpoint ${origin} --help` },
    },
  },
  {
    id: "mongo", title: "MongoDB", connection: mongoAddress,
    languages: {
      python: {
        title: "Python", install: "pip install pymongo", text: (at) => `from pymongo import MongoClient

client = MongoClient("${mongoAddress(at)}")
orders = client.shop.orders
orders.insert_one({"customer": "ada", "total": 12.5})
print(list(orders.find({"total": {"$gt": 10}})))` },
      javascript: {
        title: "JavaScript", install: "npm install mongodb", text: (at) => `import { MongoClient } from "mongodb";

const client = new MongoClient("${mongoAddress(at)}");
const orders = client.db("shop").collection("orders");
await orders.insertOne({ customer: "ada", total: 12.5 });
console.log(await orders.find({ total: { $gt: 10 } }).toArray());` },
      java: {
        title: "Java", install: "org.mongodb:mongodb-driver-sync", text: (at) => `MongoClient client = MongoClients.create("${mongoAddress(at)}");
MongoCollection<Document> orders = client.getDatabase("shop").getCollection("orders");
orders.insertOne(new Document("customer", "ada").append("total", 12.5));
orders.find(Filters.gt("total", 10)).forEach(one -> System.out.println(one.toJson()));` },
      dotnet: {
        title: ".NET", install: "dotnet add package MongoDB.Driver", text: (at) => `var client = new MongoClient("${mongoAddress(at)}");
var orders = client.GetDatabase("shop").GetCollection<BsonDocument>("orders");
await orders.InsertOneAsync(new BsonDocument { { "customer", "ada" }, { "total", 12.5 } });
Console.WriteLine(await orders.CountDocumentsAsync(new BsonDocument()));` },
      go: {
        title: "Go", install: "go get go.mongodb.org/mongo-driver/v2/mongo", text: (at) => `client, _ := mongo.Connect(options.Client().ApplyURI("${mongoAddress(at)}"))
orders := client.Database("shop").Collection("orders")
orders.InsertOne(ctx, bson.D{{"customer", "ada"}, {"total", 12.5}})
found, _ := orders.Find(ctx, bson.D{{"total", bson.D{{"$gt", 10}}}})` },
      shell: { title: "mongosh", install: "", text: (at) => `mongosh '${mongoAddress(at)}'` },
      curl: {
        title: "curl", install: "", text: ({ origin }) => `# Extended JSON there and back; the signature is that of the REST API, of the type _orrery and the link _orrery/mongo
curl ${origin}/_orrery/mongo -H "x-ms-date: $DATE" -H "authorization: $SIGNATURE" \\
  --data '{"find": "orders", "filter": {"total": {"$gt": 10}}, "$db": "shop"}'` },
    },
  },
  {
    id: "table", title: "Table", connection: ({ origin, account, key }) => `DefaultEndpointsProtocol=${origin.split(":")[0]};AccountName=${account};AccountKey=${key};TableEndpoint=${origin}/${account};`,
    languages: {
      python: {
        title: "Python", install: "pip install azure-data-tables", text: (at) => `from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string("${connectionOf("table", at)}")
people = service.create_table_if_not_exists("people")
people.upsert_entity({"PartitionKey": "rome", "RowKey": "ada", "Age": 36})
print(list(people.query_entities("PartitionKey eq 'rome' and Age ge 18")))` },
      javascript: {
        title: "JavaScript", install: "npm install @azure/data-tables", text: (at) => `import { TableClient } from "@azure/data-tables";

const people = TableClient.fromConnectionString("${connectionOf("table", at)}", "people", { allowInsecureConnection: true });
await people.createTable();
await people.upsertEntity({ partitionKey: "rome", rowKey: "ada", Age: 36 });
for await (const one of people.listEntities({ queryOptions: { filter: "Age ge 18" } })) console.log(one);` },
      java: {
        title: "Java", install: "com.azure:azure-data-tables", text: (at) => `TableServiceClient service = new TableServiceClientBuilder()
    .connectionString("${connectionOf("table", at)}").buildClient();
TableClient people = service.createTableIfNotExists("people");
people.upsertEntity(new TableEntity("rome", "ada").addProperty("Age", 36));
people.listEntities().forEach(entity -> System.out.println(entity.getProperties()));` },
      dotnet: {
        title: ".NET", install: "dotnet add package Azure.Data.Tables", text: (at) => `var people = new TableClient("${connectionOf("table", at)}", "people");
await people.CreateIfNotExistsAsync();
await people.UpsertEntityAsync(new TableEntity("rome", "ada") { ["Age"] = 36 });
await foreach (var one in people.QueryAsync<TableEntity>("Age ge 18")) Console.WriteLine(one.RowKey);` },
      go: {
        title: "Go", install: "go get github.com/Azure/azure-sdk-for-go/sdk/data/aztables", text: (at) => `service, _ := aztables.NewServiceClientFromConnectionString("${connectionOf("table", at)}", nil)
people := service.NewClient("people")
people.CreateTable(ctx, nil)
entity := []byte(\`{"PartitionKey": "rome", "RowKey": "ada", "Age": 36}\`)
_, err := people.UpsertEntity(ctx, entity, nil)` },
    },
  },
  {
    id: "gremlin", title: "Gremlin", connection: ({ host, secure, key }) => `${secure ? "wss" : "ws"}://${host}/  user /dbs/DATABASE/colls/GRAPH  password ${key}`,
    languages: {
      python: {
        title: "Python", install: "pip install gremlinpython", text: ({ host, secure, key }) => `from gremlin_python.driver import client, serializer

graph = client.Client("${secure ? "wss" : "ws"}://${host}/", "g", username="/dbs/shop/colls/people",
    password="${key}", message_serializer=serializer.GraphSONSerializersV2d0())
graph.submit("g.addV('person').property('id', 'ada').property('pk', 'a')").all().result()
print(graph.submit("g.V().count()").all().result())` },
      javascript: {
        title: "JavaScript", install: "npm install gremlin", text: ({ host, secure, key }) => `import gremlin from "gremlin";

const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator("/dbs/shop/colls/people", "${key}");
const client = new gremlin.driver.Client("${secure ? "wss" : "ws"}://${host}/", { authenticator, traversalsource: "g", mimeType: "application/vnd.gremlin-v2.0+json" });
await client.submit("g.addV('person').property('id', 'ada').property('pk', 'a')");
console.log((await client.submit("g.V().count()")).first());` },
      java: {
        title: "Java", install: "org.apache.tinkerpop:gremlin-driver", text: ({ host, secure, key }) => `Cluster cluster = Cluster.build("${host.split(":")[0]}").port(${host.split(":")[1] ?? (secure ? 443 : 80)}).enableSsl(${secure})
    .credentials("/dbs/shop/colls/people", "${key}").serializer(Serializers.GRAPHSON_V2D0).create();
Client client = cluster.connect();
client.submit("g.addV('person').property('id', 'ada').property('pk', 'a')").all().get();
System.out.println(client.submit("g.V().count()").one());` },
      dotnet: {
        title: ".NET", install: "dotnet add package Gremlin.Net", text: ({ host, secure, key }) => `var server = new GremlinServer("${host.split(":")[0]}", ${host.split(":")[1] ?? (secure ? 443 : 80)}, ${secure}, "/dbs/shop/colls/people", "${key}");
using var client = new GremlinClient(server, new GraphSON2MessageSerializer());
await client.SubmitAsync<dynamic>("g.addV('person').property('id', 'ada').property('pk', 'a')");` },
      go: {
        title: "Go", install: "go get github.com/apache/tinkerpop/gremlin-go/v3/driver", text: ({ host, secure, key }) => `graph, _ := gremlingo.NewClient("${secure ? "wss" : "ws"}://${host}/", func(settings *gremlingo.ClientSettings) {
	settings.AuthInfo = gremlingo.BasicAuthInfo("/dbs/shop/colls/people", "${key}")
})
graph.Submit("g.addV('person').property('id', 'ada').property('pk', 'a')")
count, _ := graph.Submit("g.V().count()")` },
      curl: {
        title: "curl", install: "", text: ({ origin, key }) => `curl -u '/dbs/shop/colls/people:${key}' ${origin}/gremlin -d '{"gremlin":"g.V().count()"}'` },
    },
  },
];

/** @param {string} id @param {Place} at */
const connectionOf = (id, at) => APIS.find((one) => one.id === id)?.connection(at) ?? "";

/** MongoDB's messages are known on the shared port too. @param {Place} at */
function mongoAddress({ host, secure, account, key }) {
  return `mongodb://${account}:${encodeURIComponent(key)}@${host}/?tls=${secure}&directConnection=true&authSource=admin`;
}

/** A request as a line for a shell. The signature is left to whoever runs it. @param {any} request */
export function curlOf(request) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(request.headers).filter(([name]) => name !== "x-ms-date").map(([name, value]) => `  -H ${quote(`${name}: ${value}`)}`);
  if (request.method === "GREMLIN") return `curl -u "$GRAPH:$KEY" ${quote(`${location.origin}/gremlin`)} --data ${quote(JSON.stringify({ gremlin: request.body }))}`;
  return [`curl -X ${request.method} ${quote(location.origin + request.url)}`, ...headers, `  -H "x-ms-date: $DATE" -H "authorization: $SIGNATURE"`, ...(request.body ? [`  --data ${quote(request.body)}`] : [])].join(" \\\n");
}
