// Partitions that split while a change feed is followed and queries are read, as tests of suite.js.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";
import { admin } from "./admin.js";

export function addSplits(test, { server, create }) {
  const ask = admin(server, "splits");

  const run = async (operation, database, container) => {
    let job = await ask("POST", { operation, database: database.id, container: container.id });
    while (job.step !== "done" && job.step !== "failed") {
      await sleep(20);
      job = (await ask("GET")).jobs.find((each) => each.job === job.job);
    }
    assert.equal(job.step, "done", JSON.stringify(job));
  };

  test("a change feed iterator goes on through splits and merges", async ({ database }) => {
    const container = await create(database, "splits-feed", "/pk");
    const seen = new Map();
    const iterator = container.items.getChangeFeedIterator({
      changeFeedStartFrom: ChangeFeedStartFrom.Beginning(),
      maxItemCount: 7,
    });
    const follow = async () => {
      for (;;) {
        const page = await iterator.readNext();
        if (page.statusCode === StatusCodes.NotModified) return;
        for (const item of page.result) {
          // Nothing goes back in time within a key.
          assert.ok(!(seen.get(item.id) > item.n), `${item.id}: ${item.n} after ${seen.get(item.id)}`);
          seen.set(item.id, item.n);
        }
      }
    };
    const write = async (n) => {
      for (let i = 0; i < 40; i++) await container.items.upsert({ id: `${i}`, pk: `k${i}`, n });
    };
    await write(1);
    await follow();
    for (const [n, operation] of [[2, "split"], [3, "split"], [4, "merge"], [5, "split"]]) {
      await run(operation, database, container);
      await write(n);
      await follow();
      assert.equal(seen.size, 40);
      assert.ok([...seen.values()].every((value) => value === n), JSON.stringify([...seen]));
    }
  });

  // What this SDK merges itself it asks of each range by its id, from a map that it never reads again, and it takes a range
  // that has gone for a page that failed to come. The server answers it for the ranges that have taken over.
  const queries = [
    ["a sorted query", "SELECT c.n FROM c ORDER BY c.n", Array.from({ length: 60 }, (_, n) => ({ n }))],
    ["a query that adds up", "SELECT VALUE SUM(c.n) FROM c", [1770]],
    ["a plain query", "SELECT VALUE c.n FROM c", Array.from({ length: 60 }, (_, n) => n)],
    ["a query that groups", "SELECT c.half, COUNT(1) AS count FROM c GROUP BY c.half", [{ half: 0, count: 30 }, { half: 1, count: 30 }]],
  ];
  for (const [name, text, wanted] of queries) {
    test(`${name} goes on through splits and merges, and so does the next one`, async ({ database }) => {
      const container = await create(database, `splits ${name}`, "/pk");
      for (let i = 0; i < 60; i++) await container.items.create({ id: `${i}`, pk: `k${i}`, n: i, half: i % 2 });
      const sorted = (rows) => rows.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
      const check = (rows) =>
        name === "a sorted query" ? assert.deepEqual(rows, wanted) : assert.deepEqual(sorted(rows), sorted(wanted));
      const pages = container.items.query(text, { maxItemCount: 10 });
      const found = (await pages.fetchNext()).resources ?? [];
      for (const operation of ["split", "split", "merge"]) {
        await run(operation, database, container);
        if (pages.hasMoreResults()) found.push(...((await pages.fetchNext()).resources ?? []));
        check((await container.items.query(text, { maxItemCount: 10 }).fetchAll()).resources);
      }
      while (pages.hasMoreResults()) found.push(...((await pages.fetchNext()).resources ?? []));
      check(found);
      assert.equal((await container.item("7", "k7").read()).resource.n, 7);
    });
  }
}
