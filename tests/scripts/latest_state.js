// Exactly one reading of a device is marked as its latest.
function markLatest(device) {
  const collection = getContext().getCollection();
  const query = {
    query: 'SELECT * FROM r WHERE r.device = @device ORDER BY r.at DESC',
    parameters: [{ name: '@device', value: device }],
  };
  let changed = 0;
  collection.queryDocuments(collection.getSelfLink(), query, (err, readings) => {
    if (err) throw err;
    if (readings.length === 0) throw new Error(1404, `The device ${device} has no readings.`);
    const stale = readings.filter((reading, place) => reading.latest !== (place === 0));
    const finish = () => getContext().getResponse().setBody({ latest: readings[0].id, changed });
    if (stale.length === 0) return finish();
    for (const reading of stale) {
      const wanted = { ...reading, latest: reading === readings[0] };
      collection.replaceDocument(reading._self, wanted, (err) => {
        if (err) throw err;
        if (++changed === stale.length) finish();
      });
    }
  });
}
