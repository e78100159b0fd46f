// One page in an order of its own, and whether there is another.
function page(size, continuation) {
  var options = { pageSize: size, continuation: continuation || undefined };
  var accepted = __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c ORDER BY c.price', options, (err, found, more) => {
    if (err) throw err;
    __.response.setBody({ prices: found.map((item) => item.price), more: more.continuation !== undefined });
  });
  if (!accepted) throw new Error('The query was not accepted.');
}
