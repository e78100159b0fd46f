// Before a create: no other item of the partition has the same name.
function uniqueName() {
  var request = getContext().getRequest();
  var item = request.getBody();
  var query = { query: 'SELECT VALUE c.id FROM c WHERE c.name = @name', parameters: [{ name: '@name', value: item.name }] };
  var accepted = __.queryDocuments(__.getSelfLink(), query, function (err, found) {
    if (err) throw err;
    if (found.length > 0) throw new Error(ErrorCodes.Conflict, 'The name ' + item.name + ' is taken.');
  });
  if (!accepted) throw new Error('The query was not accepted.');
}
