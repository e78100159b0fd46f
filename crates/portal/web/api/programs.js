// A request of the drawer as a program with the SDK of a language: what somebody would write to do the same.
import { isNumber, parse, write } from "./json.js";

/**
 * What a request about items does; null for others.
 * @param {any} request
 */
export function shapeOf({ method, url, headers, body }) {
  const path = /^\/dbs\/([^/?]+)\/colls\/([^/?]+)\/docs(?:\/([^/?]+))?$/.exec(url.split("?")[0]);
  if (!path) return null;
  const [db, coll, id = ""] = path.slice(1).map((part) => (part ? decodeURIComponent(part) : undefined));
  const isQuery = Boolean(headers["x-ms-documentdb-isquery"]);
  const work = { POST: isQuery ? "query" : headers["x-ms-documentdb-is-upsert"] ? "upsert" : "create", GET: id ? "read" : "list", PUT: "replace", DELETE: "delete", PATCH: "patch" }[/** @type {string} */ (method)];
  const read = (/** @type {string | undefined} */ text) => {
    try {
      return text ? parse(text) : null;
    } catch {
      return null;
    }
  };
  const content = read(body);
  // A long body is not kept whole.
  return work && (content || !body) ? { db, coll, id, work, content, key: read(headers["x-ms-documentdb-partitionkey"]) } : null;
}

const quoted = JSON.stringify;
/** @param {any} value @returns {string} */
function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string" || isNumber(value)) return write(value, 0);
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  return `{${Object.entries(value).map(([name, one]) => `${quoted(name)}: ${python(one)}`).join(", ")}}`;
}
/** @param {any} value */
const json = (value) => write(value, 0);
/** Text of several lines in the raw strings of a language. @param {any} value */
const raw = (value) => write(value, 2);
/** @param {any[] | null} key @param {(value: any) => string} one @param {(values: string) => string} many */
const keyed = (key, one, many) => (key === null ? "" : key.length === 1 ? one(key[0]) : many(key.map(one).join(", ")));
const parameters = (content) => content.parameters ?? [];

