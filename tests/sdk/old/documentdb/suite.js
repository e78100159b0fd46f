// Device readings with documentdb 1.15, the first Node client: callbacks and links.

require("./node-https");
const assert = require("assert").strict;
const { Readable } = require("stream");
const { promisify } = require("util");
const { DocumentClient, DocumentBase } = require("documentdb");
const { database, reading, HOT, count, run } = require("./readings");

const policy = new DocumentBase.ConnectionPolicy();
policy.DisableSSLVerification = true;
policy.MediaReadMode = "Buffered";
const client = new DocumentClient(process.env.COSMOS_ENDPOINT, { masterKey: process.env.COSMOS_KEY }, policy);
const call = (method, ...rest) => promisify(client[method]).call(client, ...rest);
const all = (iterator) => promisify(iterator.toArray).call(iterator);
const statusOf = (...rest) => call(...rest).then(() => 200, (error) => error.code);

const link = `dbs/${database}`;
const fixed = `${link}/colls/fixed`;
const keyed = `${link}/colls/keyed`;

run({
    async "a collection without a key has none"() {
        await call("createDatabase", { id: database });
        const created = await call("createCollection", link, { id: "fixed" }, { offerType: "S2" });
        assert.equal(created.partitionKey, undefined);
        const [offer] = await all(client.queryOffers(`SELECT * FROM o WHERE o.resource = '${created._self}'`));
        assert.equal(offer.offerType, "S2");
    },

    async "its documents need no key"() {
        for (let n = 0; n < 10; n += 1) await call("createDocument", fixed, reading(1, n));
        const one = await call("readDocument", `${fixed}/docs/1-2`);
        assert.equal((await call("replaceDocument", one._self, { ...one, metricValue: 99 })).metricValue, 99);
        const hot = "SELECT VALUE c.metricValue FROM c WHERE c.metricValue > 17 ORDER BY c.metricValue DESC";
        assert.deepEqual(await all(client.queryDocuments(fixed, hot)), [99, 19, 18]);
        await call("deleteDocument", one._self);
        assert.equal(await statusOf("readDocument", one._self), 404);
        const procedure = await call("createStoredProcedure", fixed, { id: "count", body: count });
        assert.equal(await call("executeStoredProcedure", procedure._self, []), 9);
    },

    async "a partitioned collection routes by its key"() {
        const partitionKey = { paths: ["/deviceId"], kind: "Hash" };
        await call("createCollection", link, { id: "keyed", partitionKey }, { offerThroughput: 20000 });
        for (let device = 0; device < 20; device += 1) {
            for (let n = 0; n < 5; n += 1) await call("createDocument", keyed, reading(device, n));
        }
        const options = { partitionKey: "device-3" };
        const one = await call("readDocument", `${keyed}/docs/3-2`, options);
        assert.equal((await call("replaceDocument", one._self, { ...one, metricValue: 99 }, options)).metricValue, 99);
        await call("deleteDocument", one._self, options);
        assert.equal(await statusOf("readDocument", one._self, options), 404);
        const procedure = await call("createStoredProcedure", keyed, { id: "count", body: count });
        assert.equal(await call("executeStoredProcedure", procedure._self, [], { partitionKey: "device-7" }), 5);
    },

    async "queries go over both partitions"() {
        const found = await all(client.queryDocuments(keyed, HOT, { enableCrossPartitionQuery: true }));
        assert.deepEqual([found.length, found[0].deviceId, found[0].metricValue], [29, "device-19", 194]);
        const sum = "SELECT VALUE SUM(c.metricValue) FROM c";
        assert.deepEqual(await all(client.queryDocuments(keyed, sum, { enableCrossPartitionQuery: true })), [9668]);
    },

    async "attachments are kept with their document"() {
        const document = `${fixed}/docs/1-4`;
        const manual = { id: "manual", contentType: "text/html", media: "http://example.com/m" };
        const made = await call("createAttachment", document, manual);
        assert.equal((await call("readAttachment", made._self)).media, manual.media);
        const plain = { slug: "photo", contentType: "text/plain" };
        const photo = await call("createAttachmentAndUploadMedia", document, Readable.from(["first"]), plain);
        assert.equal(String(await call("readMedia", photo.media)), "first");
        await call("updateMedia", photo.media, Readable.from(["second"]), plain);
        assert.equal(String(await call("readMedia", photo.media)), "second");
        const listed = await all(client.readAttachments(document));
        assert.deepEqual(listed.map((found) => found.id).sort(), ["manual", "photo"]);
        await call("deleteAttachment", made._self);
        assert.equal(await statusOf("readAttachment", made._self), 404);
    },

    async "what was made is deleted"() {
        await call("deleteDatabase", link);
        assert.equal(await statusOf("readDatabase", link), 404);
    },
});
