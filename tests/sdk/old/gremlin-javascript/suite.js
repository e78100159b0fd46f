// gremlin-javascript 3.4.13, which the service recommends, unmodified, against a running server: scripts and its own traversals.
//
//     COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] node suite.js
//
// Every member of `cases` is one test, named by the sentence it proves. The last line is `N passed, N failed`.
const assert = require("node:assert");
const crypto = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const gremlin = require("gremlin");

const { P, t: T, statics: __ } = gremlin.process;
const ENDPOINT = process.env.COSMOS_ENDPOINT.replace(/\/$/, "");
const KEY = process.env.COSMOS_KEY;
const CA = process.env.COSMOS_CA_FILE ? fs.readFileSync(process.env.COSMOS_CA_FILE) : undefined;
const SOCKET = ENDPOINT.replace(/^http/, "ws") + "/gremlin";
const DATABASE = "gremlin" + crypto.randomUUID().slice(0, 8);

// A request of the NoSQL API, which makes the containers that graphs are.
function rest(method, path, kind, link, body) {
  const date = new Date().toUTCString();
  const text = `${method.toLowerCase()}\n${kind}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = crypto.createHmac("sha256", Buffer.from(KEY, "base64")).update(text).digest("base64");
  const headers = {
    authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`),
    "x-ms-date": date,
    "x-ms-version": "2018-12-31",
    "content-type": "application/json",
  };
  return new Promise((resolve, reject) => {
    const scheme = ENDPOINT.startsWith("https") ? https : http;
    const send = scheme.request(ENDPOINT + path, { method, headers, ca: CA }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`${method} ${path}: ${answer.statusCode}`))));
    });
    send.on("error", reject);
    send.end(body ? JSON.stringify(body) : undefined);
  });
}

function options(graph, mimeType) {
  const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/${DATABASE}/colls/${graph}`, KEY);
  return { authenticator, traversalsource: "g", ca: CA, mimeType };
}

const cases = {
  async "scripts write and read, as plain JSON"(graph) {
    const client = new gremlin.driver.Client(SOCKET, options(graph, "application/vnd.gremlin-v2.0+json"));
    const run = async (script, bindings) => (await client.submit(script, bindings)).toArray();
    await run("g.addV('person').property('id','ann').property('pk','a').property('age',age)", { age: 30 });
    await run("g.addV('person').property('id','bob').property('pk','b').property('age',25)");
    await run("g.V(['a','ann']).addE('knows').to(g.V(['b','bob']))");
    assert.deepStrictEqual(await run("g.V('ann').out('knows').id()"), ["bob"]);
    const [vertex] = await run("g.V('ann')");
    assert.deepStrictEqual([vertex.type, vertex.label, vertex.properties.pk[0].value], ["vertex", "person", "a"]);
    await client.close();
  },

  async "many results come in frames"(graph) {
    const client = new gremlin.driver.Client(SOCKET, options(graph));
    const found = (await client.submit(`g.inject(${[...Array(500).keys()].join(",")})`)).toArray();
    assert.strictEqual(found.length, 500);
    await client.close();
  },

  async "errors carry the service's codes"(graph) {
    const client = new gremlin.driver.Client(SOCKET, options(graph));
    await client.submit("g.addV('p').property('id','x').property('pk','k')");
    await assert.rejects(client.submit("g.addV('p').property('id','x').property('pk','k')"), (error) => {
      const attributes = error.statusAttributes;
      const code = attributes instanceof Map ? attributes.get("x-ms-status-code") : attributes["x-ms-status-code"];
      return error.statusCode === 500 && code === 409;
    });
    await client.close();
  },

  async "its own traversals walk the graph"(graph) {
    const remote = new gremlin.driver.DriverRemoteConnection(SOCKET, options(graph));
    const g = gremlin.process.AnonymousTraversalSource.traversal().withRemote(remote);
    await g.addV("person").property(T.id, "ann").property("pk", "a").property("age", 30).next();
    await g.addV("person").property(T.id, "bob").property("pk", "b").property("age", 25).next();
    await g.V("ann").addE("knows").to(__.V("bob")).next();
    assert.deepStrictEqual(await g.V().has("age", P.gt(26)).id().toList(), ["ann"]);
    assert.deepStrictEqual(await g.V("ann").out("knows").id().toList(), ["bob"]);
    assert.strictEqual((await g.V("bob").next()).value.label, "person");
    await remote.close();
  },
};

async function main() {
  await rest("POST", "/dbs", "dbs", "", { id: DATABASE });
  let [passed, failed] = [0, 0];
  for (const [name, run] of Object.entries(cases)) {
    const graph = crypto.randomUUID();
    const partitionKey = { paths: ["/pk"], kind: "Hash", version: 2 };
    await rest("POST", `/dbs/${DATABASE}/colls`, "colls", `dbs/${DATABASE}`, { id: graph, partitionKey });
    try {
      await run(graph);
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack}`);
    }
  }
  await rest("DELETE", `/dbs/${DATABASE}`, "dbs", `dbs/${DATABASE}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
