// Device readings with @azure/cosmos before version 4, whose majors differ in how answers are unwrapped.

const assert = require("assert").strict;
const { database: name, reading, HOT, count } = require("./readings");

exports.steps = (client, { body, all, procedures, fixed }) => {
    let database, keyed;
    const statusOf = (promise) => promise.then((response) => response.statusCode ?? 200, (error) => error.code);
    return {
        async "a container is divided by its key"() {
            await client.databases.create({ id: name });
            database = client.database(name);
            const partitionKey = { paths: ["/deviceId"], kind: "Hash" };
            await database.containers.create({ id: "keyed", partitionKey }, { offerThroughput: 20000 });
            keyed = database.container("keyed");
            assert.deepEqual(body(await keyed.read()).partitionKey.paths, ["/deviceId"]);
        },

        async "items are written, read, replaced and deleted"() {
            for (let device = 0; device < 20; device += 1) {
                for (let n = 0; n < 5; n += 1) await keyed.items.create(reading(device, n));
            }
            const item = keyed.item("3-2", "device-3");
            const one = body(await item.read());
            assert.equal(one.metricValue, 32);
            assert.equal(body(await item.replace({ ...one, metricValue: 99 })).metricValue, 99);
            await item.delete();
            assert.equal(await statusOf(keyed.item("3-2", "device-3").read()), 404);
        },

        async "a query of one device asks one partition"() {
            const query = "SELECT VALUE c.metricValue FROM c WHERE c.deviceId = @device ORDER BY c.metricValue";
            const spec = { query, parameters: [{ name: "@device", value: "device-7" }] };
            assert.deepEqual(await all(keyed.items.query(spec, { partitionKey: "device-7" })), [70, 71, 72, 73, 74]);
        },

        async "queries go over both partitions"() {
            const options = { enableCrossPartitionQuery: true };
            const found = await all(keyed.items.query(HOT, options));
            assert.deepEqual([found.length, found[0].deviceId, found[0].metricValue], [29, "device-19", 194]);
            assert.deepEqual(await all(keyed.items.query("SELECT VALUE SUM(c.metricValue) FROM c", options)), [9668]);
            assert.equal((await all(keyed.items.readAll({ maxItemCount: 20 }))).length, 99);
        },

        async "a procedure runs under a key"() {
            const scripts = procedures(keyed);
            await scripts.create({ id: "count", body: count });
            assert.equal(body(await scripts.execute("count", "device-7")), 5);
        },

        ...(fixed && { async "a container without a key takes items without one"() {
            await database.containers.create({ id: "fixed" });
            const container = database.container("fixed");
            assert.equal(body(await container.read()).partitionKey, undefined);
            for (let n = 0; n < 10; n += 1) await container.items.create(reading(1, n));
            assert.equal(body(await container.item("1-2").read()).metricValue, 12);
            await container.item("1-2").delete();
            const query = "SELECT VALUE c.metricValue FROM c WHERE c.metricValue > 16 ORDER BY c.metricValue DESC";
            assert.deepEqual(await all(container.items.query(query)), [19, 18, 17]);
        } }),

        async "what was made is deleted"() {
            await database.delete();
            assert.equal(await statusOf(database.read()), 404);
        },
    };
};
