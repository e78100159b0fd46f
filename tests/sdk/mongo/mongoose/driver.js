// The Node driver itself, which Mongoose brings along: a shop's stock and orders, as programs without schemas write
// them. `cases` of a database; each is one test, named by the sentence it proves.
const assert = require("node:assert");

module.exports = (driver, db) => ({
  async "the driver: values keep their types"() {
    const { Long, Decimal128, Double, Int32, Binary, ObjectId, Timestamp, MinKey, MaxKey, BSONRegExp, UUID } = driver;
    const types = db.collection("types");
    const document = {
      _id: new ObjectId(), int: new Int32(5), long: Long.fromNumber(5), double: new Double(5), decimal: Decimal128.fromString("5.00"),
      date: new Date(0), text: "5", flag: true, nothing: null, list: [1, "a", { b: 2 }], bytes: new Binary(Buffer.from([0, 255])),
      uuid: new UUID(), stamp: new Timestamp({ t: 5, i: 6 }), least: new MinKey(), most: new MaxKey(), pattern: new BSONRegExp("^a", "i"),
    };
    await types.insertOne(document);
    const found = await types.findOne({ _id: document._id }, { promoteValues: false, bsonRegExp: true });
    for (const [name, value] of Object.entries(document)) {
      assert.strictEqual(found[name]?._bsontype ?? typeof found[name], value?._bsontype ?? found[name]?._bsontype ?? typeof value, name);
    }
    assert.strictEqual(found.decimal.toString(), "5.00");
    assert.strictEqual(await types.countDocuments({ int: 5, long: 5, double: 5, decimal: 5 }), 1);
    for (const [name, kind] of [["int", "int"], ["long", "long"], ["double", "double"], ["decimal", "decimal"], ["date", "date"]]) {
      assert.strictEqual(await types.countDocuments({ [name]: { $type: kind } }), 1, name);
    }
  },

  async "the driver: many writes go at once, and the ones that fail are told"() {
    const stock = db.collection("stock");
    await stock.createIndex({ sku: 1 }, { unique: true });
    const result = await stock.bulkWrite([
      { insertOne: { document: { sku: "a", n: 1 } } },
      { updateOne: { filter: { sku: "b" }, update: { $setOnInsert: { n: 2 } }, upsert: true } },
      { updateMany: { filter: {}, update: { $inc: { n: 10 } } } },
      { deleteOne: { filter: { sku: "none" } } },
    ]);
    assert.deepStrictEqual([result.insertedCount, result.upsertedCount, result.modifiedCount, result.deletedCount], [1, 1, 2, 0]);
    const refused = stock.insertMany([{ sku: "c" }, { sku: "a" }, { sku: "d" }], { ordered: false });
    await assert.rejects(refused, (error) => {
      assert.strictEqual(error.code, 11000);
      assert.deepStrictEqual(error.writeErrors.map((one) => one.index), [1]);
      return true;
    });
    assert.strictEqual(await stock.countDocuments(), 4);
  },

  async "the driver: pages go on where they were, in the order of dates, ids and numbers"() {
    const orders = db.collection("orders");
    const all = Array.from({ length: 300 }, (_, n) => ({ n, at: new Date(1e12 + n * 1000), city: n % 3 ? "Ulm" : "Oslo", total: n * 2 }));
    await orders.insertMany(all);
    const latest = await orders.find({ city: "Ulm", at: { $gte: new Date(1e12 + 100_000) } }).sort({ at: -1 }).limit(3).toArray();
    assert.deepStrictEqual(latest.map((order) => order.n), [299, 298, 296]);
    let [seen, last] = [[], undefined];
    for (;;) {
      const page = await orders.find(last ? { _id: { $gt: last } } : {}).sort({ _id: 1 }).limit(70).toArray();
      if (!page.length) break;
      seen.push(...page.map((order) => order.n));
      last = page[page.length - 1]._id;
    }
    assert.deepStrictEqual(seen, all.map((order) => order.n));
    const cursor = orders.find().sort({ total: -1 }).batchSize(50);
    let before = Infinity;
    for await (const order of cursor) {
      assert.ok(order.total < before);
      before = order.total;
    }
  },

  async "the driver: groups and counts are those of the documents"() {
    const orders = db.collection("orders");
    const groups = await orders
      .aggregate([{ $match: { n: { $lt: 90 } } }, { $group: { _id: "$city", n: { $sum: 1 }, sum: { $sum: "$total" }, mean: { $avg: "$total" }, most: { $max: "$at" } } }, { $sort: { _id: 1 } }])
      .toArray();
    assert.deepStrictEqual(groups, [
      { _id: "Oslo", n: 30, sum: 2610, mean: 87, most: new Date(1e12 + 87_000) },
      { _id: "Ulm", n: 60, sum: 5400, mean: 90, most: new Date(1e12 + 89_000) },
    ]);
    assert.strictEqual(await orders.countDocuments({ city: "Oslo" }), 100);
    await orders.updateOne({ n: 0 }, { $set: { city: ["Oslo", "Ulm"] } });
    assert.strictEqual(await orders.countDocuments({ city: "Ulm" }), 201);
    assert.deepStrictEqual((await orders.distinct("city")).sort(), ["Oslo", "Ulm"]);
  },

  async "the driver: files are kept in pieces"() {
    const bucket = new driver.GridFSBucket(db, { chunkSizeBytes: 1000 });
    const bytes = Buffer.from(Array.from({ length: 5500 }, (_, n) => n % 251));
    const upload = bucket.openUploadStream("blob", { metadata: { kind: "test" } });
    await new Promise((resolve, reject) => upload.once("finish", resolve).once("error", reject).end(bytes));
    const parts = [];
    for await (const part of bucket.openDownloadStreamByName("blob", { start: 900, end: 4100 })) parts.push(part);
    assert.deepStrictEqual(Buffer.concat(parts), bytes.subarray(900, 4100));
    await bucket.delete(upload.id);
    await assert.rejects(bucket.openDownloadStreamByName("blob").toArray(), /FileNotFound/);
  },
});
