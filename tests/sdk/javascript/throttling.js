// Requests that are refused for their rate, and what the SDK makes of it, as tests of suite.js.
//
// The server is made to refuse by its fault rules, so that the tests take no time and need no throughput of their own.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { admin } from "./admin.js";

export function addThrottling(test, { server, connect, refused }) {
  const faults = admin(server, "faults");

  /** Runs an action under fault rules and returns how often each fired. */
  const withRules = async (rules, action) => {
    await faults("PUT", { seed: 1, rules });
    try {
      await action();
      return (await faults("GET")).rules.map((rule) => rule.fired);
    } finally {
      await faults("DELETE");
    }
  };

  test("a throttled write is tried again until it succeeds", async ({ items }) => {
    const rule = { container: "items", operations: ["create_item"], answer: 429, retryAfterMs: 20, count: 3 };
    const fired = await withRules([rule], () => items.items.create({ id: "throttled", pk: "p" }));
    assert.deepEqual(fired, [3]);
    assert.equal((await items.item("throttled", "p").read()).resource.id, "throttled");
  });

  test("a throttled read is tried again", async ({ items }) => {
    await items.items.upsert({ id: "read-again", pk: "again" });
    const rule = { container: "items", operations: ["read_item"], answer: 429, retryAfterMs: 5, count: 2 };
    const fired = await withRules([rule], () => items.item("read-again", "again").read());
    assert.deepEqual(fired, [2]);
  });

  test("an endless refusal reaches the caller as 429", async ({ items }) => {
    const rule = { container: "items", operations: ["create_item"], answer: 429, retryAfterMs: 1 };
    const [fired] = await withRules([rule], async () => {
      const error = await refused(429, items.items.create({ id: "never", pk: "p" }));
      assert.match(error.message, /Request rate is large/);
    });
    assert.ok(fired > 1, `${fired}`);
  });

  const throttling = process.env.COSMOS_THROTTLING_ENDPOINT;
  if (throttling) {
    test("a load above the provisioned throughput is slowed down to it", async () => {
      const client = connect({ endpoint: throttling });
      const { database } = await client.databases.create({ id: `javascript-${randomUUID()}` });
      const definition = { id: "slow", partitionKey: { paths: ["/pk"], version: 2 }, throughput: 400 };
      const { container } = await database.containers.create(definition);
      const begun = performance.now();
      for (let i = 0; i < 30; i++) {
        await Promise.all(Array.from({ length: 5 }, (_, n) => container.items.create({ id: `${i}-${n}`, pk: "p", n })));
      }
      // 150 items of 6.67 RU: a second's worth is there at the beginning, the rest comes at 400 RU/s.
      const took = performance.now() - begun;
      assert.ok(took > 1200 && took < 20_000, `${took} ms`);
      await database.delete();
    });
  }
}
