// The portal as people use it. Each test is a sentence; a failure says which and why, and the last line counts them.
import { accessibility, browser, close, equal, open, picture, retype, to } from "./browser.mjs";
import advice from "./advice.mjs";
import apis from "./apis.mjs";
import mongo from "./mongo.mjs";
import depth from "./depth.mjs";
import imports from "./imports.mjs";
import modules from "./modules.mjs";
import { fill, put, read, send, start, stopAll } from "./server.mjs";

const BIG = "9007199254740993";
const NASTY = '<img src=x onerror="alert(1)"></script>';
const tests = [];
const test = (name, run) => tests.push({ name, run });
const server = await start();

test("only a browser is led from the root to the portal", async () => {
  const browserLike = await fetch(`${server.endpoint}/`, { headers: { accept: "text/html" }, redirect: "manual" });
  equal([browserLike.status, browserLike.headers.get("location")], [302, "/_explorer/"]);
  const sdk = await send(server, "GET", [], { headers: { accept: "application/json" } }).catch((error) => ({ status: String(error) }));
  equal((await fetch(`${server.endpoint}/`)).status, 401, "somebody without a key");
  equal(sdk.status === 302, false, "an SDK is not redirected");
  const pem = await fetch(`${server.endpoint}/_explorer/emulator.pem`);
  equal([(await pem.text()).startsWith("-----BEGIN CERTIFICATE-----"), pem.status], [true, 200]);
});

test("from the first start to a first item without a mouse", async () => {
  const page = await open(server);
  await page.getByRole("heading", { name: "Nothing here yet" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).waitFor();
  await page.keyboard.type("new cont");
  await page.keyboard.press("Enter");
  await page.getByLabel("Database", { exact: true }).focus();
  await page.keyboard.type("shop");
  await page.keyboard.press("Tab");
  await page.keyboard.type("orders");
  await page.getByLabel("Partition key").focus();
  await page.keyboard.press("End");
  await page.keyboard.type("customer");
  await page.getByLabel("RU/s", { exact: true }).fill("60000");
  await page.getByText("60,000 RU/s → 6 physical partitions of 10,000 RU/s each").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("No items yet.").waitFor();
  await page.keyboard.press("Alt+n");
  await retype(page, `{"id": "1", "customer": "ada", "total": ${BIG}}`, "The item as JSON");
  await page.keyboard.press("Control+s");
  await page.getByText(/^Saved/).waitFor();
  equal(JSON.parse((await send(server, "GET", ["dbs", "shop", "colls", "orders", "pkranges"])).text)._count, 6, "partitions");
  equal((await read(server, "shop", "orders", "1", "ada")).text.includes(BIG), true, "all digits are there");
  await close(page);
});

test("containers of every shape are made and scaled", async () => {
  const page = await open(server, "/_explorer/#/new/shop", { allow: [/409/] });
  const name = page.getByLabel("Container", { exact: true });
  const create = page.getByRole("button", { name: "Create", exact: true });
  await name.fill("levels");
  await page.getByLabel("Partition key", { exact: true }).fill("/tenant");
  await page.getByRole("button", { name: "Add a level" }).click();
  await page.getByLabel("Partition key, level 2").fill("/user");
  await page.getByRole("button", { name: "Autoscale" }).click();
  await create.click();
  await page.getByText("No items yet.").waitFor();
  await to(page, "#/c/shop/levels/settings");
  await page.getByText("autoscale up to 1,000").waitFor();
  await page.getByRole("button", { name: "Manual" }).click();
  await page.getByLabel("RU/s", { exact: true }).fill("900");
  await page.getByRole("button", { name: "Set the throughput" }).click();
  await page.getByText("Now 900 RU/s").waitFor();
  await to(page, "#/new/shop");
  await name.fill("fixed");
  await page.getByRole("button", { name: /^Fixed/ }).click();
  await create.click();
  await page.getByText("No items yet.").waitFor();
  await to(page, "#/new/shop");
  await name.fill("fixed");
  await page.getByLabel("Partition key", { exact: true }).fill("/k");
  await create.click();
  await page.getByRole("alert").getByText("409", { exact: true }).waitFor();
  await close(page);
});

test("numbers keep their digits through open, save, query and export", async () => {
  const page = await open(server, "/_explorer/#/c/shop/orders/items");
  await page.getByRole("gridcell", { name: BIG }).waitFor();
  await page.getByRole("gridcell", { name: "ada" }).click();
  const editor = page.getByRole("textbox", { name: "The item as JSON" });
  await editor.getByText(BIG).waitFor();
  await retype(page, `{"id": "1", "customer": "ada", "total": ${BIG}, "price": 1.10, "seen": true}`, "The item as JSON");
  await page.keyboard.press("Control+s");
  await page.getByText(/^Saved/).waitFor();
  const text = (await read(server, "shop", "orders", "1", "ada")).text;
  equal([text.includes(BIG), text.includes('"seen":true')], [true, true], text);
  await to(page, "#/c/shop/orders/query");
  await retype(page, "SELECT c.id, c.total FROM c", "Query text");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("gridcell", { name: BIG }).waitFor();
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "NDJSON" }).click()]);
  const chunks = [];
  for await (const chunk of await saved.createReadStream()) chunks.push(chunk);
  equal(Buffer.concat(chunks).toString().trim(), `{"id":"1","total":${BIG}}`);
  await close(page);
});

