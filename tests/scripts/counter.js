// Raises a counter, only if nobody else has changed it since it was read.
function raise(id, by) {
  var collection = getContext().getCollection();
  var link = collection.getAltLink() + '/docs/' + id;
  attempt(3);

  function attempt(left) {
    collection.readDocument(link, function (err, counter) {
      if (err) throw err;
      counter.n += by;
      collection.replaceDocument(counter._self, counter, { etag: counter._etag }, function (err, stored) {
        if (err && err.number === ErrorCodes.PreconditionFailed && left > 0) return attempt(left - 1);
        if (err) throw err;
        if (stored._etag === counter._etag) throw new Error('a new version has a new etag');
        getContext().getResponse().setBody(stored.n);
      });
    });
  }
}
