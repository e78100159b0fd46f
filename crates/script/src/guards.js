// What keeps the engine's own loops bounded. QuickJS asks the clock in script code and in regular expressions, but not
// while a built-in walks an object that merely claims to have nine quadrillion elements, nor while it searches one huge
// string for another. Those are refused here, before they start.
(function () {
  'use strict';
  const { apply, ownKeys } = Reflect;
  const define = Object.defineProperty;
  const ELEMENTS_MAX = 20000000;
  const COMPARISONS_MAX = 4000000000;

  const walking = [
    'concat', 'copyWithin', 'every', 'fill', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flat', 'flatMap',
    'forEach', 'includes', 'indexOf', 'join', 'lastIndexOf', 'map', 'reduce', 'reduceRight', 'reverse', 'shift', 'slice',
    'some', 'sort', 'splice', 'toLocaleString', 'toReversed', 'toSorted', 'toSpliced', 'unshift', 'with',
  ];
  for (const name of walking) {
    guard(Array.prototype, name, (self) => {
      if (self !== null && self !== undefined && self.length > ELEMENTS_MAX) {
        throw new RangeError(`Array.prototype.${name} is limited to ${ELEMENTS_MAX} elements`);
      }
    });
  }
  for (const name of ['includes', 'indexOf', 'lastIndexOf', 'replace', 'replaceAll', 'split']) {
    guard(String.prototype, name, (self, wanted) => {
      if (typeof wanted === 'string' && wanted.length > 64 && self && self.length * wanted.length > COMPARISONS_MAX) {
        throw new RangeError(`String.prototype.${name} is limited to shorter strings`);
      }
    });
  }

  function guard(prototype, name, check) {
    const native = prototype[name];
    if (native === undefined) return;
    const guarded = {
      [name](...args) {
        check(this, args[0]);
        return apply(native, this, args);
      },
    }[name];
    define(guarded, 'length', { value: native.length, configurable: true });
    define(prototype, name, { value: guarded, writable: true, configurable: true, enumerable: false });
  }

  // The service's own engine takes a number before the message, and scripts use it to choose a substatus.
  const NativeError = Error;
  function CodedError(code, message) {
    const coded = typeof code === 'number' && arguments.length > 1;
    const error = Reflect.construct(NativeError, coded ? [message] : arguments, new.target || CodedError);
    if (coded) define(error, 'number', { value: code, writable: true, configurable: true, enumerable: false });
    return error;
  }
  for (const key of ownKeys(NativeError)) {
    const descriptor = Object.getOwnPropertyDescriptor(NativeError, key);
    if (key !== 'length' && descriptor.configurable) define(CodedError, key, descriptor);
  }
  define(CodedError, 'prototype', { value: NativeError.prototype, writable: false });
  define(NativeError.prototype, 'constructor', { value: CodedError, writable: true, configurable: true });
  for (const kind of [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
    Object.setPrototypeOf(kind, CodedError);
  }
  define(globalThis, 'Error', { value: CodedError, writable: true, configurable: true, enumerable: false });
})();