test("who saves second sees what the first one did, and can merge", async () => {
  const page = await open(server, "/_explorer/#/c/shop/orders/items", { allow: [/412/] });
  await page.getByRole("gridcell", { name: "ada" }).click();
  await page.getByRole("textbox", { name: "The item as JSON" }).waitFor();
  await put(server, "shop", "orders", { id: "1", customer: "ada", total: 5, theirs: "yes" }, "ada");
  await retype(page, '{"id": "1", "customer": "ada", "total": 7, "mine": "yes"}', "The item as JSON");
  await page.keyboard.press("Control+s");
  await page.getByRole("heading", { name: "Somebody changed this item meanwhile" }).waitFor();
  await page.getByRole("textbox", { name: "On the server now" }).getByText("theirs").waitFor();
  await picture(page, "conflict");
  await page.getByRole("button", { name: "Save the right side" }).click();
  await page.getByText(/^Saved/).waitFor();
  const now = JSON.parse((await read(server, "shop", "orders", "1", "ada")).text);
  equal([now.total, now.mine, now.theirs], [7, "yes", undefined]);
  await close(page);
});

test("names and values that look like a program are text", async () => {
  await fill(server, "nasty & odd", "c'1", [{ id: NASTY.replaceAll("/", "|"), key: NASTY, rtl: "\u202Eright", ["__proto__x"]: { deep: NASTY } }]);
  await put(server, "nasty & odd", "c'1", `{"id": "proto", "key": "p", "__proto__": {"polluted": true}}`, "p");
  const page = await open(server, `/_explorer/#/c/${encodeURIComponent("nasty & odd")}/${encodeURIComponent("c'1")}/items`);
  page.on("dialog", (dialog) => page.problems.push(`a dialog: ${dialog.message()}`));
  await page.getByRole("gridcell", { name: NASTY, exact: true }).click();
  await page.getByRole("textbox", { name: "The item as JSON" }).waitFor();
  equal(await page.evaluate(() => ({}).polluted ?? null), null, "nothing is polluted");
  equal(await page.locator("img[src=x]").count(), 0, "no picture came of it");
  await close(page);
});

test("a table of thousands draws only what is in view", async () => {
  await fill(server, "many", "rows", Array.from({ length: 3000 }, (_, n) => ({ id: String(n), key: `k${n % 50}`, n })), { throughput: 30_000 });
  const page = await open(server, "/_explorer/#/c/many/rows/items");
  const grid = page.getByRole("grid");
  await page.getByRole("gridcell").first().waitFor();
  for (let round = 0; round < 40 && !(await page.getByText("3,000 items", { exact: true }).count()); round += 1) {
    await grid.evaluate((element) => void (element.scrollTop = element.scrollHeight));
    await page.waitForFunction((before) => document.querySelector(".status").textContent !== before, await page.locator(".status").textContent(), { timeout: 5000 }).catch(() => {});
  }
  await page.getByText("3,000 items", { exact: true }).waitFor();
  const drawn = await page.locator(".grid-row").count();
  equal(drawn > 5 && drawn < 200, true, `${drawn} rows drawn`);
  await close(page);
});

