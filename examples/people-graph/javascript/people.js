// People who know each other, with gremlin-javascript: see ../README.md.
const crypto = require("node:crypto");
const http = require("node:http");
const https = require("node:https");
const gremlin = require("gremlin");

const KEY = process.env.COSMOS_KEY || "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const REST = (process.env.COSMOS_ENDPOINT || "http://localhost:8081/").replace(/\/$/, "");
const GRAPHS = process.env.GREMLIN_ENDPOINT || "ws://localhost:8901/";
const DATABASE = process.env.COSMOS_DATABASE || "social-" + crypto.randomUUID().slice(0, 8);

// A request of the NoSQL API, signed.
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
    const send = (REST.startsWith("https") ? https : http).request(REST + path, { method, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`${method} ${path}: ${answer.statusCode}`))));
    });
    send.on("error", reject);
    send.end(body ? JSON.stringify(body) : undefined);
  });
}

async function main() {
  await rest("POST", "/dbs", "dbs", "", { id: DATABASE });
  const key = { paths: ["/town"], kind: "Hash", version: 2 };
  await rest("POST", `/dbs/${DATABASE}/colls`, "colls", `dbs/${DATABASE}`, { id: "people", partitionKey: key });
  const authenticator = new gremlin.driver.auth.PlainTextSaslAuthenticator(`/dbs/${DATABASE}/colls/people`, KEY);
  const graph = new gremlin.driver.Client(GRAPHS, {
    authenticator,
    traversalsource: "g",
    mimeType: "application/vnd.gremlin-v2.0+json",
  });
  const run = async (script, bindings) => (await graph.submit(script, bindings)).toArray();
  const sorted = async (script) => (await run(script)).sort().join(", ");
  for (const [name, town, age] of [["ann", "oslo", 30], ["bob", "oslo", 25], ["cid", "rome", 28], ["dot", "rome", 29]]) {
    await run("g.addV('person').property('id', name).property('town', town).property('age', age)", { name, town, age });
  }
  for (const [one, other] of [["ann", "bob"], ["ann", "cid"], ["bob", "cid"], ["cid", "dot"]]) {
    await run("g.V(one).addE('knows').to(g.V(other))", { one, other });
  }
  console.log(`${await run("g.V().count()")} people, ${await run("g.E().count()")} edges`);
  console.log(`ann lives in ${await run("g.V(['oslo', 'ann']).values('town')")}`);
  console.log(`ann knows: ${await sorted("g.V(['oslo', 'ann']).out('knows').id()")}`);
  console.log(`ann knows at two hops: ${await sorted("g.V(['oslo', 'ann']).out('knows').out('knows').dedup().id()")}`);
  console.log(`cid is known by: ${await sorted("g.V(['rome', 'cid']).in('knows').id()")}`);
  console.log(`older than 28, by age: ${(await run("g.V().has('age', gt(28)).order().by('age').id()")).join(", ")}`);
  console.log(`bob is now ${await run("g.V(['oslo', 'bob']).property('age', 26).values('age')")}`);
  await run("g.V(['rome', 'cid']).drop()");
  console.log(`without cid: ${await run("g.V().count()")} people, ${await run("g.E().count()")} edges`);
  await graph.close();
  await rest("DELETE", `/dbs/${DATABASE}`, "dbs", `dbs/${DATABASE}`);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
