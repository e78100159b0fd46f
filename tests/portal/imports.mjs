// Files into containers: mapping, dry run; and work on many items that is paused and goes on.
import { accessibility, close, equal, open, picture, to } from "./browser.mjs";
import { fill, read, send } from "./server.mjs";

const web = new URL("../../crates/portal/web/", import.meta.url);
const { createCharge, dryRun, mapped, sourcesOf } = await import(new URL("api/mapping.js", web));
const { itemsOf } = await import(new URL("api/files.js", web));

const plan = (columns = {}, keys = {}) => ({ columns: new Map(Object.entries(columns)), keys: new Map(Object.entries(keys)) });
const looked = (rows, mapping = plan(), paths = ["/key"]) => dryRun(rows, mapping, { id: "/id", paths, bytesMax: 2 * 1024 * 1024, signal: new AbortController().signal, onRow() {} });
const files = (page, name, text) => page.locator("input[type=file]").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
const countOf = async (server, db, coll) => JSON.parse((await send(server, "GET", ["dbs", db, "colls", coll, "docs"])).text)._count;

export default function imports(test, server) {
  test("a mapping renames, leaves out, types cells, and copies values to id and keys", async () => {
    const [row] = itemsOf("a.csv", 'id,zip,n,seen,tags,__proto__\n007,00100,5,yes,"[1,{""a"":2}]",x\n');
    equal(mapped(row, plan({ zip: { to: "/address/zip", type: "text" }, n: { type: "text" }, seen: { type: "boolean" }, tags: { type: "JSON" }, ["__proto__"]: { out: true } }, { "/key/part": "/zip" })),
      { id: "007", address: { zip: "00100" }, n: "5", seen: true, tags: [1, { a: 2 }], key: { part: "00100" } });
    equal(mapped(row, plan()).n, 5, "what is not mapped is as it was");
    const item = { id: "1", address: { city: "Rome" } };
    equal(mapped(item, plan({}, { "/address/key": "/address/city" })), { id: "1", address: { city: "Rome", key: "Rome" } });
    equal(item, { id: "1", address: { city: "Rome" } }, "the row of the file is untouched");
    equal(sourcesOf([item, { 'a/"b': 1 }]).paths, ["/id", "/address/city", '/"a/\\"b"']);
  });

  test("a dry run knows what would be refused and what is hardly meant so", async () => {
    const found = await looked([
      { id: "1", key: "a" }, { id: "1", key: "a" }, { id: "1", key: "b" }, { id: "2" }, { id: "a/b", key: "a" }, { id: "", key: "a" },
      { id: "3", key: ["a"] }, { id: "4", key: "a", text: "x".repeat(2 * 1024 * 1024) }, 7, { key: "a" },
    ]);
    equal([found.items, found.fresh, found.bad.map((one) => [one.row, one.refused])], [6, 1, [[2, false], [4, false], [5, false], [6, true], [7, true], [8, true], [9, true]]]);
    const cells = await looked(itemsOf("a.csv", "id,key,n\n1,a,5\n2,a,five\n"), plan({ n: { type: "number" } }));
    equal([cells.items, cells.bad], [1, [{ row: 2, refused: true, reason: "n: “five” is no number" }]]);
    // As the service charged them: the unit tests of the engine have the same.
    for (const [item, ru] of [[{ id: "e", pk: "t", s: "x" }, 6.29], [{ id: "v2", pk: "a", zeta: 1, alpha: 2, mid: 3, b: 4, abcdef: 5, nu: null, obj: { a: { b: 1 } } }, 9.14]]) equal(createCharge(item, 100).toFixed(2), String(ru));
  });

  test("a CSV file is mapped, looked at, and imported without its bad rows", async () => {
    await fill(server, "drops", "people", [], { path: "/country" });
    const page = await open(server, "/_explorer/#/c/drops/people/items");
    await page.getByRole("button", { name: "Import" }).click();
    await files(page, "people.csv", "mail,land,zip,age,note\na@x,it,00100,30,one\nb@x,it,00200,old,two\nc@x,,00300,32,three\na@x,it,00400,33,four\n");
    await page.getByText("4 items without the partition key /country").waitFor();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Mapping: what each member becomes").focus();
    await page.keyboard.press("Enter");
    await dialog.getByLabel("Value of /id").selectOption("/mail");
    await dialog.getByLabel("Value of /country").selectOption("/land");
    await dialog.getByLabel("Type of zip").selectOption("text");
    await dialog.getByLabel("Type of age").selectOption("number");
    await dialog.getByLabel("Name of zip").fill("/address/zip");
    await dialog.getByRole("checkbox", { name: "note" }).uncheck();
    await dialog.getByText("1 item without the partition key /country").waitFor();
    await dialog.getByRole("button", { name: "Dry run" }).click();
    await dialog.getByText("Dry run: 3 of 4 rows would be written").waitFor();
    await dialog.getByText("age: “old” is no number").waitFor();
    await dialog.getByText("row 1 has the same id and partition key").waitFor();
    await dialog.getByText("there is nothing at /country").waitFor();
    equal(await countOf(server, "drops", "people"), 0, "nothing was written");
    const found = [];
    for (const scheme of ["light", "dark"]) {
      for (const [width, height] of [[1280, 800], [400, 800]]) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height });
        for (const { id, nodes } of await accessibility(page)) found.push(`${scheme} ${width}: ${id}: ${nodes.join("; ")}`);
        const wide = await dialog.evaluate((element) => Math.max(element.scrollWidth - element.clientWidth, document.documentElement.scrollWidth - innerWidth));
        if (wide > 1) found.push(`${scheme} ${width}: ${wide} pixels too wide`);
        await picture(page, `import-${scheme}-${width}`);
      }
    }
    equal(found, []);
    await dialog.getByLabel("Leave out these 3 rows").check();
    await dialog.getByRole("button", { name: "Import 1 item" }).click();
    await dialog.getByText("1 of 1 item written").waitFor();
    await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
    const { _rid, _self, _etag, _attachments, _ts, ...item } = JSON.parse((await read(server, "drops", "people", "a@x", "it")).text);
    equal(item, { mail: "a@x", land: "it", address: { zip: "00100" }, age: 30, id: "a@x", country: "it" });
    await close(page);
  });

  test("an import and a patch of many items are paused and go on, and each item is written once", async () => {
    await fill(server, "drops", "many", []);
    const page = await open(server, "/_explorer/#/c/drops/many/items");
    const writes = [];
    let holds = true;
    // Writes wait while the test says so; the others are answered at once.
    await page.route(/\/docs(\/|$)/, async (route) => {
      const request = route.request();
      if (request.method() === "PATCH" || request.headers()["x-ms-documentdb-is-upsert"]) {
        writes.push(request.url() + (request.method() === "PATCH" ? "" : request.postData()));
        while (holds) await new Promise((go) => setTimeout(go, 20));
      }
      await route.continue();
    });
    const paused = async (begin, total, done) => {
      const dialog = page.getByRole("dialog");
      writes.length = 0;
      holds = true;
      await begin(dialog);
      const pause = dialog.getByRole("button", { name: "Pause" });
      await pause.waitFor();
      equal(await page.evaluate(() => document.activeElement.textContent), "Pause", "the focus is on the button");
      await page.keyboard.press("Enter");
      await dialog.getByRole("button", { name: "Pausing…" }).waitFor();
      holds = false;
      await dialog.getByText(/Paused\./).waitFor();
      const before = writes.length;
      equal(before > 0 && before < total, true, `${before} of ${total} were under way`);
      equal(await page.evaluate(() => document.activeElement.textContent), "Go on", "the button keeps the focus");
      equal((await accessibility(page)).map(({ id }) => id), []);
      await page.keyboard.press("Enter");
      await dialog.getByText(done).waitFor();
      await page.waitForFunction(() => document.activeElement.textContent === "Close");
      equal([writes.length, new Set(writes).size], [total, total], "each once");
      await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
    };
    await page.getByRole("button", { name: "Import" }).click();
    await files(page, "many.ndjson", Array.from({ length: 60 }, (_, n) => `{"id":"${n}","key":"k${n % 5}","n":1}`).join("\n"));
    await paused((dialog) => dialog.getByRole("button", { name: "Import 60 items" }).click(), 60, "60 of 60 items written");
    equal(await countOf(server, "drops", "many"), 60);
    await page.getByText("60 items", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Patch all…" }).click();
    await paused((dialog) => dialog.getByRole("button", { name: "Patch 60 items" }).click(), 60, "60 of 60 items, ");
    equal(JSON.parse((await read(server, "drops", "many", "59", "k4")).text).reviewed, true);
    await to(page, "#/");
    await close(page);
  });
}
