// Money from one account to another; a caller learns from the substatus why it was refused.
function transfer(from, to, amount) {
  const read = (id) =>
    new Promise((resolve, reject) =>
      __.readDocument(`${__.getAltLink()}/docs/${id}`, {}, (err, item) => (err ? reject(err) : resolve(item))),
    );
  const replace = (item) =>
    new Promise((resolve, reject) =>
      __.replaceDocument(item._self, item, { etag: item._etag }, (err, stored) => (err ? reject(err) : resolve(stored))),
    );
  const main = async () => {
    const [source, target] = await Promise.all([read(from), read(to)]);
    source.balance -= amount;
    target.balance += amount;
    await replace(source);
    await replace(target);
    if (source.balance < 0) throw new Error(4001, 'There is not enough.');
    return { from: source.balance, to: target.balance };
  };
  main().then(
    (done) => getContext().getResponse().setBody(done),
    (err) => getContext().abort(err),
  );
}