test("a query over partitions is merged in order, paged, explained, and its errors are shown where they are", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/query", { allow: [/400/] });
  await retype(page, "SELECT c.n FROM c ORDER BY c.n DESC", "Query text");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("gridcell", { name: "2999" }).waitFor();
  await page.getByText(/^100$|^200$/).first().waitFor();
  equal(await page.locator(".grid-row .grid-cell").first().textContent(), "2999");
  await page.getByRole("button", { name: "Plan" }).click();
  await page.getByText("Indexes that served").waitFor();
  await page.getByRole("img", { name: /Partition 0: .* RU/ }).waitFor();
  await retype(page, "SELECT * FORM c", "Query text");
  await page.locator(".cm-lintRange-error").getByText("FORM").waitFor();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").waitFor();
  await close(page);
});

test("on a phone a table of thousands draws only what is in view, too", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/items", { width: 400 });
  await page.getByRole("gridcell").first().waitFor();
  const drawn = () => page.evaluate(() => [document.querySelector(".grid").clientHeight < innerHeight, document.querySelectorAll(".grid-row").length < 60]);
  equal(await drawn(), [true, true], "items");
  await to(page, "#/c/many/rows/query");
  await page.getByRole("button", { name: /^Run/ }).click();
  await page.getByRole("gridcell").first().waitFor();
  equal(await drawn(), [true, true], "rows of a query");
  await close(page);
});

test("completion knows the paths of the items, and the values of one", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/query");
  await retype(page, "SELECT * FROM c WHERE ", "Query text");
  await page.getByText(/paths of your items/).waitFor();
  await page.keyboard.type("c.");
  await page.locator(".cm-tooltip-autocomplete").getByText("key").waitFor();
  await retype(page, "SELECT * FROM c WHERE c.key = 'k4", "Query text");
  await page.keyboard.press("Control+Space");
  await page.locator(".cm-tooltip-autocomplete").getByText("k42").waitFor();
  await page.keyboard.press("Escape");
  await close(page);
});

test("rows are shown as trees, and all pages are exported though only one was read", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/query");
  await retype(page, "SELECT c.id, c.key, {deep: [c.n]} AS inner FROM c", "Query text");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("gridcell").first().waitFor();
  await page.getByRole("button", { name: "Tree", exact: true }).click();
  await page.getByRole("button", { name: /^▸ inner/ }).first().click();
  await page.getByRole("button", { name: /^▸ deep 1 element/ }).first().click();
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  const chunks = [];
  for await (const chunk of await saved.createReadStream()) chunks.push(chunk);
  equal(Buffer.concat(chunks).toString().split("\r\n").length > 2000, true, "all of them");
  await page.getByText("100 rows so far").waitFor();
  await close(page);
});

test("throttling is switched on and off from the page", async () => {
  const other = await start();
  const page = await open(other, "/_explorer/#/faults");
  const badge = page.getByText("throttling on", { exact: true });
  await page.getByRole("switch", { name: "Throttling" }).check();
  await badge.waitFor();
  equal(JSON.parse((await send(other, "GET", ["_orrery", "whoami"])).text).throttling, true);
  await page.getByRole("switch", { name: "Throttling" }).uncheck();
  await badge.waitFor({ state: "detached" });
  equal(JSON.parse((await send(other, "GET", ["_orrery", "throttling"])).text), { enabled: false });
  await close(page);
  await other.stop();
});

test("a query that is typed survives a reload, and parameters are asked for", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/query");
  await retype(page, "SELECT c.n FROM c WHERE c.n = @n", "Query text");
  await page.getByPlaceholder("JSON or text").fill("17");
  await page.reload();
  await page.getByRole("textbox", { name: "Query text" }).getByText("@n").waitFor();
  await page.getByRole("button", { name: /^Run/ }).click();
  await page.getByRole("gridcell", { name: "17" }).waitFor();
  await close(page);
});

test("a partition is split and merged from the page, and nothing is lost", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/partitions");
  await page.getByText("3 physical partitions").waitFor();
  await page.getByText(/^✓ Even|Even:/).waitFor();
  await page.getByRole("button", { name: "Split the largest" }).click();
  await page.getByText("4 physical partitions").waitFor({ timeout: 60_000 });
  await page.getByRole("button", { name: "Ring" }).click();
  equal(await page.locator(".ring path").count(), 4, "arcs");
  await page.getByText(/3,000 items/).first().waitFor();
  await page.getByRole("button", { name: "Merge the smallest" }).click();
  await page.getByText("3 physical partitions").waitFor({ timeout: 60_000 });
  await close(page);
});

