// Client-side encryption (Always Encrypted), as tests of suite.js. The server keeps wrapped keys and ciphertext; the key that
// wraps is this program's own.
import assert from "node:assert/strict";
import { constants, generateKeyPairSync, privateDecrypt, publicEncrypt } from "node:crypto";
import { EncryptionAlgorithm, EncryptionQueryBuilder, EncryptionType, KeyEncryptionAlgorithm } from "@azure/cosmos";

const RESOLVER = "LOCAL";

/** Wraps keys with one RSA key for each name. */
class LocalKeys {
  encryptionKeyResolverName = RESOLVER;
  #pairs = new Map();

  #pair(name) {
    if (!this.#pairs.has(name)) this.#pairs.set(name, generateKeyPairSync("rsa", { modulusLength: 2048 }));
    return this.#pairs.get(name);
  }

  async wrapKey(name, _algorithm, key) {
    return publicEncrypt({ key: this.#pair(name).publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING }, key);
  }

  async unwrapKey(name, _algorithm, wrapped) {
    return privateDecrypt({ key: this.#pair(name).privateKey, padding: constants.RSA_PKCS1_OAEP_PADDING }, wrapped);
  }
}

export function addEncryption(test, { connect, refused }) {
  const wrappedBy = (value) => ({ type: RESOLVER, name: value, value, algorithm: KeyEncryptionAlgorithm.RSA_OAEP });

  test("members are encrypted by the client, found by their value and unreadable without the key", async ({ database }) => {
    const client = connect({ clientEncryptionOptions: { keyEncryptionKeyResolver: new LocalKeys() } });
    const encrypting = client.database(database.id);
    const algorithm = EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256;
    await encrypting.createClientEncryptionKey("key", algorithm, wrappedBy("first"));
    await refused(409, encrypting.createClientEncryptionKey("key", algorithm, wrappedBy("first")));
    const { resource: before } = await encrypting.readClientEncryptionKey("key");
    assert.equal(before.id, "key");

    const path = (name, encryptionType) =>
      ({ path: name, clientEncryptionKeyId: "key", encryptionType, encryptionAlgorithm: algorithm });
    const { container } = await encrypting.containers.create({
      id: "encrypted",
      partitionKey: { paths: ["/pk"], version: 2 },
      clientEncryptionPolicy: {
        policyFormatVersion: 2,
        includedPaths: [path("/name", EncryptionType.DETERMINISTIC), path("/secret", EncryptionType.RANDOMIZED)],
      },
    });
    const item = { id: "1", pk: "p", name: "ada", secret: { list: [1, true, "x"] }, open: 7 };
    await container.items.create(item);
    const { resource: read } = await container.item("1", "p").read();
    assert.deepEqual([read.name, read.secret, read.open], [item.name, item.secret, item.open]);
    const { resource: raw } = await database.container("encrypted").item("1", "p").read();
    assert.equal(raw.open, 7);
    assert.notEqual(raw.name, "ada");
    assert.ok(!JSON.stringify(raw).includes("ada"));

    const query = new EncryptionQueryBuilder("SELECT * FROM c WHERE c.name = @name");
    query.addParameter("@name", "ada", "/name");
    const { resources } = await (await container.items.getEncryptionQueryIterator(query)).fetchAll();
    assert.deepEqual(resources.map((each) => each.name), ["ada"]);

    await encrypting.rewrapClientEncryptionKey("key", wrappedBy("second"));
    const { resource: after } = await encrypting.readClientEncryptionKey("key");
    assert.notDeepEqual(after.wrappedDataEncryptionKey, before.wrappedDataEncryptionKey);
    const { resource: again } = await container.item("1", "p").read();
    assert.equal(again.name, "ada");
  });
}
