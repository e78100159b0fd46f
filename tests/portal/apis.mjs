// Graphs, tables, and who may use them.
import { browser, close, equal, open, picture, retype, to } from "./browser.mjs";
import { fill, put, send, start } from "./server.mjs";

/** A graph with a hub: vertices v0…, each with an edge to the hub and to its neighbour. */
export async function ringGraph(server, db, coll, vertices) {
  const items = [];
  for (let n = 0; n < vertices; n += 1) {
    const pk = `p${n % 16}`;
    items.push({ id: `v${n}`, label: n % 3 ? "person" : "city", pk, name: [{ id: `n${n}`, _value: `name ${n}` }] });
    items.push({ id: `e${n}`, label: n % 2 ? "knows" : "near", _isEdge: true, pk, _vertexId: `v${n}`, _vertexLabel: n % 3 ? "person" : "city", _sink: `v${(n + 1) % vertices}`, _sinkLabel: "person", _sinkPartition: `p${((n + 1) % vertices) % 16}` });
  }
  await fill(server, db, coll, items, { path: "/pk" });
}

export default function apis(test, server) {
  test("a graph is loaded, walked, filtered, collapsed and changed on the canvas", async () => {
    await fill(server, "graphs", "planets", [], { path: "/pk" });
    const page = await open(server, "/_explorer/#/c/graphs/planets/graph");
    await page.getByRole("button", { name: "Load a sample graph" }).click();
    await page.getByText("29 vertices, 40 edges").waitFor({ timeout: 60_000 });
    const canvas = page.locator("canvas");
    await retype(page, "g.V('jupiter')", "Traversal");
    await page.keyboard.press("Control+Enter");
    await page.getByText("1 vertex, 0 edges").waitFor();
    await canvas.focus();
    await page.keyboard.press("n");
    await page.getByRole("region", { name: "Vertex jupiter" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText(/^10 vertices, /).waitFor();
    await page.getByRole("checkbox", { name: /probe/ }).uncheck();
    await page.getByRole("button", { name: "Collapse" }).click();
    await page.getByText("1 vertex, 0 edges").waitFor();
    await page.getByRole("button", { name: "Set property" }).click();
    await page.getByLabel("Property", { exact: true }).fill("moons");
    await page.getByLabel("Value", { exact: true }).fill("95");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("cell", { name: "95" }).waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("0 vertices, 0 edges").waitFor();
    const left = await send(server, "GET", ["dbs", "graphs", "colls", "planets", "docs", "jupiter"], { headers: { "x-ms-documentdb-partitionkey": '["jupiter"]' } });
    equal(left.status, 404, "it is gone");
    await close(page);
  });

  test("the query page speaks Gremlin, and shows vertices as a graph and errors as they are", async () => {
    const page = await open(server, "/_explorer/#/c/graphs/planets/query");
    await page.getByRole("button", { name: "Gremlin" }).click();
    await retype(page, "g.V().hasLabel('probe').outE('visited').inV().path()", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell").first().waitFor();
    await page.getByRole("button", { name: "Graph", exact: true }).click();
    await page.locator("canvas").waitFor();
    await picture(page, "query-graph");
    await retype(page, "g.V().hasLable('probe')", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("alert").getByText(/hasLable/).first().waitFor();
    await close(page);
  });

  test("two thousand elements are drawn and moved", async () => {
    await ringGraph(server, "graphs", "large", 1000);
    const page = await open(server, "/_explorer/#/c/graphs/large/graph");
    await retype(page, "g.V()", "Traversal");
    await page.keyboard.press("Control+Enter");
    await page.getByText("1,000 vertices, 1,000 edges").waitFor({ timeout: 60_000 });
    const canvas = page.locator("canvas");
    const box = await canvas.boundingBox();
    const frames = async () => Number(await canvas.getAttribute("data-frames"));
    const before = await frames();
    await page.mouse.move(box.x + 40, box.y + 40);
    await page.mouse.down();
    for (let n = 0; n < 30; n += 1) await page.mouse.move(box.x + 40 + 4 * n, box.y + 40 + 2 * n);
    await page.mouse.up();
    equal((await frames()) > before + 5, true, "it was drawn while it moved");
    await close(page);
  });

  test("pages of another port cannot open a graph with the well-known key", async () => {
    const other = await start();
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${other.endpoint}/metrics`);
    const opened = (port) => page.evaluate((port) => new Promise((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
      socket.onopen = () => resolve(true);
      socket.onerror = () => resolve(false);
    }), port);
    equal([await opened(server.port), await opened(other.port)], [false, true]);
    await page.context().close();
    await other.stop();
  });

  test("entities keep their types through the table page, and a $filter finds them", async () => {
    const page = await open(server, "/_explorer/#/new", { allow: [/400/] });
    await page.getByRole("button", { name: "Table", exact: true }).click();
    await page.getByLabel("Table", { exact: true }).fill("people");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("No entities yet").waitFor();
    await page.getByRole("button", { name: "New entity" }).click();
    await page.getByLabel("PartitionKey", { exact: true }).fill("rome");
    await page.getByLabel("RowKey", { exact: true }).fill("o'hara (1)");
    const properties = [["Age", "Edm.Int32", "36"], ["Big", "Edm.Int64", "9007199254740993"], ["Born", "Edm.DateTime", "1815-12-10T00:00:00Z"], ["Ratio", "Edm.Double", "2"]];
    for (const [n, [name, type, value]] of properties.entries()) {
      await page.getByRole("button", { name: "Add a property" }).click();
      await page.getByLabel(`Name of property ${n + 1}`).fill(name);
      await page.getByLabel(`Type of ${name}`).selectOption(type);
      await page.getByLabel(`Value of ${name}`).fill(value);
    }
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("gridcell", { name: "9007199254740993" }).click();
    await page.getByLabel("Value of Age").fill("37");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("gridcell", { name: "37", exact: true }).waitFor();
    const stored = JSON.parse((await send(server, "GET", ["dbs", "TablesDB", "colls", "people", "docs", "o'hara (1)"], { headers: { "x-ms-documentdb-partitionkey": '["rome"]' } })).text);
    equal(properties.map(([name]) => stored[name].$t), [16, 18, 9, 1], "types as the service keeps them");
    const filter = page.getByRole("searchbox", { name: /filter/ });
    await filter.fill("Age gt 40");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Nothing matches the filter.").waitFor();
    await filter.fill("Age gt");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("alert").waitFor();
    await to(page, "#/c/TablesDB/people/query");
    await retype(page, "Age eq 37", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "rome" }).waitFor();
    await close(page);
  });

  test("a token of a permission opens what it says, and nothing else", async () => {
    await fill(server, "tokens", "in", [{ id: "1", key: "a" }]);
    const page = await open(server, "/_explorer/#/d/tokens/users");
    await page.getByLabel("Name of the new user").fill("ann");
    await page.getByRole("button", { name: "Add the user" }).click();
    await page.getByRole("button", { name: "Add a permission" }).click();
    await page.getByLabel("Name", { exact: true }).fill("reads");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByLabel("A token of reads for").selectOption("600");
    await page.getByText("Token of reads").waitFor();
    await page.getByRole("button", { name: "Copy the token" }).click();
    const token = await page.evaluate(() => navigator.clipboard.readText());
    const ask = (method, body) => fetch(`${server.endpoint}/dbs/tokens/colls/in/docs${body ? "" : "/1"}`, { method, body, headers: { authorization: encodeURIComponent(token), "x-ms-date": new Date().toUTCString(), "x-ms-version": "2018-12-31", "x-ms-documentdb-partitionkey": '["a"]' } });
    equal([(await ask("GET")).status, (await ask("POST", '{"id":"2","key":"a"}')).status], [200, 403]);
    const places = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href]));
    equal(places.includes(token.slice(20, 60)), false, "the token is not kept");
    await close(page);
  });

  test("a key that only reads walks graphs and changes none", async () => {
    const [key, reading] = ["a", "b"].map((letter) => Buffer.from(letter.repeat(64)).toString("base64"));
    const own = await start(["--key", key, "--readonly-key", reading]);
    const as = { key };
    await send(own, "POST", ["dbs"], { body: { id: "g" }, ...as });
    await send(own, "POST", ["dbs", "g", "colls"], { body: { id: "c", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } }, ...as });
    await send(own, "POST", ["dbs", "g", "colls", "c", "docs"], { body: { id: "ann", label: "person", pk: "a" }, headers: { "x-ms-documentdb-partitionkey": '["a"]' }, ...as });
    const page = await open(own, "/_explorer/#/c/g/c/graph");
    await page.getByLabel("Account key").fill(reading);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("1 vertex, 0 edges").waitFor();
    await page.locator("canvas").focus();
    await page.keyboard.press("n");
    await page.getByRole("region", { name: "Vertex ann" }).waitFor();
    equal(await page.getByRole("button", { name: "Delete", exact: true }).count(), 0);
    await retype(page, "g.V('ann').drop()", "Traversal");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("alert").getByText("403").first().waitFor();
    await close(page);
    await own.stop();
  });
}
