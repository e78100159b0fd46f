// Makes the portal's vendored modules: node make.mjs SOURCES OUT, in a directory where the packages are installed.
// Modules that share code import it from a common chunk, so that nothing is loaded twice.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [sources, out] = process.argv.slice(2).map((path) => resolve(path));
const { build } = await import(pathToFileURL(resolve("node_modules/esbuild/lib/main.js")).href);

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const modules = readdirSync(join(sources, "modules")).sort();
await build({
  entryPoints: modules.map((name) => join(sources, "modules", name)),
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  chunkNames: "shared-[hash]",
  nodePaths: [resolve("node_modules")],
});
copyFileSync("node_modules/uplot/dist/uPlot.min.css", join(out, "uplot.css"));

// The licence of every package that went in.
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
let notice = "The modules in this directory are made from these packages (cargo xtask portal vendor).\n";
for (const [path, entry] of Object.entries(lock.packages)) {
  if (!path || entry.dev || entry.optional) continue;
  const name = path.replace(/^.*node_modules\//, "");
  const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE"].map((file) => join(path, file)).find((file) => existsSync(file));
  notice += `\n${"=".repeat(100)}\n${name} ${entry.version} (${entry.license})\n\n`;
  notice += file ? `${readFileSync(file, "utf8").trim()}\n` : `${entry.license}\n`;
}
writeFileSync(join(out, "NOTICE.txt"), notice.replace(/[ \t]+$/gm, ""));

const names = readdirSync(out).sort();
const hash = (name) => createHash("sha256").update(readFileSync(join(out, name))).digest("hex");
writeFileSync(join(out, "hashes.txt"), names.map((name) => `${hash(name)}  ${name}\n`).join(""));
