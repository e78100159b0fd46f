// After a create: an item of the partition counts the others.
function updateMetadata() {
  var context = getContext();
  var collection = context.getCollection();
  var created = context.getResponse().getBody();
  var query = 'SELECT * FROM root r WHERE r.id = "_metadata"';
  var accepted = collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
    if (err) throw new Error('Error' + err.message);
    if (found.length !== 1) throw 'Unable to find the metadata.';
    var metadata = found[0];
    metadata.created += 1;
    metadata.names += ' ' + created.id;
    var accepted = collection.replaceDocument(metadata._self, metadata, function (err) {
      if (err) throw 'Unable to update the metadata.';
    });
    if (!accepted) throw 'Unable to update the metadata.';
  });
  if (!accepted) throw 'Unable to update the metadata.';
}
