// Figures, not tests: how the portal does with a million items and two thousand elements, in a browser, on this machine as it is now.
//
//   node measure.mjs ENDPOINT DATABASE CONTAINER ROWS      a server that has a large container; then a graph is made beside it
import { browser, open, retype } from "./browser.mjs";
import { ringGraph } from "./apis.mjs";

const [endpoint = "", db = "big", coll = "million", wanted = "100000"] = process.argv.slice(2);
const server = { endpoint };
const ROWS = Number(wanted);
const SCROLL_PX = 900;

/** Times between frames while something is done, in the page itself. */
async function framesWhile(page, work) {
  await page.evaluate(() => {
    const times = (window.frameTimes = []);
    let last = performance.now(), over = false;
    window.stopFrames = () => (over = true);
    const frame = (now) => (times.push(now - last), (last = now), over || requestAnimationFrame(frame));
    requestAnimationFrame(frame);
  });
  await work();
  const times = (await page.evaluate(() => (window.stopFrames(), window.frameTimes))).sort((a, b) => a - b);
  const at = (q) => times[Math.floor(q * (times.length - 1))].toFixed(1);
  return `${times.length} frames, between them p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
}
const heap = async (page) => {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return `${(usedSize / 1e6).toFixed(0)} MB of JavaScript`;
};

// The first page, cold and warm.
for (const round of ["cold", "warm", "warm"]) {
  const page = round === "cold" ? await open(server, "/_explorer/") : globalThis.first;
  if (round !== "cold") await page.reload();
  await page.locator("main h1").first().waitFor();
  const told = await page.evaluate(() => ({ paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime, shown: performance.now(), bytes: performance.getEntriesByType("resource").reduce((sum, one) => sum + one.transferSize, 0) }));
  console.log(`first page, ${round}: painted after ${told.paint?.toFixed(0)} ms, complete before ${told.shown.toFixed(0)} ms, ${(told.bytes / 1024).toFixed(1)} KiB`);
  globalThis.first = page;
}
await globalThis.first.context().close();

// Scrolling through rows.
{
  const page = await open(server, `/_explorer/#/c/${db}/${coll}/items`);
  const grid = page.getByRole("grid");
  await page.getByRole("gridcell").first().waitFor({ timeout: 60_000 });
  const began = performance.now();
  const scroll = () => framesWhile(page, () => page.evaluate(async ([rows, px]) => {
    const grid = document.querySelector(".grid");
    const known = () => Number(grid.getAttribute("aria-rowcount")) - 1;
    while (known() < rows) {
      grid.scrollTop = Math.min(grid.scrollTop + px, grid.scrollHeight);
      if (grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 40) await new Promise((resolve) => setTimeout(resolve, 5));
      await new Promise(requestAnimationFrame);
    }
  }, [ROWS, SCROLL_PX]));
  const frames = await scroll();
  const seconds = (performance.now() - began) / 1000;
  console.log(`${ROWS.toLocaleString("en-US")} rows scrolled in ${seconds.toFixed(1)} s: ${frames}; ${await page.locator(".grid-row").count()} rows drawn, ${await heap(page)}`);
  const back = await framesWhile(page, async () => {
    await grid.evaluate((element) => void (element.scrollTop = 0));
    await page.waitForFunction(() => document.querySelector("#row-0 .grid-cell:nth-child(2)")?.textContent !== "…", null, { timeout: 60_000 });
  });
  console.log(`back to the first row, which was let go: ${back}`);
  await page.context().close();
}

// Two thousand elements.
{
  await ringGraph(server, "measure", "graph", 1000).catch(() => {});
  const page = await open(server, "/_explorer/#/c/measure/graph/graph");
  await page.locator("canvas").waitFor({ timeout: 60_000 });
  await retype(page, "g.V()", "Traversal");
  const settling = await framesWhile(page, async () => {
    await page.keyboard.press("Control+Enter");
    await page.getByText("1,000 vertices, 1,000 edges").waitFor({ timeout: 120_000 });
    await page.waitForTimeout(4000);
  });
  console.log(`2,000 elements while they settle: ${settling}`);
  const box = await page.locator("canvas").boundingBox();
  const moving = await framesWhile(page, async () => {
    await page.mouse.move(box.x + 60, box.y + 60);
    await page.mouse.down();
    for (let n = 0; n < 120; n += 1) await page.mouse.move(box.x + 60 + 2 * n, box.y + 60 + n);
    await page.mouse.up();
    for (let n = 0; n < 30; n += 1) await page.mouse.wheel(0, n % 2 ? 120 : -120);
  });
  console.log(`2,000 elements while they are moved and zoomed: ${moving}; ${await heap(page)}`);
  await page.context().close();
}
await browser.close();