test("throughput, time to live and the indexing policy are changed from the page", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/settings");
  await page.getByLabel("RU/s", { exact: true }).fill("40000");
  await page.getByText("40,000 RU/s → 4 physical partitions").waitFor();
  await page.getByRole("button", { name: "Set the throughput" }).click();
  await page.getByText("Now 40,000 RU/s").waitFor();
  await page.getByRole("button", { name: "For all items" }).click();
  await page.getByLabel("Seconds after the last change").fill("86400");
  await page.getByRole("button", { name: "Save", exact: true }).first().click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await page.getByLabel("Composite indexes").fill("/key ASC, /n DESC");
  await page.getByLabel("Composite indexes").blur();
  await page.getByRole("button", { name: "Save the policy" }).click();
  await page.waitForFunction(() => document.querySelector(".actions button")?.disabled !== false);
  const container = JSON.parse((await send(server, "GET", ["dbs", "many", "colls", "rows"])).text);
  equal([container.defaultTtl, container.indexingPolicy.compositeIndexes?.[0]?.[1]?.order], [86400, "descending"]);
  await close(page);
});

test("a stored procedure is written, run and fails with its reason", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/scripts", { allow: [/400/] });
  await page.getByRole("button", { name: "New stored procedure" }).click();
  await page.getByLabel("Name").fill("count");
  await page.getByRole("textbox", { name: "Script" }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByLabel("Partition key /key").fill("k1");
  await page.getByLabel("Arguments, a JSON array").fill('["x"]');
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByText("found 60").waitFor();
  await retype(page, 'function f() { throw new Error("on purpose"); }', "Script");
  await page.getByRole("button", { name: "Save and run" }).click();
  await page.getByRole("alert").getByText(/on purpose/).waitFor();
  await close(page);
});

test("the change feed shows a write as it happens", async () => {
  const page = await open(server, "/_explorer/#/c/many/rows/changes");
  await page.getByText("Waiting for changes").waitFor();
  await page.waitForResponse((response) => response.status() === 304);
  for (let round = 0; round < 20 && !(await page.getByRole("button", { name: "fresh" }).count()); round += 1) {
    await put(server, "many", "rows", { id: "fresh", key: "k1", round }, "k1");
    await page.getByRole("button", { name: "fresh" }).first().waitFor({ timeout: 3000 }).catch(() => {});
  }
  await page.getByRole("button", { name: "fresh" }).first().waitFor();
  await close(page);
});

test("faults are switched on and off, and every page says so meanwhile", async () => {
  const page = await open(server, "/_explorer/#/faults", { allow: [/429/] });
  await page.getByRole("button", { name: "Add the rule" }).click();
  await page.getByText("1 rule is in force.").waitFor();
  await to(page, "#/");
  await page.getByText("requests fail on purpose").waitFor();
  await to(page, "#/faults");
  await page.getByRole("button", { name: "Stop all" }).click();
  await page.getByText("1 rule is in force.").waitFor({ state: "detached" });
  equal(JSON.parse((await send(server, "GET", ["_orrery", "faults"])).text).rules, []);
  await close(page);
});

test("files are imported: JSON lines and CSV", async () => {
  await fill(server, "files", "in", []);
  const page = await open(server, "/_explorer/#/c/files/in/items");
  await page.getByRole("button", { name: "Import" }).click();
  await page.locator("input[type=file]").setInputFiles([
    { name: "a.ndjson", mimeType: "application/x-ndjson", buffer: Buffer.from(`{"id":"1","key":"a","n":${BIG}}\n{"id":"2","key":"b"}\n`) },
    { name: "b.csv", mimeType: "text/csv", buffer: Buffer.from('id,key,text\n3,c,"one, ""two"""\n') },
  ]);
  await page.getByRole("button", { name: "Import 3 items" }).click();
  await page.getByText("3 of 3 items written").waitFor();
  await page.getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByRole("gridcell", { name: BIG }).waitFor();
  await page.getByRole("gridcell", { name: 'one, "two"' }).waitFor();
  await close(page);
});

test("a container is deleted only by its name", async () => {
  const page = await open(server, "/_explorer/#/c/files/in/settings");
  await page.getByRole("button", { name: "Delete the container" }).click();
  const button = page.getByRole("button", { name: "Delete for good" });
  await page.getByLabel(/to confirm/).fill("wrong");
  equal(await button.isDisabled(), true);
  await page.getByLabel(/to confirm/).fill("in");
  await button.click();
  await page.getByText("0 containers").waitFor();
  await close(page);
});

