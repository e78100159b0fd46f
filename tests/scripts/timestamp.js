// Before a create: the server's time and the kind of operation are written into the item.
function stamp() {
  const request = getContext().getRequest();
  const item = request.getBody();
  item.stamped = typeof new Date().getTime() === 'number';
  item.operation = request.getOperationType();
  request.setBody(item);
}
