// Values of MongoDB as people write them in a shell, and as Extended JSON has them. Reading makes Extended JSON out of
// { when: ISODate('2026-01-01'), n: NumberLong(5), tags: ['a'] }; writing is the way back. Nothing is lost between the two: 5 is an
// int32 (or, beyond its range, an int64), 5.0 a double, every other number says its type.

const INT32_MAX = 2147483647, INT32_MIN = -2147483648;
const INT64 = (1n << 63n) - 1n;
const DEPTH_MAX = 100;
const NAME = /[A-Za-z_$][\w$]*/y, NUMBER = /[+-]?(?:Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)/y, SPACE = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const REGEX = /\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/y;

export class ShellError extends Error {
  /** @param {string} message @param {number} at */
  constructor(message, at) {
    super(message);
    this.at = at;
  }
}

export class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  /** @param {RegExp} pattern sticky */
  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  space() {
    this.match(SPACE);
    return this;
  }

  /** @param {string} sign */
  takes(sign) {
    if (!this.space().text.startsWith(sign, this.at)) return false;
    this.at += sign.length;
    return true;
  }

  /** @param {string} sign */
  needs(sign) {
    if (!this.takes(sign)) this.fail(`"${sign}" is missing`);
  }

  /** @returns {never} @param {string} message */
  fail(message, at = this.at) {
    const found = this.text.slice(at, at + 12).split("\n")[0];
    throw new ShellError(`${message}${found ? `, at "${found}"` : ", at the end"}.`, at);
  }

  name() {
    return this.space().match(NAME)?.[0] ?? null;
  }

  /** The values between brackets. @param {string} close */
  values(close, depth = 0) {
    const all = [];
    while (!this.takes(close)) {
      all.push(this.value(depth + 1));
      if (!this.takes(",")) {
        this.needs(close);
        break;
      }
    }
    return all;
  }

  /** @returns {any} Extended JSON */
  value(depth = 0) {
    if (depth > DEPTH_MAX) this.fail("This is nested too deeply");
    this.space();
    const sign = this.text[this.at];
    if (sign === "{") return this.object(depth);
    if (sign === "[") return (this.at += 1), this.values("]", depth);
    if (sign === '"' || sign === "'" || sign === "`") return this.string();
    if (sign === "/") {
      const found = this.match(REGEX);
      if (found) return { $regularExpression: { pattern: found[1], options: [...found[2]].sort().join("") } };
    }
    const number = this.match(NUMBER);
    if (number) return numberOf(number[0]);
    const start = this.at;
    let name = this.name();
    if (name === "new") name = this.name();
    if (name === null) this.fail("A value is missing");
    const plain = { true: true, false: false, null: null, undefined: { $undefined: true } };
    if (name in plain) return plain[name];
    if (name === "MinKey" || name === "MaxKey") {
      if (this.takes("(")) this.needs(")");
      return { [`$${name[0].toLowerCase()}${name.slice(1)}`]: 1 };
    }
    if (!this.takes("(")) this.fail(`${name} is no value; texts stand in quotes`, start);
    const given = this.values(")", depth);
    return made(name, given) ?? this.fail(`${name}(…) is not known, or not with these values`, start);
  }

  object(depth = 0) {
    this.needs("{");
    const object = Object.create(null);
    while (!this.takes("}")) {
      this.space();
      const quoted = `"'`.includes(this.text[this.at] ?? " ");
      const name = quoted ? this.string() : (this.name() ?? this.match(/\d+/y)?.[0] ?? this.fail("The name of a field is missing"));
      this.needs(":");
      object[name] = this.value(depth + 1);
      if (!this.takes(",")) {
        this.needs("}");
        break;
      }
    }
    return { ...object };
  }

  string() {
    const quote = this.text[this.at];
    let text = "";
    for (let at = this.at + 1; at < this.text.length; at += 1) {
      const sign = this.text[at];
      if (sign === quote) {
        this.at = at + 1;
        return text;
      }
      if (sign !== "\\") {
        text += sign;
        continue;
      }
      at += 1;
      const code = { u: 4, x: 2 }[this.text[at]];
      const digits = code && this.text.slice(at + 1, at + 1 + code);
      if (digits && new RegExp(`^[\\da-fA-F]{${code}}$`).test(digits)) (text += String.fromCharCode(parseInt(digits, 16))), (at += code);
      else text += { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", 0: "\0" }[this.text[at]] ?? this.text[at] ?? "";
    }
    return this.fail("A text has no end");
  }

  get over() {
    return this.space().at >= this.text.length;
  }
}

