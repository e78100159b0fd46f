// An order and its lines as one, in the partition that the caller names: a line of another one undoes everything.
function createOrder(order, lines) {
  var collection = getContext().getCollection();
  var link = collection.getSelfLink();
  var left = lines.length + 1;
  [order].concat(lines).forEach(function (item) {
    var accepted = collection.createDocument(link, item, function (err) {
      if (err) throw err;
      if (--left === 0) getContext().getResponse().setBody(lines.length);
    });
    if (!accepted) throw new Error('The order is too large.');
  });
}
