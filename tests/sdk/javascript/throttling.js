// Requests that are refused for their rate, and what the SDK makes of it, as tests of suite.js.
//
// The server is made to refuse by its fault rules, so that the tests take no time and need no throughput of their own.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { request as http } from "node:http";
import { request as https } from "node:https";

export function addThrottling(test, { endpoint, key, agent, refused }) {
  const faults = (method, body) =>
    new Promise((resolve, reject) => {
      const date = new Date().toUTCString();
      const text = `${method.toLowerCase()}\n_orrery\n_orrery/faults\n${date.toLowerCase()}\n\n`;
      const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
      const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
      const url = new URL("/_orrery/faults", endpoint);
      const send = url.protocol === "https:" ? https : http;
      const sent = send(url, { method, agent, headers: { authorization, "x-ms-date": date } }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("end", () => {
          const whole = Buffer.concat(parts).toString();
          if (answer.statusCode >= 300) reject(new Error(`${answer.statusCode}: ${whole}`));
          else resolve(whole ? JSON.parse(whole) : {});
        });
      });
      sent.on("error", reject);
      sent.end(body ? JSON.stringify(body) : undefined);
    });

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
}
