// A browser on the portal, and what every test of it demands: no error in the console, nothing from another host.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(resolve("package.json")));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const SCREENS = process.env.ORRERY_SCREENS ?? "screens";
mkdirSync(SCREENS, { recursive: true });

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP evil.example 127.0.0.1"];

export const browser = await chromium.launch({ executablePath: process.env.ORRERY_CHROMIUM, args: FLAGS });

/** A page with everything it did wrong written down in `page.problems`. */
export async function open(server, path = "/_explorer/", { width = 1280, height = 800, scheme = "light", allow = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: true });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const host = new URL(server.endpoint).host;
  page.setDefaultTimeout(15_000);
  page.problems = [];
  const note = (text) => allow.some((pattern) => pattern.test(text)) || page.problems.push(text);
  page.on("console", (message) => message.type() === "error" && note(`console: ${message.text()}`));
  page.on("pageerror", (error) => note(`page: ${error.stack ?? error.message}`));
  page.on("request", (request) => /^(blob|data):/.test(request.url()) || new URL(request.url()).host === host || note(`another host: ${request.url()}`));
  await page.goto(server.endpoint + path);
  return page;
}

/** Fails with what the page did wrong; closes it. */
export async function close(page) {
  const problems = page.problems;
  await page.context().close();
  if (problems.length) throw new Error(problems.join("\n"));
}

/** Goes to an address of the portal without loading it anew. */
export async function to(page, hash) {
  await page.evaluate((hash) => void (location.hash = hash), hash);
}

/** A picture for people; nothing compares it. */
export const picture = (page, name) => page.screenshot({ path: join(SCREENS, `${name}.png`), caret: "initial" });

/** What axe finds that is serious. The page's policy lets nobody add scripts, so it goes in beside it. */
export async function accessibility(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map((one) => ({ id: one.id, impact: one.impact, nodes: one.nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? node.all[0]?.message ?? '')) }))))",
    awaitPromise: true,
  });
  await session.detach();
  return JSON.parse(result.value).filter((one) => one.impact === "serious" || one.impact === "critical");
}

export function equal(is, expected, what = "") {
  const [a, b] = [JSON.stringify(is), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: is ${a}, not ${b}`);
}

/** Types into an editor, in place of what it holds. */
export async function retype(page, text, label) {
  await page.getByRole("textbox", { name: label }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}
