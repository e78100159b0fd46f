// Mongoose, unmodified, against a running server: schemas, validation, population, middleware, versions; and the Node
// driver below it (`driver.js`).
//
//     COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] node suite.js [WORD]
//
// Every member of `cases` is one test, named by the sentence it proves. The last line is `N passed, N failed`.
const assert = require("node:assert");
const crypto = require("node:crypto");
const mongoose = require("mongoose");

const ENDPOINT = new URL(process.env.COSMOS_ENDPOINT);
const DATABASE = "mongoose" + crypto.randomUUID().slice(0, 8);
const ADDRESS = `mongodb://orrery:${encodeURIComponent(process.env.COSMOS_KEY)}@${ENDPOINT.host}/${DATABASE}?authSource=admin&replicaSet=globaldb`;
const OPTIONS = { serverSelectionTimeoutMS: 10_000 };
if (process.env.COSMOS_CA_FILE) Object.assign(OPTIONS, { tls: true, tlsCAFile: process.env.COSMOS_CA_FILE });

const authorSchema = new mongoose.Schema({
  name: { type: String, required: true, trim: true },
  mail: { type: String, lowercase: true, unique: true },
  born: Date,
});
const bookSchema = new mongoose.Schema(
  {
    title: { type: String, required: true, index: true },
    author: { type: mongoose.Schema.Types.ObjectId, ref: "Author" },
    price: { type: Number, min: 0 },
    tags: [String],
    reviews: [{ stars: Number, text: String }],
    meta: { type: Map, of: String },
  },
  { timestamps: true, optimisticConcurrency: true },
);
bookSchema.virtual("label").get(function label() {
  return `${this.title} (${this.price})`;
});
bookSchema.index({ author: 1, price: -1 });

const Author = mongoose.model("Author", authorSchema);
const Book = mongoose.model("Book", bookSchema);

const cases = {
  async "documents are saved, found and populated"() {
    const ada = await Author.create({ name: "  Ada ", mail: "ADA@example.org", born: new Date("1815-12-10") });
    assert.deepStrictEqual([ada.name, ada.mail], ["Ada", "ada@example.org"]);
    const book = new Book({ title: "Notes", author: ada._id, price: 12.5, tags: ["maths"], meta: { shelf: "A" } });
    await book.save();
    const found = await Book.findOne({ title: /^no/i }).populate("author");
    assert.deepStrictEqual([found.author.name, found.label, found.meta.get("shelf")], ["Ada", "Notes (12.5)", "A"]);
    assert.ok(found.createdAt instanceof Date);
  },

  async "what a schema forbids is not written"() {
    await assert.rejects(Book.create({ price: 1 }), mongoose.Error.ValidationError);
    await assert.rejects(Book.create({ title: "x", price: -1 }), mongoose.Error.ValidationError);
    assert.strictEqual(await Book.countDocuments({ price: -1 }), 0);
  },

  async "an index of a schema keeps values unique"() {
    await Author.init();
    await Author.create({ name: "Grace", mail: "grace@example.org" });
    await assert.rejects(Author.create({ name: "Other", mail: "grace@example.org" }), { code: 11000 });
  },

  async "arrays inside of documents are changed where they are"() {
    const book = await Book.create({ title: "Reviews", price: 3, reviews: [{ stars: 1, text: "bad" }] });
    book.reviews.push({ stars: 5, text: "good" });
    book.reviews[0].stars = 2;
    book.tags.addToSet("new");
    await book.save();
    await Book.updateOne({ _id: book._id, "reviews.text": "good" }, { $set: { "reviews.$.stars": 4 } });
    const found = await Book.findById(book._id).lean();
    assert.deepStrictEqual(found.reviews.map((review) => review.stars), [2, 4]);
    assert.deepStrictEqual(found.tags, ["new"]);
  },

  async "an old version is not saved"() {
    const book = await Book.create({ title: "Versions", price: 1 });
    const [one, other] = [await Book.findById(book._id), await Book.findById(book._id)];
    one.price = 2;
    await one.save();
    other.price = 3;
    await assert.rejects(other.save(), mongoose.Error.VersionError);
  },

  async "queries are chained"() {
    await Book.insertMany([1, 2, 3, 4, 5].map((price) => ({ title: `Chain ${price}`, price, tags: price % 2 ? ["odd"] : [] })));
    const found = await Book.find({ title: /^Chain/ }).where("price").gt(1).in("tags", ["odd"]).sort("-price").select("price -_id").lean();
    assert.deepStrictEqual(found, [{ price: 5 }, { price: 3 }]);
    assert.deepStrictEqual((await Book.distinct("tags", { title: /^Chain/ })).sort(), ["odd"]);
    const updated = await Book.findOneAndUpdate({ title: "Chain 1" }, { $inc: { price: 10 } }, { returnDocument: "after" });
    assert.strictEqual(updated.price, 11);
    let seen = 0;
    for await (const book of Book.find({ title: /^Chain/ }).cursor({ batchSize: 2 })) seen += book.price > 0 ? 1 : 0;
    assert.strictEqual(seen, 5);
  },

  async "a pipeline adds up"() {
    await Book.insertMany([{ title: "Sum a", price: 2, tags: ["x", "y"] }, { title: "Sum b", price: 3, tags: ["y"] }]);
    const sums = await Book.aggregate()
      .match({ title: /^Sum/ })
      .unwind("tags")
      .group({ _id: "$tags", total: { $sum: "$price" } })
      .sort("_id");
    assert.deepStrictEqual(sums, [{ _id: "x", total: 2 }, { _id: "y", total: 5 }]);
  },

  async "a transaction is all or nothing"() {
    const [from, to] = await Book.create([{ title: "From", price: 10 }, { title: "To", price: 0 }], { ordered: true });
    const move = (fail) =>
      mongoose.connection.transaction(async (session) => {
        await Book.updateOne({ _id: from._id }, { $inc: { price: -4 } }, { session });
        await Book.updateOne({ _id: to._id }, { $inc: { price: 4 } }, { session });
        if (fail) throw new Error("changed my mind");
      });
    await assert.rejects(move(true), /changed my mind/);
    await move(false);
    const prices = await Book.find({ _id: [from._id, to._id] }).sort("title").distinct("price");
    assert.deepStrictEqual(prices.sort((a, b) => a - b), [4, 6]);
  },

  async "a change stream tells of changes"() {
    const stream = Book.watch([], { fullDocument: "updateLookup" });
    const change = new Promise((resolve, reject) => {
      stream.once("change", resolve);
      stream.once("error", reject);
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    await Book.create({ title: "Watched", price: 1 });
    const event = await change;
    assert.deepStrictEqual([event.operationType, event.fullDocument.title], ["insert", "Watched"]);
    await stream.close();
  },
};

async function main() {
  await mongoose.connect(ADDRESS, OPTIONS);
  await Promise.all([Author.init(), Book.init()]);
  let [passed, failed] = [0, 0];
  const driverCases = require("./driver.js")(mongoose.mongo, mongoose.connection.db);
  for (const [name, body] of Object.entries({ ...cases, ...driverCases })) {
    if (process.argv[2] && !name.includes(process.argv[2])) continue;
    try {
      await body();
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack}`);
    }
  }
  await mongoose.connection.dropDatabase();
  await mongoose.disconnect();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
