// The real binary on a free port, and a second client beside the browser.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { createInterface } from "node:readline";

export const WELL_KNOWN = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const running = new Set();

/** Starts a server that keeps nothing; ends with the suite at the latest. */
export async function start(options = [], port = 0) {
  const child = spawn(process.env.ORRERY_BINARY, ["serve", "--listen", `127.0.0.1:${port}`, "--table-listen", "off", "--ephemeral", "--log-format", "json", "--log-requests", "off", ...options], { stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const address = JSON.parse(line).listen[0];
    return { endpoint: `http://${address}`, port: Number(address.split(":").at(-1)), stop: () => stop(child) };
  }
  throw new Error("the server ended before it said where it is");
}

function stop(child) {
  running.delete(child);
  return new Promise((resolve) => {
    child.once("exit", resolve);
    child.kill("SIGTERM");
  });
}

export const stopAll = () => Promise.all([...running].map(stop));

/** One signed request, as an SDK sends it. */
export async function send(server, method, path, { body, headers = {}, key = WELL_KNOWN } = {}) {
  const feed = path.length % 2 === 1;
  const type = path[0] === "_orrery" ? "_orrery" : feed ? path.at(-1) : path.at(-2);
  const link = (feed && path[0] !== "_orrery" ? path.slice(0, -1) : path).join("/");
  const date = new Date().toUTCString();
  const text = `${method.toLowerCase()}\n${type}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const response = await fetch(`${server.endpoint}/${path.map(encodeURIComponent).join("/")}`, {
    method,
    body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
    headers: { authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`), "x-ms-date": date, "x-ms-version": "2018-12-31", ...headers },
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** A container and its items. */
export async function fill(server, db, coll, items, { path = "/key", throughput = 400 } = {}) {
  await send(server, "POST", ["dbs"], { body: { id: db } });
  const made = await send(server, "POST", ["dbs", db, "colls"], { body: { id: coll, partitionKey: { paths: [path], kind: "Hash", version: 2 } }, headers: { "x-ms-offer-throughput": String(throughput) } });
  if (made.status !== 201) throw new Error(made.text);
  for (let at = 0; at < items.length; at += 32) await Promise.all(items.slice(at, at + 32).map((item) => put(server, db, coll, item, item[path.slice(1)])));
}

export async function put(server, db, coll, item, key) {
  const body = typeof item === "string" ? item : JSON.stringify(item);
  const answer = await send(server, "POST", ["dbs", db, "colls", coll, "docs"], { body, headers: { "x-ms-documentdb-partitionkey": JSON.stringify([key]), "x-ms-documentdb-is-upsert": "true" } });
  if (answer.status >= 300) throw new Error(answer.text);
  return JSON.parse(answer.text);
}

export const read = (server, db, coll, id, key) => send(server, "GET", ["dbs", db, "colls", coll, "docs", id], { headers: { "x-ms-documentdb-partitionkey": JSON.stringify([key]) } });
