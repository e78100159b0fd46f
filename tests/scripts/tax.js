// Brackets of a tax.
function tax(income) {
  if (income === undefined) return undefined;
  if (typeof income !== 'number') throw new Error('not an income');
  return income < 1000 ? income * 0.1 : income * 0.2;
}
