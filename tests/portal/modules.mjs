// Parts of the portal that need no browser: pages of rows, pictures of graphs, quantiles.
import { equal } from "./browser.mjs";

const web = new URL("../../crates/portal/web/", import.meta.url);
const { RowPages } = await import(new URL("api/row-pages.js", web));
const { Picture, ELEMENTS_MAX, ends } = await import(new URL("api/graph.js", web));
const { elementOf, elementsIn, kindOf } = await import(new URL("api/kinds.js", web));
const { exported } = await import(new URL("api/export.js", web));
const { quantile } = await import(new URL("api/metrics.js", web));

export default function modules(test) {
  test("rows far away are let go, and read again by the continuation that they came with", async () => {
    const asked = [];
    const TOTAL = 60_000;
    const pages = new RowPages(async (token, count) => {
      asked.push(token);
      const from = Number(token || 0), to = Math.min(TOTAL, from + count);
      return { rows: Array.from({ length: to - from }, (_, n) => from + n), next: to < TOTAL ? String(to) : "", charge: 1 };
    }, () => {});
    while (!pages.done) await pages.loadMore();
    equal([pages.length, pages.at(TOTAL - 1)], [TOTAL, TOTAL - 1]);
    equal(pages.loaded().length <= 40_000, true, `${pages.loaded().length} rows are kept`);
    equal(pages.at(5), undefined, "let go");
    equal(await pages.read(5), 5, "and back");
    equal(asked.filter((token) => token === "").length, 2);
    pages.remove([0, 5]);
    equal([pages.length, pages.at(0), pages.at(4)], [TOTAL - 2, 1, 6]);
    pages.unshift(-1);
    equal([pages.length, pages.at(0), pages.at(1)], [TOTAL - 1, -1, 1]);
  });

  test("a picture has ghosts for ends that were not read, keeps to its limit and takes back an expansion", async () => {
    const vertex = (id) => ({ id, label: "v", type: "vertex", properties: { name: [{ id: "n", value: `name of ${id}` }] } });
    const edge = (id, from, to) => ({ id, label: "e", type: "edge", outV: from, inV: to, outVLabel: "v", inVLabel: "v" });
    const picture = new Picture();
    picture.add([vertex("a"), edge("1", "a", "b")]);
    equal([picture.nodes.get("b").ghost, picture.nodes.get("a").degree, ends(picture.edges.get("1"))], [true, 1, ["a", "b"]]);
    picture.add({ path: [vertex("b"), [edge("2", "b", "c"), vertex("c")]] }, "b");
    equal([picture.nodes.get("b").ghost, picture.size], [false, 5]);
    equal([picture.collapse("b"), picture.size], [1, 3]);
    const added = picture.add(Array.from({ length: ELEMENTS_MAX }, (_, n) => vertex(`n${n}`)));
    equal([picture.size, added.left], [ELEMENTS_MAX, 3]);
  });

  test("elements are known as Gremlin answers them and as SQL shows their items", async () => {
    const item = { id: "e", label: "knows", _isEdge: true, _vertexId: "a", _sink: "b", since: 2001, _self: "x" };
    equal([elementOf(item).from, elementOf(item).to, elementOf(item).properties], ["a", "b", [["since", [2001]]]]);
    equal([elementOf({ id: "1", label: "no vertex" }), elementOf(7), elementOf(null), elementsIn({ a: [1, "x"] })], [null, null, null, []]);
    equal([kindOf("TablesDB", { id: "people", partitionKey: { paths: ["/'$pk'"] } }), kindOf("TablesDB", { id: "$service", partitionKey: { paths: ["/'$pk'"] } }), kindOf("shop", { id: "c", partitionKey: { paths: ["/$pk"] } })], ["table", "container", "container"]);
  });

  test("an export of many pages has all rows and all columns", async () => {
    async function* pages() {
      yield [{ id: "1", a: 1 }, { id: "2", a: "x,\"y\"" }];
      yield [];
      yield [{ id: "3", b: { c: [true] } }];
    }
    const columnsOf = (rows) => [...new Set(rows.flatMap(Object.keys))].map((name) => ({ name, of: (row) => row[name] }));
    const text = async (kind) => await new Blob(await exported(kind, pages(), { values: (rows) => rows, columnsOf })).text();
    equal((await text("csv")).split("\r\n"), ["id,a,b", "1,1,", '2,"x,""y""",', '3,,"{""c"":[true]}"']);
    equal(JSON.parse(await text("json")).map((one) => one.id), ["1", "2", "3"]);
    equal((await text("ndjson")).trim().split("\n").length, 3);
    async function* nothing() {}
    equal(await new Blob(await exported("json", nothing(), { values: (rows) => rows, columnsOf })).text(), "[]\n");
  });

  test("quantiles lie inside of their buckets", async () => {
    const buckets = new Map([[1, 50], [2, 90], [Infinity, 100]]);
    equal([quantile(buckets, 0.5), quantile(buckets, 0.9), quantile(buckets, 0.99)], [1, 2, 2]);
    equal(Number.isNaN(quantile(new Map([[1, 0]]), 0.5)), true);
  });
}