test("a key of one's own is asked for, kept in the tab alone, and one that only reads cannot write", async () => {
  const [key, reading] = ["a", "b"].map((letter) => Buffer.from(letter.repeat(64)).toString("base64"));
  const own = await start(["--key", key, "--readonly-key", reading]);
  const page = await open(own, "/_explorer/", { allow: [/401/] });
  await page.getByLabel("Account key").fill(Buffer.from("wrong".repeat(12)).toString("base64"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText(/does not know this key/).waitFor();
  await page.getByLabel("Account key").fill(reading);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("read-only key").waitFor();
  equal(await page.getByRole("button", { name: "Load sample data" }).isDisabled(), true);
  await page.reload();
  await page.getByText("read-only key").waitFor();
  const places = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML]));
  equal(places.includes(reading.slice(0, 40)), false, "the key is nowhere to be read");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Account key").waitFor();
  await close(page);
  await own.stop();
});

test("another name for this machine is refused, so that no page elsewhere can use the well-known key", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  for (const path of ["/_explorer/", "/metrics", "/dbs", "/"]) {
    const answer = await page.goto(`http://evil.example:${server.port}${path}`);
    equal(answer.status(), 403, path);
  }
  await context.close();
});

test("what was typed outlives the server", async () => {
  const first = await start();
  await fill(first, "d", "c", [{ id: "1", key: "a" }]);
  const page = await open(first, "/_explorer/#/c/d/c/items", { allow: [/ERR_|Failed to load/] });
  await page.getByRole("gridcell", { name: "a", exact: true }).click();
  await retype(page, '{"id": "1", "key": "a", "typed": true}', "The item as JSON");
  await first.stop();
  await page.keyboard.press("Control+s");
  await page.getByText("The server does not answer.").first().waitFor();
  const second = await start([], first.port);
  await fill(second, "d", "c", []);
  await page.getByRole("textbox", { name: "The item as JSON" }).getByText("typed").waitFor();
  await close(page);
  await second.stop();
});

modules(test);
apis(test, server);
mongo(test, server);
depth(test, server);
imports(test, server);
advice(test, server);

const PAGES = { home: "#/", new: "#/new", database: "#/d/many", items: "#/c/many/rows/items", query: "#/c/many/rows/query", partitions: "#/c/many/rows/partitions", settings: "#/c/many/rows/settings", scripts: "#/c/many/rows/scripts", changes: "#/c/many/rows/changes", graph: "#/c/graphs/planets/graph", advisor: "#/c/many/rows/advisor", entities: "#/c/TablesDB/people/items", access: "#/d/tokens/users", "table-query": "#/c/TablesDB/people/query", documents: "#/c/mongo/orders/items", "mongo-query": "#/c/mongo/orders/query", activity: "#/activity", faults: "#/faults" };

for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [[1280, 800], [400, 800]]) {
    test(`every page in ${scheme} at ${width} pixels has nothing serious against its accessibility`, async () => {
      const page = await open(server, "/_explorer/", { width, height, scheme });
      await page.locator("header.top").waitFor();
      const found = [];
      for (const [name, hash] of Object.entries(PAGES)) {
        await to(page, hash);
        await page.locator("main h1").first().waitFor();
        if (name === "items") await page.getByRole("gridcell").nth(1).click();
        if (name === "items" || name === "query") await page.locator(".cm-content").first().waitFor();
        if (name === "graph") await page.getByText(/vertices, /).waitFor();
        if (name === "query") await page.getByRole("button", { name: /^Run/ }).click(), await page.getByRole("gridcell").first().waitFor();
        for (const { id, nodes } of await accessibility(page)) found.push(`${name}: ${id}: ${nodes.join("; ")}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 1) found.push(`${name}: ${wide} pixels too wide`);
        await picture(page, `${name}-${scheme}-${width}`);
      }
      await close(page);
      equal(found, []);
    });
  }
}

// ---- running ------------------------------------------------------------------------------------------------------------------

const wanted = process.argv.slice(2);
let [passed, failed] = [0, 0];
for (const { name, run } of tests.filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)))) {
  const began = performance.now();
  try {
    await run();
    passed += 1;
    console.log(`ok      ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
    for (const context of browser.contexts()) await context.close();
  }
}
await browser.close();
await stopAll();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
