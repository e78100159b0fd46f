// Deletes what a query finds, page after page, and says whether there is more to do.
function bulkDelete(query) {
  var collection = getContext().getCollection();
  var link = collection.getSelfLink();
  var response = getContext().getResponse();
  var body = { deleted: 0, continuation: true };
  next();

  function next(continuation) {
    var options = { continuation: continuation, pageSize: 3 };
    var accepted = collection.queryDocuments(link, query, options, function (err, found, more) {
      if (err) throw err;
      if (found.length > 0) remove(found);
      else if (more.continuation) next(more.continuation);
      else {
        body.continuation = false;
        response.setBody(body);
      }
    });
    if (!accepted) response.setBody(body);
  }

  function remove(found) {
    if (found.length === 0) return next();
    var accepted = collection.deleteDocument(found[0]._self, {}, function (err) {
      if (err) throw err;
      body.deleted++;
      found.shift();
      remove(found);
    });
    if (!accepted) response.setBody(body);
  }
}
