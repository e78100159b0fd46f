// Documents of the MongoDB API: commands over HTTP, their page with every type, queries with plan and index, the parser of what is typed.
import { open, close, equal, retype, to, picture } from "./browser.mjs";
import { send, start } from "./server.mjs";

const web = new URL("../../crates/portal/web/", import.meta.url);
const values = await import(new URL("api/mongo-values.js", web));
const shell = await import(new URL("api/mongo-shell.js", web));

/** A command, as the portal sends it. */
const command = async (server, db, body, options) => {
  const answer = await send(server, "POST", ["_orrery", "mongo"], { body: { ...body, $db: db }, ...options });
  return { ...answer, reply: JSON.parse(answer.text) };
};

export default function mongo(test, server) {
  test("what is typed for MongoDB keeps its types on the way there and back", async () => {
    const text = "{a: 1, 'b.c': 2.0, d: ISODate('2026-01-02'), e: NumberLong(5), f: [1, \"x\", /a+/i], g: null, h: ObjectId('507f1f77bcf86cd799439011'), k: 9007199254740993, l: NumberDecimal('0.10'), n: {m: [{x: true}]}, o: -Infinity, p: BinData(0, 'AQI='), __proto__: 1}";
    const value = values.read(text);
    equal([value.a, value["b.c"], value.e, value.k, value.l.$numberDecimal, Object.hasOwn(value, "__proto__")], [{ $numberInt: "1" }, { $numberDouble: "2.0" }, { $numberLong: "5" }, { $numberLong: "9007199254740993" }, "0.10", true]);
    equal(values.read(values.shown(value)), value, "written and read again");
    equal(shell.commandOf("db.a.b.find({x: 1}, {y: 1}).sort({x: -1}).limit(5);", "c").command, { find: "a.b", filter: { x: { $numberInt: "1" } }, projection: { y: { $numberInt: "1" } }, batchSize: 100, sort: { x: { $numberInt: "-1" } }, limit: { $numberInt: "5" } });
    equal([shell.commandOf("db['x y'].aggregate([{$match: {}}])", "c").command.aggregate, shell.commandOf("db.c.find().explain()", "c").explain, shell.commandOf("{ping: 1}", "c").command], ["x y", true, { ping: { $numberInt: "1" } }]);
    for (const [wrong, at] of [["db.c.find({a:)", 13], ["db.c.nope()", 5], ["SELECT 1", 0], ["db.c.find({a: b})", 14], ["db.c.find() x", 12], ["db.c.find({a: 'x})", 14]]) {
      let found = null;
      try {
        shell.commandOf(wrong, "c");
      } catch (problem) {
        found = problem.at;
      }
      equal(found, at, wrong);
    }
  });

  test("commands of MongoDB come over HTTP, signed, and a key that only reads writes nothing", async () => {
    const readonly = Buffer.from("a key that only reads").toString("base64");
    const other = await start(["--readonly-key", readonly]);
    equal((await command(other, "shop", { insert: "o", documents: [{ _id: { $oid: "507f1f77bcf86cd799439011" }, n: { $numberLong: "5" } }] })).reply.n, { $numberInt: "1" });
    const found = await command(other, "shop", { find: "o", filter: {} }, { key: readonly });
    equal([found.status, found.reply.cursor.firstBatch], [200, [{ _id: { $oid: "507f1f77bcf86cd799439011" }, n: { $numberLong: "5" } }]]);
    equal(Number(found.headers.get("x-ms-request-charge")) > 0, true, "it says what it cost");
    const refused = await command(other, "shop", { insert: "o", documents: [{}] }, { key: readonly });
    equal([refused.status, refused.reply.codeName], [401, "Unauthorized"]);
    equal((await command(other, "shop", { find: "o" }, { key: Buffer.from("nobody's").toString("base64") })).status, 401);
    equal((await fetch(`${other.endpoint}/_orrery/mongo`, { method: "POST", body: "{}" })).status, 401);
    equal((await command(other, "shop", { nope: 1 })).status, 404);
    equal((await send(other, "POST", ["_orrery", "mongo"], { body: "{" })).status, 400);
    const many = await command(other, "shop", { insert: "many", documents: Array.from({ length: 300 }, (_, n) => ({ _id: n })) });
    equal(many.reply.ok, { $numberDouble: "1.0" });
    const first = (await command(other, "shop", { find: "many", batchSize: 100 })).reply.cursor;
    const next = (await command(other, "shop", { getMore: first.id, collection: "many", batchSize: 500 })).reply.cursor;
    equal([first.firstBatch.length, next.nextBatch.length, next.id], [100, 200, { $numberLong: "0" }]);
    await other.stop();
  });

  test("a collection is made and its documents are written, filtered, changed by two and put back, in their own types", async () => {
    const page = await open(server, "/_explorer/#/new", { allow: [/400/] });
    await page.getByRole("button", { name: "Collection", exact: true }).click();
    await page.getByLabel("Collection", { exact: true }).waitFor();
    const database = page.getByRole("button", { name: "A new database" });
    if (await database.count()) await database.click();
    await page.getByRole("textbox", { name: "Database" }).fill("mongo");
    await page.getByLabel("Collection", { exact: true }).fill("orders");
    await page.getByLabel("Shard key").fill("customer");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("No documents yet").waitFor();
    await page.getByRole("button", { name: "New document" }).click();
    await retype(page, '{ _id: ObjectId("507f1f77bcf86cd799439011"), customer: "ada", total: 12.0, big: NumberLong(7), exact: NumberDecimal("0.10"), when: ISODate("2026-01-02T03:04:05Z") }', "The document");
    await page.keyboard.press("Control+s");
    await page.getByRole("gridcell", { name: 'ISODate("2026-01-02T03:04:05.000Z")' }).waitFor();
    const stored = (await command(server, "mongo", { find: "orders", filter: {} })).reply.cursor.firstBatch[0];
    equal([stored.total, stored.big, stored.exact], [{ $numberDouble: "12.0" }, { $numberLong: "7" }, { $numberDecimal: "0.10" }]);
    // Somebody else is faster.
    await command(server, "mongo", { update: "orders", updates: [{ q: { _id: stored._id }, u: { $set: { theirs: true } } }] });
    await retype(page, '{ _id: ObjectId("507f1f77bcf86cd799439011"), customer: "ada", total: 13.5 }', "The document");
    await page.keyboard.press("Control+s");
    await page.getByRole("heading", { name: "Somebody changed this document meanwhile" }).waitFor();
    await page.getByRole("button", { name: "Save the right side" }).click();
    await page.getByRole("heading", { name: "Somebody changed" }).waitFor({ state: "detached" });
    equal(Object.keys((await command(server, "mongo", { find: "orders", filter: {} })).reply.cursor.firstBatch[0]), ["_id", "customer", "total"]);
    await command(server, "mongo", { insert: "orders", documents: Array.from({ length: 40 }, (_, n) => ({ customer: `c${n % 4}`, total: n })) });
    const filter = page.getByRole("searchbox", { name: /Filter/ });
    await filter.fill("{ total: { $gte: 38 } }");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("2 documents", { exact: true }).waitFor();
    await page.getByRole("checkbox", { name: "Select all rows" }).click();
    await page.getByRole("region", { name: "Selected documents" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("2 documents", { exact: true }).waitFor();
    await filter.fill("{ total: ");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("A value is missing").waitFor();
    await page.locator("input[type=file]").count();
    await page.getByRole("button", { name: "Import" }).click();
    await page.locator("input[type=file]").setInputFiles({ name: "more.json", mimeType: "application/json", buffer: Buffer.from('{"_id":{"$oid":"507f1f77bcf86cd799439012"},"customer":"ada","n":{"$numberLong":"9007199254740993"}}\n{"_id":7,"customer":"bob","half":5.0}\n') });
    await page.getByRole("button", { name: "Import 2 documents" }).click();
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    const imported = (await command(server, "mongo", { find: "orders", filter: { $or: [{ n: { $exists: true } }, { half: { $exists: true } }] }, sort: { n: 1 } })).reply.cursor.firstBatch;
    equal(imported.map((one) => one.n ?? one.half), [{ $numberDouble: "5.0" }, { $numberLong: "9007199254740993" }], "digits and types of a file");
    await close(page);
  });

  test("a query of MongoDB is completed, answered, explained, and an index is made from its plan", async () => {
    const page = await open(server, "/_explorer/#/c/mongo/orders/query");
    await retype(page, "db.orders.find({ cus", "Query text");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete").getByText("customer").first().waitFor();
    await page.keyboard.press("Escape");
    await retype(page, "db.orders.aggregate([{ $mat", "Query text");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete").getByText("$match").first().waitFor();
    await page.keyboard.press("Escape");
    await retype(page, 'db.orders.aggregate([{ $group: { _id: "$customer", sum: { $sum: "$total" }, orders: { $sum: 1 } } }, { $sort: { sum: -1 } }])', "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "c3" }).waitFor();
    await page.getByRole("button", { name: "Chart" }).waitFor();
    await retype(page, "db.orders.find({ total: { $gt: 5 } }).sort({ total: -1 })", "Query text");
    await page.keyboard.press("Control+Enter");
    await page.getByRole("gridcell", { name: "39", exact: true }).waitFor();
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByRole("img", { name: /documents/ }).waitFor();
    await picture(page, "mongo-plan");
    await retype(page, "db.orders.find({ total: }", "Query text");
    await page.locator(".cm-lintRange-error").first().waitFor();
    await to(page, "#/c/mongo/orders/items");
    await page.getByRole("button", { name: "Indexes" }).click();
    await page.getByLabel("One more").fill("{ customer: 1, total: -1 }");
    await page.getByLabel("Unique").check();
    await page.getByRole("button", { name: "Make the index" }).click();
    await page.getByText("customer_1_total_-1").waitFor();
    const all = (await command(server, "mongo", { listIndexes: "orders" })).reply.cursor.firstBatch;
    equal(all.map((one) => [one.name, one.unique]).at(-1), ["customer_1_total_-1", true]);
    await page.getByRole("button", { name: "Remove the index customer_1_total_-1" }).click();
    await page.getByRole("dialog").last().getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("customer_1_total_-1").first().waitFor({ state: "detached" });
    await close(page);
    equal(shell.wish({ filter: { a: 1, b: { $gt: 2 } }, sort: { c: { $numberInt: "-1" } } }, [{ stage: "COLLSCAN" }], "SELECT * FROM c WHERE c.a = 1"), { a: 1, c: -1, b: 1 }, "equal, order, range");
    equal(shell.wish({ filter: { a: 1 } }, [{ stage: "COLLSCAN" }], "SELECT * FROM c"), null, "no index answers it");
  });
}
