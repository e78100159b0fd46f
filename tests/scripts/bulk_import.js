// Creates as many documents as there is time for and answers how many; the caller sends the rest again.
function bulkImport(docs) {
  var collection = getContext().getCollection();
  var link = collection.getSelfLink();
  var count = 0;
  if (!docs) throw new Error('The array of documents is undefined.');
  if (docs.length === 0) return getContext().getResponse().setBody(0);
  tryCreate(docs[count], created);

  function tryCreate(doc, callback) {
    var accepted = collection.createDocument(link, doc, callback);
    if (!accepted) getContext().getResponse().setBody(count);
  }

  function created(err) {
    if (err) throw err;
    count++;
    if (count >= docs.length) getContext().getResponse().setBody(count);
    else tryCreate(docs[count], created);
  }
}
