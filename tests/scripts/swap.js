// Two players swap what they carry: both or neither.
function swap(first, second) {
  var context = getContext();
  var collection = context.getCollection();
  var query = {
    query: 'SELECT * FROM players p WHERE p.id IN (@first, @second)',
    parameters: [{ name: '@first', value: first }, { name: '@second', value: second }],
  };
  var accepted = collection.queryDocuments(collection.getSelfLink(), query, {}, function (err, players) {
    if (err) throw new Error('Error' + err.message);
    if (players.length !== 2) throw 'Unable to find both players.';
    var held = players[0].item;
    players[0].item = players[1].item;
    players[1].item = held;
    replace(players[0], function () {
      replace(players[1], function () {
        context.getResponse().setBody('swapped');
      });
    });
  });
  if (!accepted) throw 'Unable to read the players.';

  function replace(player, then) {
    var accepted = collection.replaceDocument(player._self, player, function (err) {
      if (err) throw 'Unable to update a player: ' + err.message;
      then();
    });
    if (!accepted) throw 'Unable to update a player.';
  }
}
