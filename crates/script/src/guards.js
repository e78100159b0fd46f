// What keeps the engine's own loops bounded. QuickJS asks the clock in script code and in regular expressions, but not
// while a built-in walks an object that merely claims to have nine quadrillion elements, nor while it searches one huge
// string for another. Those are refused here, before they start, or done where the clock is asked. Evaluates to a function
// that takes the host's way to write plain data as JSON.
(function (write) {
  'use strict';
  const { apply, ownKeys } = Reflect;
  const { isArray } = Array;
  const define = Object.defineProperty;
  const ELEMENTS_MAX = 20000000;
  const COMPARISONS_MAX = 1000000000;

  const walking = [
    'copyWithin', 'every', 'fill', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flatMap',
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
      if (typeof wanted === 'string' && wanted.length > 32 && self && self.length * wanted.length > COMPARISONS_MAX) {
        throw new RangeError(`String.prototype.${name} is limited to shorter strings`);
      }
    });
  }

  guard(Array.prototype, 'concat', (self, ...others) => {
    let elements = 0;
    for (const list of [self, ...others]) if (isArray(list)) elements += list.length;
    if (elements > ELEMENTS_MAX) throw new RangeError(`Array.prototype.concat is limited to ${ELEMENTS_MAX} elements`);
  });
  guard(String, 'raw', (self, template) => {
    if (template && template.raw && template.raw.length > ELEMENTS_MAX) {
      throw new RangeError(`String.raw is limited to ${ELEMENTS_MAX} pieces`);
    }
  });
  guard(Iterator.prototype, 'drop', (self, limit) => {
    if (Number(limit) > ELEMENTS_MAX) throw new RangeError(`Iterator.prototype.drop is limited to ${ELEMENTS_MAX}`);
  });
  // Marks are sorted by exchanging neighbours.
  const marks = /\p{M}{2000}/u;
  const { test } = RegExp.prototype;
  guard(String.prototype, 'normalize', (self) => {
    if (self !== null && self !== undefined && apply(test, marks, [self])) {
      throw new RangeError('String.prototype.normalize is limited to 2000 marks in a row');
    }
  });

  // Lists that share their elements are short in memory and endless to walk. So these two walk in script code, where the
  // clock is asked; or where the steps are counted, if it is plain data that is to be written.
  replace(Array.prototype, 'flat', {
    flat(depth) {
      const levels = depth === undefined ? 1 : Math.trunc(Number(depth)) || 0;
      const out = [];
      const walk = (list, left) => {
        const length = list.length;
        if (length > ELEMENTS_MAX) throw new RangeError(`Array.prototype.flat is limited to ${ELEMENTS_MAX} elements`);
        for (let place = 0; place < length; place++) {
          if (!(place in list)) continue;
          const element = list[place];
          if (left > 0 && isArray(element)) walk(element, left - 1);
          else define(out, out.length, { value: element, writable: true, enumerable: true, configurable: true });
        }
      };
      walk(Object(this), levels);
      return out;
    },
  });
  const nativeStringify = JSON.stringify;
  const same = (name, member) => member;
  replace(JSON, 'stringify', {
    stringify(value, replacer, space) {
      if (typeof replacer === 'function') return nativeStringify(value, replacer, space);
      if (isArray(replacer)) return nativeStringify(value, only(replacer), space);
      const text = space === undefined ? write(value) : undefined;
      return text !== undefined ? text : nativeStringify(value, same, space);
    },
  });

  // The members that a list names, in its order, of every object.
  function only(list) {
    const names = new Set();
    for (const name of list) {
      if (typeof name === 'string' || typeof name === 'number' || name instanceof String || name instanceof Number) {
        names.add(String(name));
      }
    }
    return (key, member) => {
      if (member === null || typeof member !== 'object' || isArray(member)) return member;
      if (member instanceof String || member instanceof Number || member instanceof Boolean) return member;
      const picked = {};
      for (const name of names) {
        const own = Object.getOwnPropertyDescriptor(member, name);
        if (own && own.enumerable) define(picked, name, { value: member[name], writable: true, enumerable: true, configurable: true });
      }
      return picked;
    };
  }

  function guard(owner, name, check) {
    const native = owner[name];
    if (native === undefined) return;
    replace(owner, name, {
      [name](...args) {
        check(this, ...args);
        return apply(native, this, args);
      },
    });
  }

  function replace(owner, name, { [name]: guarded }) {
    const native = owner[name];
    define(guarded, 'length', { value: native.length, configurable: true });
    define(owner, name, { value: guarded, writable: true, configurable: true, enumerable: false });
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
});
