// Procedures, triggers and functions, with the SDK's own calls.
import assert from "node:assert/strict";

/** Adds the cases about scripts to the suite. */
export function addScripts(test, { refused }) {
  test("a procedure is created, read, replaced, executed, listed and deleted", async ({ items }) => {
    const body = "function (a, b) { getContext().getResponse().setBody(a + b); }";
    const created = await items.scripts.storedProcedures.create({ id: "sum", body });
    assert.equal(created.statusCode, 201);
    const procedure = items.scripts.storedProcedure("sum");
    assert.equal((await procedure.execute("a", [1, 2])).resource, 3);
    await procedure.replace({ id: "sum", body: body.replace("a + b", "a - b") });
    assert.equal((await procedure.execute("a", [1, 2])).resource, -1);
    assert.equal((await procedure.read()).resource._rid, created.resource._rid);
    const { resources } = await items.scripts.storedProcedures.readAll().fetchAll();
    assert.ok(resources.some((each) => each.id === "sum"));
    const query = { query: "SELECT * FROM s WHERE s.id = @id", parameters: [{ name: "@id", value: "sum" }] };
    assert.equal((await items.scripts.storedProcedures.query(query).fetchAll()).resources.length, 1);
    await refused(409, items.scripts.storedProcedures.create({ id: "sum", body }));
    await procedure.delete();
    await refused(404, procedure.execute("a", []));
  });

  test("a procedure commits everything or nothing", async ({ items }) => {
    const body = function (documents) {
      const collection = getContext().getCollection();
      let count = 0;
      for (const document of documents) {
        collection.createDocument(collection.getSelfLink(), document, (error) => {
          if (error) throw error;
          getContext().getResponse().setBody(++count);
        });
      }
    };
    await items.scripts.storedProcedures.create({ id: "import", body });
    const procedure = items.scripts.storedProcedure("import");
    const documents = ["s1", "s2", "s3"].map((id) => ({ id, pk: "scripts" }));
    assert.equal((await procedure.execute("scripts", [documents])).resource, 3);
    const error = await refused(400, procedure.execute("scripts", [[{ id: "s4", pk: "scripts" }, documents[0]]]));
    assert.equal(String(error.substatus), "409");
    await refused(404, items.item("s4", "scripts").read());
  });

  test("the console comes back when it is asked for", async ({ items }) => {
    await items.scripts.storedProcedures.create({ id: "talk", body: "function () { console.log('a b/%s', 'ü'); }" });
    const procedure = items.scripts.storedProcedure("talk");
    const logged = await procedure.execute("a", [], { enableScriptLogging: true });
    assert.equal(decodeURIComponent(logged.headers["x-ms-documentdb-script-log-results"]), "a b/ü");
    assert.equal((await procedure.execute("a", [])).headers["x-ms-documentdb-script-log-results"], undefined);
  });

  test("triggers change what is written and count it", async ({ items }) => {
    const stamp = "function () { var r = getContext().getRequest(); var d = r.getBody(); d.stamp = true; r.setBody(d); }";
    await items.scripts.triggers.create({ id: "stamp", body: stamp, triggerType: "Pre", triggerOperation: "All" });
    const refuse = "function () { throw new Error('no ' + getContext().getResponse().getBody().id); }";
    await items.scripts.triggers.create({ id: "refuse", body: refuse, triggerType: "Post", triggerOperation: "Create" });
    const item = { id: "triggered", pk: "triggers" };
    const { resource } = await items.items.create(item, { preTriggerInclude: ["stamp"] });
    assert.equal(resource.stamp, true);
    await refused(400, items.items.create({ ...item, id: "x" }, { postTriggerInclude: ["refuse"] }));
    await refused(404, items.item("x", "triggers").read());
    await refused(400, items.items.upsert(item, { preTriggerInclude: ["refuse"] }));
  });

  test("functions are called by queries", async ({ items }) => {
    await items.scripts.userDefinedFunctions.create({ id: "double", body: "function (n) { return n * 2; }" });
    await items.items.create({ id: "f1", pk: "functions", n: 21 });
    const query = "SELECT VALUE udf.double(c.n) FROM c WHERE udf.double(c.n) = 42";
    const { resources } = await items.items.query(query, { partitionKey: "functions" }).fetchAll();
    assert.deepEqual(resources, [42]);
  });
}
