// Partitions that split while a change feed is followed, as tests of suite.js.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";
import * as http from "node:http";
import * as https from "node:https";

const PATH = "_orrery/splits";

export function addSplits(test, { endpoint, key, agent, create }) {
  /** The server's own route, signed as the SDK signs. */
  const ask = (method, body) => {
    const date = new Date().toUTCString();
    const text = `${method.toLowerCase()}\n_orrery\n${PATH}\n${date.toLowerCase()}\n\n`;
    const mac = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
    const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${mac}`);
    const headers = { authorization, "x-ms-date": date, "x-ms-version": "2020-07-15" };
    const url = new URL(PATH, endpoint.endsWith("/") ? endpoint : `${endpoint}/`);
    return new Promise((resolve, reject) => {
      const request = (url.protocol === "https:" ? https : http).request(url, { method, headers, agent }, (answer) => {
        let received = "";
        answer.on("data", (part) => (received += part));
        answer.on("end", () =>
          answer.statusCode < 300 ? resolve(JSON.parse(received)) : reject(new Error(`${answer.statusCode} ${received}`)),
        );
      });
      request.on("error", reject);
      request.end(body && JSON.stringify(body));
    });
  };

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
}
