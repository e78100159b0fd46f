// The advisor, forks, and requests as programs.
import { close, equal, open, picture, retype, to } from "./browser.mjs";
import { fill, put, read, send } from "./server.mjs";

const web = new URL("../../crates/portal/web/", import.meta.url);

export default function advice(test, server) {
  test("the advisor weighs keys by items and queries, and copies a container under the better one", async () => {
    const items = Array.from({ length: 1200 }, (_, n) => ({ id: `o${n}`, country: n % 10 < 7 ? "Italy" : "Malta", customer: `c${n % 150}`, total: n }));
    await fill(server, "advised", "orders", items, { path: "/country", throughput: 20_000 });
    const page = await open(server, "/_explorer/#/c/advised/orders/query");
    await retype(page, "SELECT * FROM c WHERE c.customer = 'c7'", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell").first().waitFor();
    await page.getByRole("navigation", { name: "Pages of orders" }).getByRole("link", { name: "Advisor" }).click();
    await page.getByRole("heading", { name: "Recommended: /customer" }).waitFor();
    await page.getByText("all 1,200 items and 1 request that you ran in this tab").waitFor();
    await page.getByRole("region", { name: "/country" }).first().getByText(/its values spread items over no more than/).waitFor();
    await page.getByRole("img", { name: /slices of the hash space/ }).first().waitFor();
    await page.getByText("orrery import --from-container advised/orders --db advised --container orders-2 --partition-key /customer").waitFor();
    await picture(page, "advisor");
    await page.getByRole("button", { name: "Copy into a new container" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("New container").fill("by-customer");
    await dialog.getByRole("button", { name: "Copy", exact: true }).click();
    await dialog.getByText(/1,200 items copied, .* RU\. Done\./).waitFor({ timeout: 60_000 });
    await dialog.getByRole("button", { name: "See its partitions" }).click();
    await page.getByRole("heading", { name: "by-customer" }).waitFor();
    equal((await read(server, "advised", "by-customer", "o7", "c7")).status, 200);
    // A recording says what an application asks.
    await to(page, "#/c/advised/orders/advisor");
    const lines = Array.from({ length: 50 }, (_, n) => JSON.stringify({ operation: "query_items", database: "advised", container: "orders", status: 200, charge: 5, partitionKey: null, body: { query: `SELECT * FROM c WHERE c.customer = 'c${n}'` } }));
    await page.getByLabel("Use a recording").setInputFiles({ name: "recorded.jsonl", mimeType: "application/jsonl", buffer: Buffer.from(lines.join("\n")) });
    await page.getByText("50 requests of recorded.jsonl").waitFor();
    await close(page);
  });

  test("a database is forked from its page, and the fork goes its own way", async () => {
    await put(server, "advised", "orders", { id: "kept", country: "Malta", n: 1 }, "Malta");
    const page = await open(server, "/_explorer/#/d/advised");
    await page.getByRole("button", { name: "Fork the database" }).click();
    await page.getByRole("heading", { name: "advised-fork-1" }).waitFor();
    await page.getByText("This is a fork of advised.").waitFor();
    await put(server, "advised-fork-1", "orders", { id: "kept", country: "Malta", n: 2 }, "Malta");
    equal([JSON.parse((await read(server, "advised", "orders", "kept", "Malta")).text).n, JSON.parse((await read(server, "advised-fork-1", "orders", "kept", "Malta")).text).n], [1, 2]);
    await page.getByRole("button", { name: "Delete the database" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("advised-fork-1");
    await page.getByRole("dialog").getByRole("button", { name: "Delete for good" }).click();
    await page.getByText("Deleted advised-fork-1").waitFor();
    equal(JSON.parse((await send(server, "GET", ["_orrery", "forks"])).text).forks, []);
    await close(page);
  });

  test("a request of the drawer is shown as a program in every language", async () => {
    const page = await open(server, "/_explorer/#/c/advised/orders/query");
    await retype(page, "SELECT * FROM c WHERE c.id = 'kept'", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "kept" }).waitFor();
    await page.getByRole("button", { name: /Requests \d/ }).click();
    const drawer = page.getByRole("region", { name: "Requests", exact: true });
    await drawer.getByRole("button", { name: "POST /dbs/advised/colls/orders/docs" }).first().click();
    const shown = drawer.getByLabel("The request", { exact: true });
    for (const [language, text] of [["Python", "container.query_items("], ["JavaScript", "container.items.query("], ["Java", "container.queryItems("], [".NET", "GetItemQueryIterator"], ["Go", "NewQueryItemsPager"], ["curl", "curl -X POST"]]) {
      await drawer.getByRole("button", { name: language, exact: true }).first().click();
      await shown.filter({ hasText: text }).waitFor();
    }
    await picture(page, "drawer");
    await close(page);
  });

  test("programs of requests name the item, its key and its digits", async () => {
    globalThis.location ??= { origin: "http://127.0.0.1:8081" };
    const { programOf, shapeOf, PROGRAMS } = await import(new URL("api/programs.js", web));
    const docs = "/dbs/my%20shop/colls/orders/docs";
    const of = (method, url, headers = {}, body = undefined) => ({ method, url, headers, body });
    const key = { "x-ms-documentdb-partitionkey": '["ada",7]' };
    const item = '{"id":"1","ok":true,"none":null,"list":[1]}';
    const requests = {
      upsert: of("POST", docs, { ...key, "x-ms-documentdb-is-upsert": "true" }, item),
      create: of("POST", docs, key, item),
      read: of("GET", `${docs}/a%2Fb`, key),
      replace: of("PUT", `${docs}/1`, key, item),
      delete: of("DELETE", `${docs}/1`, key),
      patch: of("PATCH", `${docs}/1`, key, '{"operations":[{"op":"incr","path":"/n","value":1},{"op":"remove","path":"/m"}]}'),
      list: of("GET", docs),
      query: of("POST", docs, { "x-ms-documentdb-isquery": "true" }, '{"query":"SELECT * FROM c WHERE c.n = @n","parameters":[{"name":"@n","value":5}]}'),
    };
    for (const [work, request] of Object.entries(requests)) {
      equal(shapeOf(request).work, work);
      for (const language of Object.keys(PROGRAMS)) {
        const text = programOf(language, request);
        equal([text.includes("my shop"), text.includes("undefined")], [true, false], `${work} in ${language}: ${text}`);
      }
    }
    equal(programOf("python", requests.upsert).includes('{"id": "1", "ok": True, "none": None, "list": [1]}'), true);
    equal(programOf("python", requests.read).includes('read_item("a/b", ["ada", 7])'), true);
    equal(programOf("go", requests.read).includes('azcosmos.NewPartitionKey().AppendString("ada").AppendNumber(7)'), true);
    equal([shapeOf(of("GET", "/dbs/x")), shapeOf(of("POST", docs, key, '{"cut'))], [null, null]);
  });
}
