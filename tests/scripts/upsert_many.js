// The same with promises: everything is awaited, and any failure is everybody's.
async function upsertMany(documents) {
  const collection = getContext().getCollection();
  const upsert = (document) =>
    new Promise((resolve, reject) => {
      const accepted = collection.upsertDocument(collection.getSelfLink(), document, (err, stored) =>
        err ? reject(err) : resolve(stored),
      );
      if (!accepted) reject(new Error(ErrorCodes.RequestTimeout, 'out of time'));
    });
  const stored = await Promise.all(documents.map(upsert));
  getContext().getResponse().setBody({
    sum: stored.reduce((sum, { n = 0 }) => sum + n, 0),
    ids: stored.every(({ id, _rid, _etag }) => id?.length > 0 && _rid.length === 24 && _etag.length === 38),
  });
}
