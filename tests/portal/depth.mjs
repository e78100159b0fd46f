// What goes deeper: many items at once, plans, charts, policies, versions, load.
import { close, equal, open, picture, retype, to } from "./browser.mjs";
import { fill, put, read, send, start } from "./server.mjs";

export default function depth(test, server) {
  test("many items are patched, sorted, shown as JSON, and one that was deleted is put back", async () => {
    await fill(server, "depth", "items", Array.from({ length: 60 }, (_, n) => ({ id: `i${n}`, key: `k${n % 4}`, n, city: n % 2 ? "Rome" : "Turin", price: (n * 7) % 50 })), { throughput: 20_000 });
    const page = await open(server, "/_explorer/#/c/depth/items/items");
    const filter = page.getByRole("searchbox", { name: /Filter/ });
    await filter.fill("c.city = 'Rome'");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("30 items", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Patch all…" }).click();
    await page.getByRole("button", { name: "Patch 30 items" }).click();
    await page.getByText("30 of 30 items").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    equal([JSON.parse((await read(server, "depth", "items", "i1", "k1")).text).reviewed, JSON.parse((await read(server, "depth", "items", "i2", "k2")).text).reviewed], [true, undefined]);
    await page.getByRole("columnheader", { name: "n", exact: true }).getByRole("button").click();
    await page.getByRole("columnheader", { name: /^n/ }).getByRole("button").click();
    await page.waitForFunction(() => document.querySelector(".grid-row")?.textContent.includes("i59"));
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByRole("gridcell", { name: /"city": "Rome"/ }).first().click();
    await page.locator("section.side").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("1 item put back").waitFor();
    equal((await read(server, "depth", "items", "i59", "k3")).status, 200);
    await close(page);
  });

  test("a plan says what each partition took, and an index is added from it", async () => {
    const page = await open(server, "/_explorer/#/c/depth/items/query");
    await retype(page, "SELECT * FROM c WHERE c.city = 'Rome' AND c.price > 10", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell").first().waitFor();
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByRole("img", { name: /Partition 0: .* RU, .* rows; Partition 1: / }).waitFor();
    await picture(page, "plan");
    await page.getByRole("button", { name: "Add this index" }).first().click();
    await page.getByText("added; it is being built").waitFor();
    const policy = JSON.parse((await send(server, "GET", ["dbs", "depth", "colls", "items"])).text).indexingPolicy;
    equal(policy.compositeIndexes?.length > 0, true, JSON.stringify(policy));
    await close(page);
  });

  test("numbers become a chart, a query is saved by name, and a whole item is edited from its row", async () => {
    const page = await open(server, "/_explorer/#/c/depth/items/query");
    await retype(page, "SELECT c.city, AVG(c.price) AS mean, COUNT(1) AS items FROM c GROUP BY c.city", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("button", { name: "Chart" }).click();
    await page.getByRole("img", { name: /mean, items by city: 2 points/ }).waitFor();
    await picture(page, "chart");
    await page.getByRole("button", { name: "Save query" }).click();
    await page.getByLabel("Name", { exact: true }).fill("prices");
    await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
    await page.reload();
    await page.getByLabel("Saved queries").selectOption({ label: "prices" });
    await page.getByRole("button", { name: "prices" }).last().waitFor();
    await retype(page, "SELECT * FROM c WHERE c.id = 'i7'", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "i7" }).click();
    await retype(page, '{"id": "i7", "key": "k3", "edited": true}', "The item as JSON");
    await page.keyboard.press("Control+s");
    await page.getByText(/^Saved, /).waitFor();
    equal(JSON.parse((await read(server, "depth", "items", "i7", "k3")).text).edited, true);
    await close(page);
  });

  test("computed properties, vectors and full text are set by forms, when a container is made and later", async () => {
    const page = await open(server, "/_explorer/#/new/depth");
    await page.getByLabel("Container", { exact: true }).fill("policies");
    await page.getByRole("button", { name: "Make a key of several properties" }).click();
    await page.getByRole("button", { name: "A suffix that can be computed" }).click();
    await page.getByText(/Its key: abc-123\.\d+/).waitFor();
    await page.getByRole("button", { name: "Use /partitionKey as the key" }).click();
    await page.getByText("More: time to live").click();
    await page.getByLabel("Unique keys").fill("/email");
    await page.getByRole("button", { name: "Add to vector embeddings" }).click();
    await page.getByLabel("Dimensions").fill("3");
    await page.getByRole("button", { name: "Add to vector indexes" }).click();
    await page.getByRole("group", { name: "vector indexes" }).getByRole("combobox").selectOption("flat");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("No items yet.").waitFor();
    await to(page, "#/c/depth/policies/settings");
    await page.getByRole("button", { name: "Add to computed properties" }).click();
    await page.getByRole("group", { name: "computed properties" }).getByRole("textbox").first().fill("cp_lower");
    await page.getByRole("button", { name: "Add to full-text paths" }).click();
    await page.getByRole("button", { name: "Add to full-text indexes" }).click();
    await page.getByRole("button", { name: "Save these policies" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    const made = JSON.parse((await send(server, "GET", ["dbs", "depth", "colls", "policies"])).text);
    equal([made.partitionKey.paths[0], made.uniqueKeyPolicy.uniqueKeys[0].paths[0], made.vectorEmbeddingPolicy.vectorEmbeddings[0].dimensions, made.indexingPolicy.vectorIndexes[0].type, made.computedProperties[0].name, made.fullTextPolicy.fullTextPaths[0].path, made.indexingPolicy.fullTextIndexes[0].path], ["/partitionKey", "/email", 3, "flat", "cp_lower", "/text", "/text"]);
    await close(page);
  });

  test("all versions and deletes are shown once the container keeps them", async () => {
    await fill(server, "depth", "versions", []);
    const page = await open(server, "/_explorer/#/c/depth/versions/settings");
    await page.getByLabel(/Minutes that versions are kept/).fill("60");
    await page.getByRole("button", { name: "Save the retention" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    await to(page, "#/c/depth/versions/changes");
    await page.getByRole("button", { name: "All versions and deletes" }).click();
    await page.waitForResponse((response) => response.status() === 304);
    await put(server, "depth", "versions", { id: "1", key: "a", n: 1 }, "a");
    await put(server, "depth", "versions", { id: "1", key: "a", n: 2 }, "a");
    await send(server, "DELETE", ["dbs", "depth", "colls", "versions", "docs", "1"], { headers: { "x-ms-documentdb-partitionkey": '["a"]' } });
    for (const what of ["created", "changed", "deleted"]) await page.getByRole("cell", { name: what, exact: true }).waitFor();
    await close(page);
  });

  test("an error of a script is marked in its line, and a function is tried", async () => {
    const page = await open(server, "/_explorer/#/c/depth/items/scripts", { allow: [/400/] });
    await page.getByRole("button", { name: "New stored procedure" }).click();
    await page.getByLabel("Name").fill("boom");
    await retype(page, 'function f() {\n  console.log("here");\n  throw new Error("on purpose");\n}', "Script");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Partition key /key").fill("k1");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("The script failed in line 3; nothing was written").waitFor();
    await page.locator(".cm-lintRange-error").waitFor();
    await page.getByRole("button", { name: "Functions" }).click();
    await page.getByRole("button", { name: "New function" }).click();
    await page.getByLabel("Name").fill("tax");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Try" }).click();
    await page.getByText("20", { exact: true }).waitFor();
    await close(page);
  });

  test("throttled partitions show their 429s and hot keys, live; the throughput says what it makes", async () => {
    const own = await start(["--throttling", "on"]);
    await fill(own, "load", "hot", [{ id: "1", key: "a", text: "x".repeat(1000) }], { throughput: 400 });
    const page = await open(own, "/_explorer/#/c/load/hot/partitions", { allow: [/429/] });
    await page.getByText("1 physical partition").first().waitFor();
    let over = false;
    const hammer = (async () => {
      while (!over) await Promise.all(Array.from({ length: 40 }, () => send(own, "POST", ["dbs", "load", "colls", "hot", "docs"], { body: { id: "1", key: "a", text: "x".repeat(1000) }, headers: { "x-ms-documentdb-partitionkey": '["a"]', "x-ms-documentdb-is-upsert": "true" } })));
    })();
    try {
      await page.getByText(/a second now/).first().waitFor({ timeout: 30_000 });
      await page.getByText(/uses \d+ % of its share, most of it for the key a\. Splitting will not help/).waitFor({ timeout: 30_000 });
      await page.getByRole("button", { name: "Ring" }).click();
      await page.locator(".ring .hot-key").first().waitFor();
      await page.getByRole("button", { name: "Heat" }).click();
      await page.locator("svg.heat rect").nth(2).waitFor();
    } finally {
      over = true;
      await hammer;
    }
    await page.getByText("Throughput: what more or less would make").click();
    await page.getByLabel("RU/s", { exact: true }).fill("30000");
    await page.getByRole("img", { name: "1 physical partitions now, 3 then, 10,000 RU/s each" }).waitFor();
    await close(page);
    await own.stop();
  });

  test("times of every operation are a histogram", async () => {
    const page = await open(server, "/_explorer/#/activity");
    await page.getByRole("combobox", { name: /^Operation/ }).selectOption("upsert_item");
    await page.getByRole("img", { name: /^Times of upsert_item: p50 .* p99 / }).waitFor();
    await close(page);
  });

  test("a serverless account provisions nothing", async () => {
    const own = await start(["--capacity", "serverless"]);
    const page = await open(own, "/_explorer/#/new");
    await page.getByText("The account is serverless").waitFor();
    await page.getByLabel("Database", { exact: true }).fill("s");
    await page.getByLabel("Container", { exact: true }).fill("c");
    await page.getByLabel("Partition key", { exact: true }).fill("/k");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("No items yet.").waitFor();
    await close(page);
    await own.stop();
  });

  test("every API has a connection string and programs, with the key masked", async () => {
    const page = await open(server, "/_explorer/#/");
    for (const [api, text] of [["NoSQL", "AccountEndpoint="], ["MongoDB", "mongodb://"], ["Table", "TableEndpoint="], ["Gremlin", "ws://"]]) {
      await page.getByRole("group", { name: "API" }).getByRole("button", { name: api }).click();
      await page.locator(".connection").getByText(text).waitFor();
      equal((await page.locator("main").textContent()).includes("C2y6yDjf5"), false, "masked");
    }
    await close(page);
  });
}
