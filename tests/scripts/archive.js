// The query API: what is old is marked, what is not is summed up.
function archive(before) {
  const result = __.filter((item) => item.year < before, (err, old) => {
    if (err) throw err;
    let left = old.length;
    for (const item of old) {
      item.archived = true;
      __.replaceDocument(item._self, item, (err) => {
        if (err) throw err;
        if (--left === 0) rest(old.map(({ id }) => id));
      });
    }
  });
  if (!result.isAccepted) throw new Error('The call was not accepted.');

  function rest(archived) {
    __.chain()
      .filter((item) => !item.archived)
      .sortBy((item) => item.year)
      .pluck('tags')
      .flatten()
      .value((err, tags) => {
        if (err) throw err;
        __.response.setBody({ archived, tags });
      });
  }
}
