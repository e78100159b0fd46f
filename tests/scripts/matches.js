function (text, pattern) {
  return text === undefined ? undefined : text.match(pattern) !== null;
}