/** @type {Record<string, {title: string, text: (at: {origin: string}, shape: any) => string}>} */
export const PROGRAMS = {
  python: {
    title: "Python",
    text({ origin }, { db, coll, id, work, content, key }) {
      const k = keyed(key, python, (values) => `[${values}]`);
      const call = {
        query: () => `for item in container.query_items(${quoted(content.query)}${parameters(content).length ? `,\n        parameters=${python(content.parameters)}` : ""}, ${k ? `partition_key=${k}` : "enable_cross_partition_query=True"}):\n    print(item)`,
        list: () => "for item in container.read_all_items():\n    print(item)",
        create: () => `container.create_item(${python(content)})`,
        upsert: () => `container.upsert_item(${python(content)})`,
        read: () => `print(container.read_item(${quoted(id)}, ${k}))`,
        replace: () => `container.replace_item(${quoted(id)}, ${python(content)})`,
        delete: () => `container.delete_item(${quoted(id)}, ${k})`,
        patch: () => `container.patch_item(${quoted(id)}, ${k}, ${python(content.operations)})`,
      }[work];
      return `from azure.cosmos import CosmosClient\n\nclient = CosmosClient("${origin}/", KEY)\ncontainer = client.get_database_client(${quoted(db)}).get_container_client(${quoted(coll)})\n${call()}\n`;
    },
  },
  javascript: {
    title: "JavaScript",
    text({ origin }, { db, coll, id, work, content, key }) {
      const k = keyed(key, json, (values) => `[${values}]`);
      const item = `container.item(${quoted(id)}, ${k})`;
      const call = {
        query: () => `const { resources } = await container.items.query(${json(content)}${k ? `, { partitionKey: ${k} }` : ""}).fetchAll();\nconsole.log(resources);`,
        list: () => "console.log((await container.items.readAll().fetchAll()).resources);",
        create: () => `await container.items.create(${json(content)});`,
        upsert: () => `await container.items.upsert(${json(content)});`,
        read: () => `console.log((await ${item}.read()).resource);`,
        replace: () => `await ${item}.replace(${json(content)});`,
        delete: () => `await ${item}.delete();`,
        patch: () => `await ${item}.patch(${json(content.operations)});`,
      }[work];
      return `import { CosmosClient } from "@azure/cosmos";\n\nconst client = new CosmosClient({ endpoint: "${origin}/", key: KEY });\nconst container = client.database(${quoted(db)}).container(${quoted(coll)});\n${call()}\n`;
    },
  },
  java: {
    title: "Java",
    text({ origin }, { db, coll, id, work, content, key }) {
      const one = (value) => `new PartitionKey(${json(value)})`;
      const k = key && key.length > 1 ? `new PartitionKeyBuilder()${key.map((value) => `.add(${json(value)})`).join("")}.build()` : keyed(key, one, one);
      const tree = (value) => `new ObjectMapper().readTree(${quoted(json(value))})`;
      const spec = () => (parameters(content).length ? `new SqlQuerySpec(${quoted(content.query)},\n        ${content.parameters.map((one) => `new SqlParameter(${quoted(one.name)}, ${json(one.value)})`).join(", ")})` : quoted(content.query));
      const options = `new CosmosQueryRequestOptions()${k ? `.setPartitionKey(${k})` : ""}`;
      const call = {
        query: () => `container.queryItems(${spec()}, ${options}, JsonNode.class).forEach(System.out::println);`,
        list: () => `container.queryItems("SELECT * FROM c", ${options}, JsonNode.class).forEach(System.out::println);`,
        create: () => `container.createItem(${tree(content)}, ${k}, null);`,
        upsert: () => `container.upsertItem(${tree(content)}, ${k}, null);`,
        read: () => `System.out.println(container.readItem(${quoted(id)}, ${k}, JsonNode.class).getItem());`,
        replace: () => `container.replaceItem(${tree(content)}, ${quoted(id)}, ${k}, null);`,
        delete: () => `container.deleteItem(${quoted(id)}, ${k}, null);`,
        patch: () => `container.patchItem(${quoted(id)}, ${k}, CosmosPatchOperations.create()\n${content.operations.map((one) => `        .${one.op === "incr" ? "increment" : one.op}(${quoted(one.path)}${one.op === "remove" ? "" : `, ${json(one.value ?? null)}`})`).join("\n")}, JsonNode.class);`,
      }[work];
      return `CosmosClient client = new CosmosClientBuilder().endpoint("${origin}/").key(KEY).gatewayMode().buildClient();\nCosmosContainer container = client.getDatabase(${quoted(db)}).getContainer(${quoted(coll)});\n${call()}\n`;
    },
  },
  dotnet: {
    title: ".NET",
    text({ origin }, { db, coll, id, work, content, key }) {
      const one = (value) => `new PartitionKey(${json(value)})`;
      const k = key && key.length > 1 ? `new PartitionKeyBuilder()${key.map((value) => `.Add(${json(value)})`).join("")}.Build()` : keyed(key, one, one);
      const stream = (value) => `new MemoryStream(Encoding.UTF8.GetBytes("""\n${raw(value)}\n"""))`;
      const spec = (query) => `new QueryDefinition(${quoted(query)})${work === "query" ? parameters(content).map((one) => `.WithParameter(${quoted(one.name)}, ${json(one.value)})`).join("") : ""}`;
      const loop = (query) => `using var pages = container.GetItemQueryIterator<dynamic>(${spec(query)}${k ? `,\n    requestOptions: new() { PartitionKey = ${k} }` : ""});\nwhile (pages.HasMoreResults) foreach (var item in await pages.ReadNextAsync()) Console.WriteLine(item);`;
      const call = {
        query: () => loop(content.query),
        list: () => loop("SELECT * FROM c"),
        create: () => `await container.CreateItemStreamAsync(${stream(content)}, ${k});`,
        upsert: () => `await container.UpsertItemStreamAsync(${stream(content)}, ${k});`,
        read: () => `Console.WriteLine((await container.ReadItemAsync<dynamic>(${quoted(id)}, ${k})).Resource);`,
        replace: () => `await container.ReplaceItemStreamAsync(${stream(content)}, ${quoted(id)}, ${k});`,
        delete: () => `await container.DeleteItemStreamAsync(${quoted(id)}, ${k});`,
        patch: () => `await container.PatchItemAsync<dynamic>(${quoted(id)}, ${k}, [${content.operations.map((one) => `PatchOperation.${{ incr: "Increment", add: "Add", set: "Set", replace: "Replace", remove: "Remove", move: "Move" }[/** @type {string} */ (one.op)]}(${quoted(one.path)}${one.op === "remove" ? "" : `, ${json(one.value ?? one.from ?? null)}`})`).join(", ")}]);`,
      }[work];
      return `using var client = new CosmosClient("${origin}/", KEY, new() { ConnectionMode = ConnectionMode.Gateway });\nContainer container = client.GetContainer(${quoted(db)}, ${quoted(coll)});\n${call()}\n`;
    },
  },
  go: {
    title: "Go",
    text({ origin }, { db, coll, id, work, content, key }) {
      const of = (value) => ({ string: `String(${json(value)})`, boolean: `Bool(${json(value)})` })[typeof value] ?? (value === null ? "Null()" : `Number(${json(value)})`);
      const k = key === null ? "azcosmos.NewPartitionKey()" : key.length === 1 && key[0] !== null ? `azcosmos.NewPartitionKey${of(key[0])}` : `azcosmos.NewPartitionKey()${key.map((value) => `.Append${of(value)}`).join("")}`;
      const bytes = (value) => (raw(value).includes("`") ? `[]byte(${quoted(json(value))})` : `[]byte(\`${raw(value)}\`)`);
      const loop = (query) => `pager := container.NewQueryItemsPager(${quoted(query)}, ${k}, ${work === "query" && parameters(content).length ? `&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{${content.parameters.map((one) => `{Name: ${quoted(one.name)}, Value: ${json(one.value)}}`).join(", ")}}}` : "nil"})\nfor pager.More() {\n\tpage, err := pager.NextPage(ctx)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tfor _, item := range page.Items {\n\t\tfmt.Println(string(item))\n\t}\n}`;
      const call = {
        query: () => loop(content.query),
        list: () => loop("SELECT * FROM c"),
        create: () => `_, err := container.CreateItem(ctx, ${k}, ${bytes(content)}, nil)`,
        upsert: () => `_, err := container.UpsertItem(ctx, ${k}, ${bytes(content)}, nil)`,
        read: () => `item, err := container.ReadItem(ctx, ${k}, ${quoted(id)}, nil)`,
        replace: () => `_, err := container.ReplaceItem(ctx, ${k}, ${quoted(id)}, ${bytes(content)}, nil)`,
        delete: () => `_, err := container.DeleteItem(ctx, ${k}, ${quoted(id)}, nil)`,
        patch: () => `operations := azcosmos.PatchOperations{}\n${content.operations.map((one) => `operations.Append${{ incr: "Increment", add: "Add", set: "Set", replace: "Replace", remove: "Remove", move: "Move" }[/** @type {string} */ (one.op)]}(${quoted(one.path)}${one.op === "remove" ? "" : `, ${json(one.value ?? one.from ?? null)}`})`).join("\n")}\n_, err := container.PatchItem(ctx, ${k}, ${quoted(id)}, operations, nil)`,
      }[work];
      return `credential, _ := azcosmos.NewKeyCredential(KEY)\nclient, _ := azcosmos.NewClientWithKey("${origin}/", credential, nil)\ncontainer, _ := client.NewContainer(${quoted(db)}, ${quoted(coll)})\n${call()}\n`;
    },
  },
};

/** @param {string} language @param {any} request @returns {string | null} */
export function programOf(language, request) {
  const shape = shapeOf(request);
  return shape && PROGRAMS[language].text({ origin: location.origin }, shape);
}
