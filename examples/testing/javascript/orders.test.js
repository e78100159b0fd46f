// A server for tests in Node's own test runner: one for all tests, a fork of prepared data for each, a clock that moves.
const assert = require("node:assert");
const { spawn, spawnSync } = require("node:child_process");
const path = require("node:path");
const readline = require("node:readline");
const { after, before, beforeEach, test } = require("node:test");

const ORRERY = process.env.ORRERY || "orrery";
const BUDGETS = path.join(__dirname, "..", "budgets.toml");
let server;
let endpoint;

function orrery(...args) {
  return spawnSync(ORRERY, [...args, "--endpoint", endpoint], { encoding: "utf8" });
}

before(async () => {
  const args = ["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--log-format", "json", "--test-controls", "on"];
  server = spawn(ORRERY, args, { stdio: ["ignore", "pipe", "ignore"] });
  // The first line says where it listens. SDKs connect to the same address.
  const first = await new Promise((resolve) => readline.createInterface(server.stdout).once("line", resolve));
  endpoint = `http://${JSON.parse(first).listen[0]}`;
  // Prepared once, however long that takes. No test changes it; the clock is everybody's, so it does not expire.
  orrery("database", "create", "prepared");
  orrery("container", "create", "prepared/orders", "--partition-key", "/customer", "--ttl", "3600");
  orrery("item", "put", "prepared/orders", '{"id":"17","customer":"ada","total":42,"ttl":-1}');
});

after(() => server.kill());

beforeEach(() => {
  // Milliseconds, whatever is in it. What the test before has done is gone.
  const forked = orrery("fork", "create", "prepared", "shop", "--replace");
  assert.equal(forked.status, 0, forked.stderr);
});

test("an order can be cancelled", () => {
  assert.equal(orrery("item", "delete", "shop/orders", "17", "-k", "ada").status, 0);
  assert.equal(orrery("item", "get", "shop/orders", "17", "-k", "ada").status, 3);
  assert.equal(orrery("item", "get", "prepared/orders", "17", "-k", "ada").status, 0);
});

test("orders expire after an hour", () => {
  orrery("item", "put", "shop/orders", '{"id":"18","customer":"ada","total":7}');
  assert.equal(orrery("item", "get", "shop/orders", "18", "-k", "ada").status, 0);
  orrery("clock", "advance", "61m");
  assert.equal(orrery("item", "get", "shop/orders", "18", "-k", "ada").status, 3);
});

test("queries stay within their budgets", () => {
  const checked = orrery("budget", "check", BUDGETS);
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});
