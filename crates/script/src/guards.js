// What keeps the engine's own loops bounded. QuickJS asks the clock in script code, in every call and in regular
// expressions, but not while a built-in walks an object that merely claims to have nine quadrillion elements, nor while it
// searches one huge string for another. `builtins.txt` says of every built-in what bounds it; here is what it takes:
//
//   walks   refused if the list is too long; what is long asks the clock first
//   asks    the clock is asked first if what it works on is large
//   script  done in script code, where the clock is asked
//   short   refused if the text is too long
//
// Evaluates to a function that takes what the host knows: how to write plain data as JSON, whether the time is over, and
// whether an object is a list or a proxy, which no script code can tell for sure.
(function (host) {
  'use strict';
  const { write, isOver, isList, isProxy } = host;
  const { apply, construct, ownKeys, getPrototypeOf } = Reflect;
  const { isArray } = Array;
  const { getOwnPropertyDescriptor } = Object;
  const { isView } = ArrayBuffer;
  const { min, max, floor, trunc } = Math;
  const NativeString = String;
  const define = Object.defineProperty;
  const { indexOf, startsWith, slice } = String.prototype;
  const { test } = RegExp.prototype;

  /** Elements that a built-in may walk. */
  const ELEMENTS_MAX = 20000000;
  /** From here on the clock is asked before a built-in begins. */
  const LARGE = 50000;
  /** Comparisons of characters that are made at once. */
  const COMPARISONS = 20000000;
  /** Elements that are sorted without asking the clock. */
  const SORTED = 50000;
  /** Where a prototype chain ends for those who look for a million missing elements along it. */
  const PROTOTYPES_MAX = 100;
  const EVALUATED_MAX = 65536;
  const PATTERN_MAX = 20000;
  /** A step of a pattern that refers back to what it has found compares as much as that. */
  const REFERRED_MAX = 100000;
  const PROXY_KEYS_MAX = 10000;
  const NORMALIZED = 65536;
  const NORMALIZED_MAX = 1000000;
  const MARKS = /\p{M}{2000}/u;
  const REFERENCE = /\\[1-9k]/;

  const limited = (what, most) => new RangeError(`${what} is limited to ${most}`);
  const missing = (value) => value === null || value === undefined;

  function ask(size) {
    if (size > LARGE && isOver()) throw new RangeError('The time of the script is over.');
  }

  // ---- Lists

  /** The length that a built-in will find too: no getter, proxy or conversion may give it another one. */
  function lengthOf(self, what) {
    if (typeof self === 'string') return self.length;
    if (isList(self)) return self.length;
    const own = isProxy(self) ? undefined : getOwnPropertyDescriptor(Object(self), 'length');
    if (own !== undefined && typeof own.value === 'number') return own.value;
    if (own === undefined && isView(self)) return apply(viewLength, self, []);
    throw new TypeError(`${what} works on arrays and on objects with a length of their own`);
  }

  function shallow(self, what) {
    if (typeof self !== 'object' || self === null) return;
    let left = PROTOTYPES_MAX;
    for (let next = getPrototypeOf(self); next !== null; next = getPrototypeOf(next)) {
      if (--left < 0) throw limited(what, `${PROTOTYPES_MAX} prototypes`);
    }
  }

  function walked(self, what) {
    if (missing(self)) return;
    const length = lengthOf(self, what);
    if (length > ELEMENTS_MAX) throw limited(what, `${ELEMENTS_MAX} elements`);
    if (length > 100) shallow(self, what);
    ask(length);
  }

  const walking = [
    'copyWithin', 'fill', 'join', 'reverse', 'shift', 'slice', 'splice', 'toLocaleString', 'toReversed', 'toSpliced',
    'unshift', 'with',
  ];
  for (const name of walking) guard(Array.prototype, name, (self) => walked(self, `Array.prototype.${name}`));

  const views = getPrototypeOf(Uint8Array.prototype);
  const viewLength = getOwnPropertyDescriptor(views, 'length').get;
  const asking = [
    'copyWithin', 'fill', 'includes', 'indexOf', 'join', 'lastIndexOf', 'reverse', 'slice', 'toLocaleString', 'toReversed',
    'with',
  ];
  for (const name of asking) {
    guard(views, name, (self) => {
      if (isView(self) && !(self instanceof DataView)) ask(apply(viewLength, self, []));
    });
  }
  guard(views, 'set', (self, source) => {
    shallow(source, 'The source of set');
    if (isView(self) && !(self instanceof DataView)) ask(apply(viewLength, self, []));
  });

  // Lists that share their elements are short in memory and endless to walk.
  function append(out, element) {
    define(out, out.length, { value: element, writable: true, enumerable: true, configurable: true });
  }
  function flatten(list, left, out) {
    const length = list.length;
    if (length > ELEMENTS_MAX) throw limited('Array.prototype.flat', `${ELEMENTS_MAX} elements`);
    for (let place = 0; place < length; place++) {
      if (!(place in list)) continue;
      const element = list[place];
      if (left > 0 && isArray(element)) flatten(element, left - 1, out);
      else append(out, element);
    }
    return out;
  }
  replace(Array.prototype, 'flat', {
    flat(depth) {
      return flatten(Object(this), depth === undefined ? 1 : trunc(Number(depth)) || 0, []);
    },
  });
  const { map, concat } = Array.prototype;
  replace(Array.prototype, 'flatMap', {
    flatMap(change, self) {
      return flatten(apply(map, this, [change, self]), 1, []);
    },
  });

  /** What neither is a list nor can pass for one is one element, whatever it says later. */
  function isElement(value) {
    if (value === null || typeof value !== 'object') return typeof value !== 'function';
    if (isProxy(value)) return false;
    const parent = getPrototypeOf(value);
    return (parent === Object.prototype || parent === null) && !(Symbol.isConcatSpreadable in value);
  }
  replace(Array.prototype, 'concat', {
    concat(...others) {
      const lists = [Object(this), ...others];
      let [plain, elements] = [true, 0];
      for (const list of lists) {
        if (isList(list)) elements += list.length;
        else plain = plain && isElement(list);
        if (elements > LARGE) shallow(list, 'Array.prototype.concat');
      }
      if (elements > ELEMENTS_MAX) throw limited('Array.prototype.concat', `${ELEMENTS_MAX} elements`);
      ask(elements);
      if (plain) return apply(concat, this, others);
      const out = [];
      for (const list of lists) {
        const spreads = Object(list) === list ? list[Symbol.isConcatSpreadable] : false;
        if (!(spreads === undefined ? isArray(list) : spreads)) {
          append(out, list);
          continue;
        }
        const [from, length] = [out.length, min(max(trunc(Number(list.length)) || 0, 0), ELEMENTS_MAX + 1)];
        if (from + length > ELEMENTS_MAX) throw limited('Array.prototype.concat', `${ELEMENTS_MAX} elements`);
        for (let place = 0; place < length; place++) {
          if (!(place in list)) continue;
          const element = { value: list[place], writable: true, enumerable: true, configurable: true };
          define(out, from + place, element);
        }
        out.length = from + length;
      }
      return out;
    },
  });

  const byText = (a, b) => {
    const [one, other] = [NativeString(a), NativeString(b)];
    return one < other ? -1 : one > other ? 1 : 0;
  };
  const byNumber = (a, b) => {
    if (a < b) return -1;
    if (a > b) return 1;
    if (a === b) return a === 0 && 1 / Number(a) !== 1 / Number(b) ? (1 / Number(a) < 0 ? -1 : 1) : 0;
    return a === a ? -1 : b === b ? 1 : 0;
  };
  /** Whether comparing the elements of a list as texts takes no time worth mentioning. */
  function isQuick(list) {
    if (!isList(list) || list.length > SORTED) return false;
    for (let place = 0; place < list.length; place++) {
      const element = list[place];
      if (typeof element === 'string' ? element.length > 100 : typeof element === 'object') return false;
    }
    return true;
  }
  for (const name of ['sort', 'toSorted']) {
    const native = Array.prototype[name];
    replace(Array.prototype, name, {
      [name](order) {
        walked(this, `Array.prototype.${name}`);
        return apply(native, this, [order === undefined && !isQuick(this) ? byText : order]);
      },
    });
    const nativeView = views[name];
    replace(views, name, {
      [name](order) {
        const long = isView(this) && !(this instanceof DataView) && apply(viewLength, this, []) > SORTED;
        return apply(nativeView, this, [order === undefined && long ? byNumber : order]);
      },
    });
  }
  const listed = (args) => {
    if (!missing(args) && args.length > 100 && isList(args)) shallow(args, 'A list of arguments');
  };
  guard(Function.prototype, 'apply', (self, that, args) => listed(args));
  guard(Reflect, 'apply', (self, called, that, args) => listed(args));
  guard(Reflect, 'construct', (self, called, args) => listed(args));

  // ---- Texts

  /** The first place of a text in another, at or after `from`; `from` is no more than there is. */
  function find(text, wanted, from) {
    if (wanted.length * (text.length - from) <= COMPARISONS) {
      ask(text.length - from);
      return apply(indexOf, text, [wanted, from]);
    }
    const step = max(1, floor(COMPARISONS / wanted.length));
    const last = text.length - wanted.length;
    while (from <= last) {
      ask(LARGE + 1);
      const end = min(from + step - 1, last);
      const place = apply(indexOf, apply(slice, text, [from, end + wanted.length]), [wanted]);
      if (place >= 0) return from + place;
      from = end + 1;
    }
    return -1;
  }
  function findLast(text, wanted, from) {
    for (let place = min(from, text.length - wanted.length); place >= 0; place--) {
      if (apply(startsWith, text, [wanted, place])) return place;
    }
    return -1;
  }
  const place = (position, length) => min(max(trunc(Number(position)) || 0, 0), length);

  /** A method of texts, on the one text that it works on. Short ones need nobody to look after them. */
  function onText(name, method, quick = 1000) {
    const native = String.prototype[name];
    replace(String.prototype, name, {
      [name](...args) {
        if (missing(this) || (typeof this === 'string' && this.length <= quick)) return apply(native, this, args);
        return method(typeof this === 'string' ? this : NativeString(this), args, native);
      },
    });
  }
  onText('indexOf', (text, [wanted, from]) => {
    wanted = NativeString(wanted);
    return find(text, wanted, place(from, text.length));
  });
  onText('includes', (text, [wanted, from], native) => {
    // Says that a pattern is not allowed.
    if (typeof wanted === 'object') apply(native, '', [wanted]);
    wanted = NativeString(wanted);
    return find(text, wanted, place(from, text.length)) >= 0;
  });
  onText('lastIndexOf', (text, [wanted, from], native) => {
    wanted = NativeString(wanted);
    const start = Number(from);
    if (wanted.length * text.length <= COMPARISONS) {
      ask(text.length);
      return apply(native, text, [wanted, start]);
    }
    return findLast(text, wanted, start !== start ? text.length : place(start, text.length));
  });
  for (const name of ['trim', 'trimStart', 'trimEnd', 'isWellFormed', 'toWellFormed', 'startsWith', 'endsWith',
    'toLowerCase', 'toUpperCase', 'toLocaleLowerCase', 'toLocaleUpperCase']) {
    onText(name, (text, args, native) => {
      ask(text.length);
      return apply(native, text, args);
    });
  }

  for (const [name, guarded] of [['trimLeft', 'trimStart'], ['trimRight', 'trimEnd']]) {
    define(String.prototype, name, getOwnPropertyDescriptor(String.prototype, guarded));
  }

  function expand(template, matched, at, text) {
    let [out, from] = ['', 0];
    for (;;) {
      const sign = apply(indexOf, template, ['$', from]);
      if (sign < 0 || sign + 1 >= template.length) return out + apply(slice, template, [from]);
      const next = template[sign + 1];
      let piece;
      if (next === '$') piece = '$';
      else if (next === '&') piece = matched;
      else if (next === '`') piece = apply(slice, text, [0, at]);
      else if (next === "'") piece = apply(slice, text, [at + matched.length]);
      out += apply(slice, template, [from, sign]) + (piece === undefined ? '$' : piece);
      from = sign + (piece === undefined ? 1 : 2);
    }
  }
  /** What an object wants to be done with a text, if it wants anything. */
  const wish = (object, symbol) => (object !== null && typeof object === 'object' ? object[symbol] : undefined);
  const isPattern = (object) => {
    const said = wish(object, Symbol.match);
    return said === undefined ? object instanceof RegExp : Boolean(said);
  };
  function substitute(text, [wanted, change], all) {
    if (all && isPattern(wanted) && apply(indexOf, NativeString(wanted.flags), ['g']) < 0) {
      throw new TypeError('regexp must have the \'g\' flag');
    }
    const method = wish(wanted, Symbol.replace);
    if (!missing(method)) return apply(method, wanted, [text, change]);
    wanted = NativeString(wanted);
    if (typeof change !== 'function') change = NativeString(change);
    const plain = typeof change === 'string' && apply(indexOf, change, ['$']) < 0;
    let [out, from, at] = ['', 0, find(text, wanted, 0)];
    while (at >= 0) {
      let piece = change;
      if (typeof change === 'function') piece = NativeString(change(wanted, at, text));
      else if (!plain) piece = expand(change, wanted, at, text);
      out += apply(slice, text, [from, at]) + piece;
      from = at + wanted.length;
      const next = at + max(1, wanted.length);
      at = all && next <= text.length ? find(text, wanted, next) : -1;
    }
    return out + apply(slice, text, [from]);
  }
  onText('replace', (text, args) => substitute(text, args, false));
  onText('replaceAll', (text, args) => substitute(text, args, true));
  onText('split', (text, [wanted, limit], native) => {
    const method = wish(wanted, Symbol.split);
    if (!missing(method)) return apply(method, wanted, [text, limit]);
    if (wanted !== undefined) wanted = NativeString(wanted);
    const most = limit === undefined ? 4294967295 : limit >>> 0;
    if (wanted === undefined || wanted.length * text.length <= COMPARISONS) {
      ask(text.length);
      return apply(native, text, [wanted, most]);
    }
    const out = [];
    let [from, at] = [0, find(text, wanted, 0)];
    for (; at >= 0 && out.length < most; at = find(text, wanted, from)) {
      append(out, apply(slice, text, [from, at]));
      from = at + wanted.length;
    }
    if (out.length < most) append(out, apply(slice, text, [from]));
    return out;
  });

  // Marks are sorted by exchanging neighbours. A long text is taken in pieces that begin with a character which never joins
  // the one before it.
  const { normalize } = String.prototype;
  function marked(text) {
    if (apply(test, MARKS, [text])) throw limited('Normalizing', '2000 marks in a row');
    return text;
  }
  onText('normalize', (text, [form]) => {
    const args = form === undefined ? [] : [NativeString(form)];
    if (text.length <= NORMALIZED) return apply(normalize, marked(text), args);
    let [out, from] = ['', 0];
    while (from < text.length) {
      let end = min(from + NORMALIZED, text.length);
      while (end < text.length && text.charCodeAt(end) > 127) end++;
      if (end - from > NORMALIZED_MAX) throw limited('Normalizing', `${NORMALIZED_MAX} characters without an ASCII one`);
      ask(end - from);
      out += apply(normalize, marked(apply(slice, text, [from, end])), args);
      from = end;
    }
    return out;
  });
  onText('localeCompare', (text, [other], native) => {
    other = NativeString(other);
    if (text.length + other.length > NORMALIZED_MAX) throw limited('String.prototype.localeCompare', `${NORMALIZED_MAX} characters`);
    ask(text.length + other.length);
    return apply(native, marked(text), [marked(other)]);
  }, -1);
  guard(String, 'raw', (self, template) => {
    if (!missing(template) && !missing(template.raw)) walked(template.raw, 'String.raw');
  });

  // ---- Patterns

  const sourceOf = getOwnPropertyDescriptor(RegExp.prototype, 'source').get;
  function matched(pattern, text) {
    if (text.length <= REFERRED_MAX || !(pattern instanceof RegExp) || isProxy(pattern)) return;
    if (apply(test, REFERENCE, [apply(sourceOf, pattern, [])])) {
      throw limited('A pattern that refers back', `texts of ${REFERRED_MAX} characters`);
    }
  }
  for (const name of ['exec', 'test', Symbol.match, Symbol.matchAll, Symbol.replace, Symbol.search, Symbol.split]) {
    const native = RegExp.prototype[name];
    replace(RegExp.prototype, name, {
      [name](text, ...args) {
        if (typeof text !== 'string') text = NativeString(text);
        if (text.length > REFERRED_MAX) matched(this, text);
        return apply(native, this, [text, ...args]);
      },
    });
  }
  function pattern(source) {
    if (source === undefined || (typeof source === 'object' && isPattern(source))) return source;
    source = NativeString(source);
    if (source.length > PATTERN_MAX) throw limited('A pattern', `${PATTERN_MAX} characters`);
    return source;
  }
  guard(RegExp.prototype, 'compile', (self, source) => void pattern(source));

  // ---- What makes things

  /** Puts a function in the place of a constructor. `make` gets the arguments, what `new` was said to, and the function. */
  function constructor(native, make) {
    function made(...args) {
      return make(args, new.target, made);
    }
    for (const key of ownKeys(native)) {
      const own = getOwnPropertyDescriptor(native, key);
      if (key !== 'prototype' && (own.configurable || key === 'length')) define(made, key, own);
    }
    if (native.prototype !== undefined) {
      define(made, 'prototype', { value: native.prototype, writable: false });
      define(native.prototype, 'constructor', { value: made, writable: true, configurable: true, enumerable: false });
    }
    const known = getOwnPropertyDescriptor(globalThis, native.name);
    if (known !== undefined && known.value === native) define(globalThis, native.name, { ...known, value: made });
    return made;
  }

  const NativeFunction = Function;
  const makers = [
    NativeFunction,
    getPrototypeOf(async function () {}).constructor,
    getPrototypeOf(function* () {}).constructor,
    getPrototypeOf(async function* () {}).constructor,
  ];
  for (const native of makers) {
    const made = constructor(native, (args, target, made) => {
      let length = 0;
      for (let place = 0; place < args.length; place++) {
        args[place] = NativeString(args[place]);
        length += args[place].length;
      }
      if (length > EVALUATED_MAX) throw limited('Code that is made by a script', `${EVALUATED_MAX} characters`);
      return construct(native, args, target || made);
    });
    if (native !== NativeFunction) Object.setPrototypeOf(made, Function);
  }
  const NativeRegExp = RegExp;
  constructor(NativeRegExp, ([source, flags], target, made) => {
    // As a function it gives back the pattern that it is given.
    const same = target === undefined && flags === undefined && typeof source === 'object' && isPattern(source);
    if (same && source.constructor === made) return source;
    return construct(NativeRegExp, [pattern(source), flags], target || made);
  });
  const NativeSet = Set;
  constructor(NativeSet, ([values], target) => {
    if (target === undefined) throw new TypeError("Constructor Set requires 'new'");
    const made = construct(NativeSet, [], target);
    if (missing(values)) return made;
    const { add } = made;
    if (typeof add !== 'function') throw new TypeError('not a function');
    for (const value of values) apply(add, made, [value]);
    return made;
  });
  // Keys of a proxy are compared each with each.
  const NativeProxy = Proxy;
  const few = {
    get(handler, name) {
      const trap = handler[name];
      if (name !== 'ownKeys' || typeof trap !== 'function') return trap;
      return (target) => {
        const keys = apply(trap, handler, [target]);
        if (Object(keys) !== keys) return keys;
        const { length } = keys;
        const own = ownKeys(target).length;
        if (length > PROXY_KEYS_MAX || own * length > PROXY_KEYS_MAX * PROXY_KEYS_MAX) throw limited('A proxy', `${PROXY_KEYS_MAX} keys`);
        const list = [];
        for (let place = 0; place < length; place++) append(list, keys[place]);
        return list;
      };
    },
  };
  const handled = (handler) => (Object(handler) === handler ? new NativeProxy(handler, few) : handler);
  const { revocable } = NativeProxy;
  const GuardedProxy = constructor(NativeProxy, ([target, handler], made) => {
    if (made === undefined) throw new TypeError("Constructor Proxy requires 'new'");
    return new NativeProxy(target, handled(handler));
  });
  replace(GuardedProxy, 'revocable', {
    revocable(target, handler) {
      return revocable(target, handled(handler));
    },
  });

  // ---- Sets

  const { has, add, delete: remove, values } = NativeSet.prototype;
  const sizeOf = getOwnPropertyDescriptor(NativeSet.prototype, 'size').get;
  function other(set) {
    if (Object(set) !== set) throw new TypeError('not an object');
    const size = Number(set.size);
    if (size !== size) throw new TypeError('.size is not a number');
    if (size < 0) throw new RangeError('.size must be positive');
    const { has, keys } = set;
    if (typeof has !== 'function') throw new TypeError('.has is not a function');
    if (typeof keys !== 'function') throw new TypeError('.keys is not a function');
    return { size: trunc(size), has: (value) => Boolean(apply(has, set, [value])), keys: () => apply(keys, set, []) };
  }
  /** Visits the values of another set until a visit says that it is enough. */
  function each({ keys }, visit) {
    const iterator = keys();
    if (Object(iterator) !== iterator) throw new TypeError('not an object');
    const { next } = iterator;
    for (;;) {
      const step = apply(next, iterator, []);
      if (Object(step) !== step) throw new TypeError('iterator must return an object');
      if (step.done) return false;
      if (visit(step.value) === true) {
        if (!missing(iterator.return)) iterator.return();
        return true;
      }
    }
  }
  function some(set, visit) {
    for (const value of apply(values, set, [])) if (visit(value) === true) return true;
    return false;
  }
  function copy(set) {
    const made = new NativeSet();
    some(set, (value) => void apply(add, made, [value]));
    return made;
  }
  const sets = {
    union(set, size, second) {
      const out = copy(set);
      each(second, (value) => void apply(add, out, [value]));
      return out;
    },
    intersection(set, size, second) {
      const out = new NativeSet();
      if (size <= second.size) some(set, (value) => void (second.has(value) && apply(add, out, [value])));
      else each(second, (value) => void (apply(has, set, [value]) && apply(add, out, [value])));
      return out;
    },
    difference(set, size, second) {
      const out = copy(set);
      if (size <= second.size) some(set, (value) => void (second.has(value) && apply(remove, out, [value])));
      else each(second, (value) => void apply(remove, out, [value]));
      return out;
    },
    symmetricDifference(set, size, second) {
      const out = copy(set);
      each(second, (value) => void apply(apply(has, set, [value]) ? remove : add, out, [value]));
      return out;
    },
    isSubsetOf: (set, size, second) => size <= second.size && !some(set, (value) => !second.has(value)),
    isSupersetOf: (set, size, second) => size >= second.size && !each(second, (value) => !apply(has, set, [value])),
    isDisjointFrom(set, size, second) {
      if (size <= second.size) return !some(set, (value) => second.has(value));
      return !each(second, (value) => apply(has, set, [value]));
    },
  };
  for (const name of ownKeys(sets)) {
    const method = sets[name];
    replace(NativeSet.prototype, name, {
      [name](set) {
        const size = apply(sizeOf, this, []);
        return method(this, size, other(set));
      },
    });
  }
  const { drop } = Iterator.prototype;
  replace(Iterator.prototype, 'drop', {
    drop(limit) {
      const most = Number(limit);
      if (most > ELEMENTS_MAX) throw limited('Iterator.prototype.drop', ELEMENTS_MAX);
      return apply(drop, this, [most]);
    },
  });
  replace(Iterator.prototype, 'includes', {
    includes(wanted, skipped) {
      let left = skipped === undefined ? 0 : trunc(Number(skipped));
      if (!(left >= 0)) throw new RangeError('invalid number of skipped elements');
      return each({ keys: () => this }, (value) => {
        if (left > 0) left--;
        else return value === wanted || (value !== value && wanted !== wanted);
        return false;
      });
    },
  });

  // ---- JSON

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
        const own = getOwnPropertyDescriptor(member, name);
        if (own && own.enumerable) define(picked, name, { value: member[name], writable: true, enumerable: true, configurable: true });
      }
      return picked;
    };
  }

  function guard(owner, name, check) {
    const native = owner[name];
    replace(owner, name, {
      [name](...args) {
        check(this, ...args);
        return apply(native, this, args);
      },
    });
  }

  function replace(owner, name, { [name]: guarded }) {
    const native = owner[name];
    if (native === undefined) return;
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
    const descriptor = getOwnPropertyDescriptor(NativeError, key);
    if (key !== 'length' && descriptor.configurable) define(CodedError, key, descriptor);
  }
  define(CodedError, 'prototype', { value: NativeError.prototype, writable: false });
  define(NativeError.prototype, 'constructor', { value: CodedError, writable: true, configurable: true });
  for (const kind of [AggregateError, EvalError, InternalError, RangeError, ReferenceError, SuppressedError, SyntaxError, TypeError, URIError]) {
    Object.setPrototypeOf(kind, CodedError);
  }
  define(globalThis, 'Error', { value: CodedError, writable: true, configurable: true, enumerable: false });
});
