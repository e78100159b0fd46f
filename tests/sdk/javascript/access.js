// Users, permissions and resource tokens, as tests of suite.js.
import assert from "node:assert/strict";
import { PermissionMode } from "@azure/cosmos";

export function addAccess(test, { connect, create, refused }) {
  /** A permission of a user of its own, as it came back. */
  const grant = async (database, name, permission) => {
    const { user } = await database.users.create({ id: name });
    return (await user.permissions.create({ id: "grant", permissionMode: PermissionMode.All, ...permission })).resource;
  };
  /** The container as a client sees it that has nothing but these tokens. */
  const seen = (database, id, options) => connect({ key: undefined, ...options }).database(database.id).container(id);

  test("users and permissions are created, listed, queried, replaced and deleted", async ({ database, items }) => {
    const { user } = await database.users.create({ id: "crud" });
    await refused(409, database.users.create({ id: "crud" }));
    const { resources } = await database.users.query("SELECT * FROM u WHERE u.id = 'crud'").fetchAll();
    assert.deepEqual(resources.map((each) => each.id), ["crud"]);
    const body = { id: "p", permissionMode: PermissionMode.Read, resource: items.url };
    const { resource, permission } = await user.permissions.create(body, { resourceTokenExpirySeconds: 600 });
    assert.match(resource._token, /^type=resource&ver=1&sig=/);
    await refused(400, user.permissions.create({ ...body, id: "q" }, { resourceTokenExpirySeconds: 599 }));
    await refused(409, user.permissions.create({ ...body, id: "q" }));
    const replaced = await permission.replace({ ...body, permissionMode: PermissionMode.All });
    assert.equal(replaced.resource.permissionMode, PermissionMode.All);
    assert.notEqual((await permission.read()).resource._token, resource._token);
    assert.equal((await user.permissions.upsert(body)).statusCode, 200);
    assert.equal((await user.permissions.readAll().fetchAll()).resources.length, 1);
    assert.equal((await permission.delete()).statusCode, 204);
    assert.equal((await user.delete()).statusCode, 204);
    await refused(404, user.read());
  });

  test("a container token opens the container, by name or by feed", async ({ database, items }) => {
    const self = (await items.read()).resource._self;
    const permission = await grant(database, "whole", { resource: self });
    const container = seen(database, "items", { resourceTokens: { [items.url]: permission._token } });
    assert.equal((await container.read()).resource.id, "items");
    await container.items.create({ id: "token", pk: "p" });
    assert.equal((await container.item("token", "p").read()).resource.id, "token");
    const { resources } = await container.items.query("SELECT c.id FROM c WHERE c.id = 'token'").fetchAll();
    assert.deepEqual(resources, [{ id: "token" }]);
    const named = await grant(database, "feed", { resource: items.url });
    const byFeed = seen(database, "items", { permissionFeed: [named] });
    assert.equal((await byFeed.item("token", "p").read()).resource.id, "token");
    assert.equal((await container.item("token", "p").delete()).statusCode, 204);
  });

  test("a token opens no other container and no database", async ({ database, items }) => {
    const other = await create(database, "not-granted", "/pk");
    const permission = await grant(database, "whole-2", { resource: items.url });
    const resourceTokens = { [other.url]: permission._token, [database.url]: permission._token };
    await refused(403, seen(database, "not-granted", { resourceTokens }).read());
    await refused(403, seen(database, "not-granted", { resourceTokens }).items.create({ id: "x", pk: "p" }));
    await refused(403, seen(database, "not-granted", { resourceTokens }).database.read());
  });

  test("a read token reads and does not write", async ({ database, items }) => {
    await items.items.create({ id: "read-only", pk: "p" });
    const { _token } = await grant(database, "reader", { resource: items.url, permissionMode: PermissionMode.Read });
    const container = seen(database, "items", { resourceTokens: { [items.url]: _token } });
    assert.equal((await container.item("read-only", "p").read()).resource.id, "read-only");
    await refused(403, container.items.upsert({ id: "read-only", pk: "p" }));
    await refused(403, container.item("read-only", "p").delete());
    await refused(403, container.delete());
  });

  test("a token for a key opens that key alone", async ({ database, items }) => {
    await items.items.create({ id: "other", pk: "tenant-2" });
    const { _token } = await grant(database, "tenant", { resource: items.url, resourcePartitionKey: ["tenant-1"] });
    const container = seen(database, "items", { resourceTokens: { [items.url]: _token } });
    await container.items.create({ id: "own", pk: "tenant-1" });
    const query = (partitionKey) => container.items.query("SELECT c.id FROM c", { partitionKey }).fetchAll();
    assert.deepEqual((await query("tenant-1")).resources, [{ id: "own" }]);
    const operation = (pk) => [{ operationType: "Upsert", resourceBody: { id: "own", pk } }];
    assert.equal((await container.items.batch(operation("tenant-1"), "tenant-1")).code, 200);
    await refused(403, query("tenant-2"));
    await refused(403, container.items.query("SELECT * FROM c").fetchAll());
    await refused(403, container.item("other", "tenant-2").read());
    await refused(403, container.items.create({ id: "new", pk: "tenant-2" }));
    // This SDK keeps the status of a refused batch to itself.
    await assert.rejects(container.items.batch(operation("tenant-2"), "tenant-2"), /Insufficient permissions/);
  });

  test("a token for an item opens that item alone", async ({ database, items }) => {
    for (const id of ["mine", "yours"]) await items.items.create({ id, pk: "p" });
    const resource = items.item("mine", "p").url;
    const { _token } = await grant(database, "owner", { resource, resourcePartitionKey: ["p"] });
    const resourceTokens = { [resource]: _token, [items.url]: _token };
    const container = seen(database, "items", { resourceTokens });
    assert.equal((await container.item("mine", "p").read()).resource.id, "mine");
    await refused(403, container.item("yours", "p").read());
    await refused(403, container.items.create({ id: "third", pk: "p" }));
    await refused(403, container.items.query("SELECT * FROM c", { partitionKey: "p" }).fetchAll());
    assert.equal((await container.item("mine", "p").delete()).statusCode, 204);
  });
}
