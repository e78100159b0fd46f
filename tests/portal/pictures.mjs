// The pictures of docs/portal: every page with something on it, as people see it. node pictures.mjs OUT
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { browser, open, retype, to } from "./browser.mjs";
import { fill, put, send, start, stopAll } from "./server.mjs";

const out = process.argv[2] ?? "pictures";
mkdirSync(out, { recursive: true });
const server = await start(["--throttling", "on"]);
const page = await open(server, "/_explorer/", { allow: [/./] });
const shot = async (name) => {
  // Without the sentence in the corner, which is gone after some seconds anyway.
  await page.evaluate(() => document.querySelector(".announcement")?.replaceChildren());
  await page.screenshot({ path: join(out, `${name}.png`) });
  console.log(name);
};
const wait = (ms) => page.waitForTimeout(ms);
const click = (name, exact = true) => page.getByRole("button", { name, exact }).first().click();

await page.getByRole("button", { name: "Load sample data" }).click();
await page.getByText("physical partitions").first().waitFor({ timeout: 120_000 });
await wait(2000);
await shot("partitions");
await click("Ring");
await page.locator(".ring path").last().click();
await wait(500);
await shot("ring");

// Load on one country, for the heat.
let over = false;
const item = { id: "order-0000", customer: "customer-0", country: "Italy", note: "x".repeat(3000) };
const load = (async () => {
  while (!over) await Promise.all(Array.from({ length: 24 }, (_, n) => send(server, "POST", ["dbs", "sample", "colls", "orders-by-country", "docs"], { body: { ...item, id: `load-${n}`, country: n % 6 ? "Italy" : ["France", "Spain", "Malta"][n % 3] }, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([n % 6 ? "Italy" : ["France", "Spain", "Malta"][n % 3]]), "x-ms-documentdb-is-upsert": "true" } })));
})();
await click("Heat");
await wait(25_000);
await shot("heat");
await to(page, "#/activity");
await page.getByRole("heading", { name: "Activity" }).waitFor();
await wait(25_000);
await shot("activity");
over = true;
await load;
await page.locator("main").evaluate((element) => element.scrollTo(0, 620));
await wait(500);
await shot("histogram");

await to(page, "#/c/sample/orders-by-customer/items");
await page.getByRole("gridcell").nth(3).click();
await page.locator(".cm-content").waitFor();
await wait(500);
await shot("items");
await to(page, "#/c/sample/orders-by-customer/query");
await retype(page, "SELECT c.country, c.product, COUNT(1) AS orders, AVG(c.total) AS mean\nFROM c WHERE c.total > 20\nGROUP BY c.country, c.product", "Query text");
await page.keyboard.press("Control+Enter");
await page.getByRole("gridcell").first().waitFor();
await wait(300);
await shot("query");
await click("Chart");
await wait(300);
await shot("chart");
await retype(page, "SELECT * FROM c WHERE c.product = 'lamp' AND c.total > 150", "Query text");
await page.keyboard.press("Control+Enter");
await wait(1000);
await click("Plan");
await wait(500);
await shot("plan");
await to(page, "#/c/sample/orders-by-country/advisor");
await page.getByRole("heading", { name: /^(Recommended|Keep)/ }).waitFor();
await shot("advisor");
await to(page, "#/c/sample/orders-by-customer/settings");
await page.getByText("index up to date").waitFor();
await shot("settings");
await to(page, "#/c/sample/orders-by-customer/scripts");
await click("New stored procedure");
await page.getByLabel("Name").fill("countOrders");
await retype(page, 'function countOrders() {\n  console.log("counting");\n  var items = getContext().getCollection().orders;\n  return items.length;\n}', "Script");
await page.getByRole("button", { name: "Save" }).click();
await page.getByLabel("Partition key /customer").fill("customer-1");
await page.getByRole("button", { name: "Run" }).click();
await page.getByRole("alert").waitFor();
await shot("scripts");
await to(page, "#/c/sample/orders-by-customer/changes");
await page.waitForResponse((response) => response.status() === 304);
for (const total of [10, 20]) await put(server, "sample", "orders-by-customer", { id: "order-0001", customer: "customer-37", total, product: "atlas" }, "customer-37"), await wait(2500);
await page.getByRole("button", { name: "order-0001" }).first().click();
await wait(300);
await shot("changes");