/** @param {string} text */
function numberOf(text) {
  if (!/^[+-]?\d+$/.test(text)) return { $numberDouble: text.replace(/^\+/, "") };
  const whole = BigInt(text);
  if (whole >= INT32_MIN && whole <= INT32_MAX) return { $numberInt: String(whole) };
  return whole > INT64 || whole < -INT64 - 1n ? { $numberDouble: text.replace(/^\+/, "") } : { $numberLong: String(whole) };
}

/** What a number that was given to a function says. @param {any} given */
const digits = (given) => (typeof given === "string" ? given : String(given?.$numberInt ?? given?.$numberLong ?? given?.$numberDouble ?? given?.$numberDecimal ?? ""));
const whole = (given) => (/^-?\d+$/.test(digits(given)) ? digits(given) : null);

/** A new object id: the second, and chance. */
export function newObjectId() {
  const random = crypto.getRandomValues(new Uint8Array(8));
  return { $oid: Math.floor(Date.now() / 1000).toString(16).padStart(8, "0") + [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("") };
}

/** A value of a type that has a name; undefined where there is none. @param {string} name @param {any[]} given */
function made(name, given) {
  const [first, second] = given;
  const hex = (text, length) => typeof text === "string" && text.replaceAll("-", "").length === length && /^[\da-fA-F-]+$/.test(text);
  switch (name) {
    case "ObjectId":
      return given.length === 0 ? newObjectId() : hex(first, 24) ? { $oid: first.toLowerCase() } : undefined;
    case "ISODate":
    case "Date": {
      const time = given.length === 0 ? Date.now() : typeof first === "string" ? Date.parse(first) : Number(whole(first) ?? NaN);
      return Number.isNaN(time) ? undefined : { $date: { $numberLong: String(time) } };
    }
    case "NumberInt":
    case "Int32":
      return whole(first) !== null && Math.abs(Number(whole(first)) + 0.5) < 2147483648 ? { $numberInt: whole(first) } : undefined;
    case "NumberLong":
    case "Long":
      return whole(first) === null ? undefined : { $numberLong: whole(first) };
    case "Double":
    case "NumberDouble":
      return digits(first) ? { $numberDouble: digits(first) } : undefined;
    case "NumberDecimal":
    case "Decimal128":
      return digits(first) ? { $numberDecimal: digits(first) } : undefined;
    case "UUID":
      return hex(first, 32) ? { $uuid: first } : given.length ? undefined : { $uuid: crypto.randomUUID() };
    case "BinData":
      return whole(first) !== null && typeof second === "string" ? { $binary: { base64: second, subType: Number(whole(first)).toString(16).padStart(2, "0") } } : undefined;
    case "Timestamp":
      return whole(first) === null ? undefined : { $timestamp: { t: Number(whole(first)), i: Number(whole(second) ?? 0) } };
    case "RegExp":
      return typeof first === "string" ? { $regularExpression: { pattern: first, options: [...(second ?? "")].sort().join("") } } : undefined;
    case "Code":
      return typeof first === "string" ? { $code: first } : undefined;
    case "DBRef":
      return typeof first === "string" ? { $ref: first, $id: second } : undefined;
    default:
      return undefined;
  }
}

/** A whole text as one value. @param {string} text */
export function read(text) {
  const reader = new Reader(text);
  const value = reader.value();
  if (!reader.over) reader.fail("There is more behind the value");
  return value;
}

// ---- the way back -------------------------------------------------------------------------------------------------------------

const quoted = (text) => JSON.stringify(text);
const plainName = /^[A-Za-z_$][\w$]*$/;

/** A value with a type of its own as text; null where it is a plain object or list. @param {any} value */
function scalar(value) {
  if (value === null || typeof value !== "object") return typeof value === "string" ? quoted(value) : String(value);
  if (Array.isArray(value)) return null;
  const [name, second] = Object.keys(value);
  if (!name?.startsWith("$") || (second && name !== "$code")) return null;
  const inner = value[name];
  switch (name) {
    case "$numberInt": return inner;
    case "$numberLong": return Math.abs(Number(inner)) > INT32_MAX + 1 ? inner : `NumberLong(${inner})`;
    case "$numberDouble": return /[.eINn]/.test(inner) ? inner : `${inner}.0`;
    case "$numberDecimal": return `NumberDecimal(${quoted(inner)})`;
    case "$oid": return `ObjectId(${quoted(inner)})`;
    case "$date": {
      const ms = Number(inner?.$numberLong ?? Date.parse(inner));
      return Math.abs(ms) < 8.64e15 && ms >= -62135596800000 ? `ISODate(${quoted(new Date(ms).toISOString())})` : `ISODate(${ms})`;
    }
    case "$uuid": return `UUID(${quoted(inner)})`;
    case "$binary": return inner.subType === "04" ? `UUID(${quoted(uuidOf(inner.base64))})` : `BinData(${parseInt(inner.subType, 16)}, ${quoted(inner.base64)})`;
    case "$timestamp": return `Timestamp(${inner.t}, ${inner.i})`;
    case "$regularExpression": return inner.pattern && !/[\n/]/.test(inner.pattern) && /^[a-z]*$/.test(inner.options) ? `/${inner.pattern}/${inner.options}` : `RegExp(${quoted(inner.pattern)}, ${quoted(inner.options)})`;
    case "$code": return second ? null : `Code(${quoted(inner)})`;
    case "$undefined": return "undefined";
    case "$minKey": return "MinKey()";
    case "$maxKey": return "MaxKey()";
    default: return null;
  }
}

/** @param {string} base64 */
function uuidOf(base64) {
  const hex = [...atob(base64)].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.*)$/, "$1-$2-$3-$4-$5");
}