await fill(server, "graphs", "planets", [], { path: "/pk", throughput: 10_000 });
await page.reload();
await to(page, "#/c/graphs/planets/graph");
await click("Load a sample graph");
await page.getByText("29 vertices, 40 edges").waitFor({ timeout: 60_000 });
await wait(3000);
await page.getByText("The same as a table").click();
await page.getByRole("button", { name: "jupiter", exact: true }).click();
await page.getByText("The same as a table").click();
await wait(1000);
await page.locator("main").evaluate((element) => element.scrollTo(0, 0));
await shot("graph");
await to(page, "#/new");
await click("Table");
await page.getByLabel("Table", { exact: true }).fill("people");
await click("Create");
await page.getByText("No entities yet").waitFor();
for (const [pk, rk, age] of [["rome", "ada", "36"], ["rome", "bruno", "52"], ["turin", "carla", "28"]]) {
  await click("New entity");
  await page.getByLabel("PartitionKey", { exact: true }).fill(pk);
  await page.getByLabel("RowKey", { exact: true }).fill(rk);
  const there = await page.getByLabel("Value of Age").count();
  if (!there) {
    for (const [n, [name, type]] of [["Age", "Edm.Int32"], ["Seen", "Edm.DateTime"]].entries()) {
      await click("Add a property");
      await page.getByLabel(`Name of property ${n + 1}`).fill(name);
      await page.getByLabel(`Type of ${name}`).selectOption(type);
    }
  }
  await page.getByLabel("Value of Age").fill(age);
  await page.getByLabel("Value of Seen").fill("2026-11-18T09:30:00Z");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("gridcell", { name: rk }).waitFor();
}
await page.getByRole("gridcell", { name: "ada" }).click();
await wait(300);
await shot("entities");
const command = (body) => send(server, "POST", ["_orrery", "mongo"], { body: { ...body, $db: "library" } });
await command({ insert: "loans", documents: [["Ada Lovelace", "Notes on the Analytical Engine", "12.50"], ["Alan Turing", "Computable Numbers", "8.00"], ["Grace Hopper", "The Education of a Computer", "9.75"], ["Emmy Noether", "Invariante Variationsprobleme", "14.20"]].map(([reader, title, fee], n) => ({
  reader, title, lent: { $date: `2026-11-${10 + n}T09:30:00Z` }, days: { $numberInt: String(14 + n) }, fee: { $numberDecimal: fee }, copies: { $numberLong: String(9007199254740993n + BigInt(n)) }, tags: ["mathematics", { shelf: n + 1 }],
})) });
await page.reload();
await to(page, "#/c/library/loans/items");
await page.getByRole("gridcell", { name: "Ada Lovelace" }).click();
await page.locator(".cm-content").waitFor();
await wait(500);
await shot("documents");
await to(page, "#/new/sample");
await page.getByLabel("Container", { exact: true }).fill("readings");
await click("Make a key of several properties");
await page.locator("main").evaluate((element) => element.scrollTo(0, 260));
await wait(300);
await shot("new-container");
await to(page, "#/d/sample");
await page.getByRole("heading", { name: "Shared throughput" }).waitFor();
await shot("database");
await to(page, "#/d/sample/users");
await page.getByLabel("Name of the new user").fill("ann");
await click("Add the user");
await click("Add a permission");
await page.getByLabel("Name", { exact: true }).fill("reads-orders");
await click("Add");
await page.getByLabel("A token of reads-orders for").selectOption("3600");
await page.getByText("Token of reads-orders").waitFor();
await shot("access");
await to(page, "#/faults");
await click("Add the rule");
await page.getByText("1 rule is in force.").waitFor();
await shot("faults");
await click("Stop all");
await to(page, "#/");
await wait(3500);
await shot("home");
await page.emulateMedia({ colorScheme: "dark" });
await to(page, "#/c/sample/orders-by-country/partitions");
await page.setViewportSize({ width: 400, height: 800 });
await wait(2500);
await shot("phone");
await browser.close();
await stopAll();