/** Extended JSON as somebody would type it. @param {any} value @param {number} [indent] 0: one line */
export function shown(value, indent = 2, depth = 0) {
  const text = scalar(value);
  if (text !== null) return text;
  const list = Array.isArray(value);
  const entries = list ? value.map((one) => shown(one, indent, depth + 1)) : Object.entries(value).map(([name, one]) => `${plainName.test(name) ? name : quoted(name)}: ${shown(one, indent, depth + 1)}`);
  const [open, close] = list ? "[]" : "{}";
  if (!entries.length) return open + close;
  const line = `${open}${list ? "" : " "}${entries.join(", ")}${list ? "" : " "}${close}`;
  if (!indent || (depth > 0 && line.length < 60 && !line.includes("\n"))) return line;
  const pad = " ".repeat(indent * (depth + 1));
  return `${open}\n${pad}${entries.join(`,\n${pad}`)}\n${" ".repeat(indent * depth)}${close}`;
}

/** A value for a cell of a table, a chart, a file of CSV: numbers and texts as they are, everything else as it would be typed. @param {any} value */
export function plain(value) {
  if (value === undefined || value === null || typeof value !== "object") return value;
  if (!Array.isArray(value)) {
    if (value.$numberInt !== undefined) return Number(value.$numberInt);
    if (value.$numberDouble !== undefined) return Number(value.$numberDouble);
    if (value.$numberLong !== undefined) return JSON.rawJSON ? JSON.rawJSON(value.$numberLong) : Number(value.$numberLong);
  }
  return shown(value, 0);
}

/** A document whose fields are such values; what is no document is one itself. @param {any} row */
export const plainRow = (row) => (row === null || typeof row !== "object" || Array.isArray(row) || typeOf(row) !== "object" ? plain(row) : Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])));

/** A value as examples and completion look at it: fields inside of fields stay. @param {any} value @returns {any} */
export const deep = (value) => (Array.isArray(value) ? value.map(deep) : typeOf(value) === "object" ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, deep(inner)])) : plain(value));

/** Which type a value has. @param {any} value */
export function typeOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value !== "object") return { string: "string", boolean: "bool", number: "double" }[typeof value] ?? typeof value;
  const names = { $numberInt: "int", $numberLong: "long", $numberDouble: "double", $numberDecimal: "decimal", $oid: "objectId", $date: "date", $binary: "binData", $uuid: "binData", $timestamp: "timestamp", $regularExpression: "regex", $code: "javascript", $undefined: "undefined", $minKey: "minKey", $maxKey: "maxKey" };
  return names[Object.keys(value)[0]] ?? "object";
}
