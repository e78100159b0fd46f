// The API that procedures and triggers see. Evaluates to a function that is called once, long before there is a script,
// with an object that will tell about the request; that returns the few functions by which the host drives the script:
//
//   call(script, argumentsText)   runs the script's function; by now `host` says what the request is
//   take()                        the oldest operation that waits, or null: its kind, link, body, options and whether
//                                 its callback can see what comes of it; then exactly one of
//   done(text, continuation)      … it succeeded: its callback runs
//   fail(error, status, text)     … it failed: its callback runs with the error, or without one the error is thrown
//   body(most), requestBody(most) what the script leaves behind, as JSON text, or its length if that is more
//   problem()                     what was thrown where nobody could catch it
//
// Operations are queued, never run inside the call that asks for them: callbacks cannot nest, however long a chain of
// them is.
(function (host) {
  'use strict';
  const { stringify, parse } = JSON;
  const { isArray } = Array;
  const { apply } = Reflect;
  const define = Object.defineProperty;
  const NativeError = Error;
  const NativePromise = Promise;
  const { then } = Promise.prototype;
  // Promises that failed and that nobody has looked at. The service forgets about them and commits; here the script
  // fails, because a half-done change that nobody was told about is the worst of the outcomes.
  const rejections = new Map();
  const queue = [];
  let head = 0;
  let current = null;
  const problems = [];
  let aborted = false;

  const text = (value) => (value === undefined ? undefined : stringify(value));
  const shorter = (body, most) => (body !== undefined && body.length > most ? body.length : body);

  // Most callbacks of writes look at the error alone, and what nobody can see need be neither written out nor parsed.
  // A callback cannot see its second argument if it has one plain parameter at most and no other way to its arguments.
  const { toString } = Function.prototype;
  const { test } = RegExp.prototype;
  const ONE_PARAMETER =
    /^(?:async\s+)?(?:function\b\s*[\w$]*\s*\(\s*[\w$]*\s*\)\s*\{|\(\s*[\w$]*\s*\)\s*=>|[\w$]+\s*=>)/;
  const OTHER_WAYS = /\b(?:arguments|eval)\b|\[native code\]/;
  // Callbacks that are made in a loop share their text.
  let judged;
  let judgement = true;

  function seesResult(callback) {
    if (typeof callback !== 'function') return false;
    if (callback.length > 1) return true;
    const source = apply(toString, callback, []);
    if (source !== judged) {
      judgement = !apply(test, ONE_PARAMETER, [source]) || apply(test, OTHER_WAYS, [source]);
      judged = source;
    }
    return judgement;
  }

  function enqueue(kind, link, body, options, callback) {
    if (aborted || !host.accepts(queue.length - head)) return false;
    queue.push({ kind, link, body, options, callback, sees: true });
    return true;
  }

  // Every call takes `(options, callback)`, `(callback)` or nothing last. Two functions, because procedures make these
  // calls by the thousand and a pair would be an array and an iterator for each of them.
  const NO_OPTIONS = Object.freeze({ __proto__: null });

  function optionsOf(options, callback) {
    if (options === undefined || options === null) return NO_OPTIONS;
    return typeof options === 'function' && callback === undefined ? NO_OPTIONS : options;
  }

  function callbackOf(options, callback) {
    if (callback === undefined) return typeof options === 'function' ? options : undefined;
    if (callback !== null && typeof callback !== 'function') throw new TypeError('The callback must be a function.');
    return callback;
  }

  function needLink(link, what) {
    if (typeof link !== 'string' || link === '') throw new NativeError(400, `A ${what} link must be a non-empty string.`);
    return link;
  }

  const same = (name, member) => member;

  function needBody(body) {
    if (body === null || typeof body !== 'object' || isArray(body)) {
      throw new NativeError(400, 'A document must be an object.');
    }
    // Plain data is written by the host, which gives its place; whatever is unusual here, with the clock in sight.
    const place = host.write(body);
    if (place !== undefined) return place;
    const written = stringify(body, same);
    if (typeof written !== 'string') throw new NativeError(400, 'A document must be an object.');
    return written;
  }

  function condition(options) {
    if (options === NO_OPTIONS) return undefined;
    const access = options.accessCondition;
    const typed = (type) => (access && access.type === type ? access.condition : undefined);
    return {
      etag: options.etag !== undefined ? options.etag : typed('IfMatch'),
      ifNoneMatch: options.ifNoneMatch !== undefined ? options.ifNoneMatch : typed('IfNoneMatch'),
    };
  }

  const paging = (options) => ({
    pageSize: options.pageSize !== undefined ? options.pageSize : options.maxItemCount,
    continuation: options.continuation,
  });

  function feed(callback) {
    return callback && ((error, found, more) => callback(error, found, more));
  }

  function attachments() {
    throw new NativeError(400, 'Attachments are not supported.');
  }

  const collection = {
    getSelfLink: () => host.selfLink,
    getAltLink: () => host.altLink,

    createDocument(link, body, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      const written = needBody(body);
      const fixed = options.disableAutomaticIdGeneration === true ? { fixed: true } : undefined;
      return enqueue('create', needLink(link, 'collection'), written, fixed, called);
    },

    upsertDocument(link, body, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      const written = needBody(body);
      const fixed = options.disableAutomaticIdGeneration === true;
      const told = options === NO_OPTIONS ? undefined : { fixed, ...condition(options) };
      return enqueue('upsert', needLink(link, 'collection'), written, told, called);
    },

    replaceDocument(link, body, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      const written = needBody(body);
      return enqueue('replace', needLink(link, 'document'), written, condition(options), called);
    },

    deleteDocument(link, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      return enqueue('delete', needLink(link, 'document'), undefined, condition(options), called);
    },

    readDocument(link, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      return enqueue('read', needLink(link, 'document'), undefined, condition(options), called);
    },

    readDocuments(link, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      return enqueue('list', needLink(link, 'collection'), undefined, paging(options), feed(called));
    },

    queryDocuments(link, query, options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      let spec = query;
      if (typeof query === 'string') spec = { query };
      if (spec === null || typeof spec !== 'object' || typeof spec.query !== 'string') {
        throw new NativeError(400, 'A query must be a string or an object with a query and its parameters.');
      }
      const written = stringify({ query: spec.query, parameters: spec.parameters || [] });
      return enqueue('query', needLink(link, 'collection'), written, paging(options), feed(called));
    },

    createAttachment: attachments,
    upsertAttachment: attachments,
    replaceAttachment: attachments,
    deleteAttachment: attachments,
    readAttachment: attachments,
    readAttachments: attachments,
    queryAttachments: attachments,

    chain: () => new Chain([]),
    filter: (predicate, options, callback) => new Chain([]).filter(predicate).value(options, callback),
    map: (change, options, callback) => new Chain([]).map(change).value(options, callback),
    pluck: (name, options, callback) => new Chain([]).pluck(name).value(options, callback),
    flatten: (shallow, options, callback) => {
      if (typeof shallow === 'function' || (shallow !== null && typeof shallow === 'object')) {
        [shallow, options, callback] = [undefined, shallow, options];
      }
      return new Chain([]).flatten(shallow).value(options, callback);
    },
    unwind: (inner, result, options, callback) => new Chain([]).unwind(inner, result).value(options, callback),
    sortBy: (key, options, callback) => new Chain([]).sortBy(key).value(options, callback),
    sortByDescending: (key, options, callback) => new Chain([]).sortByDescending(key).value(options, callback),
  };

  // The query API: steps over the documents of the partition, page by page.
  const PAGE = 1000;

  function need(step, name) {
    if (typeof step !== 'function') throw new NativeError(400, `${name} takes a function.`);
    return step;
  }

  function flat(value, shallow, out, depth) {
    for (const element of value) {
      if (isArray(element) && (depth === 0 || !shallow)) flat(element, shallow, out, depth + 1);
      else out.push(element);
    }
    return out;
  }

  class Chain {
    #steps;
    constructor(steps) {
      this.#steps = steps;
    }
    #with(run, sorts) {
      return new Chain([...this.#steps, { run, sorts: sorts === true }]);
    }
    filter(predicate) {
      need(predicate, 'filter');
      return this.#with((rows) => rows.filter((row) => predicate(row)));
    }
    map(change) {
      need(change, 'map');
      return this.#with((rows) => rows.map((row) => change(row)));
    }
    pluck(name) {
      return this.#with((rows) =>
        rows.map((row) => (row === null || row === undefined ? undefined : row[name])).filter((row) => row !== undefined),
      );
    }
    flatten(shallow) {
      return this.#with((rows) => flat(rows, shallow === true, [], 0));
    }
    unwind(inner, result) {
      need(inner, 'unwind');
      const combine = typeof result === 'function' ? result : (outer, element) => [outer, element];
      return this.#with((rows) => {
        const out = [];
        for (const row of rows) {
          const elements = inner(row);
          if (isArray(elements)) for (const element of elements) out.push(combine(row, element));
        }
        return out;
      });
    }
    sortBy(key) {
      return this.#sorted(key, 1);
    }
    sortByDescending(key) {
      return this.#sorted(key, -1);
    }
    #sorted(key, direction) {
      need(key, 'sortBy');
      const compare = (a, b) => (a.key < b.key ? -direction : a.key > b.key ? direction : a.place - b.place);
      return this.#with((rows) => {
        const keyed = rows.map((row, place) => ({ key: key(row), place, row }));
        return keyed.sort(compare).map((entry) => entry.row);
      }, true);
    }

    /** Runs the chain. Without a sort a page may end early; with one everything is read before the first row is given. */
    value(options, callback) {
      const called = callbackOf(options, callback);
      options = optionsOf(options, callback);
      const steps = this.#steps;
      const sorts = steps.some((step) => step.sorts);
      const size = typeof options.pageSize === 'number' && options.pageSize > 0 ? options.pageSize : Infinity;
      const finish =
        called ||
        ((error, rows) => {
          if (error) throw error;
          response.setBody(rows);
        });
      const run = (rows) => steps.reduce((rows, step) => step.run(rows), rows);
      let skip = 0;
      let from = options.continuation;
      if (sorts && typeof from === 'string') {
        skip = Number(from);
        if (!(skip >= 0)) throw new NativeError(400, 'Invalid Continuation Token');
        from = undefined;
      }
      let gathered = [];
      const read = (continuation) =>
        enqueue('list', host.selfLink, undefined, { pageSize: sorts ? PAGE : Math.min(size, PAGE), continuation }, step);
      const step = (error, page, more) => {
        if (error) return finish(error);
        gathered = gathered.concat(sorts ? page : run(page));
        if (more.continuation !== undefined && (sorts || gathered.length < size)) {
          if (!read(more.continuation)) throw new NativeError(408, 'The query ran out of time.');
          return undefined;
        }
        if (!sorts) return finish(undefined, gathered, { continuation: more.continuation });
        const rows = run(gathered);
        const end = Math.min(skip + size, rows.length);
        return finish(undefined, rows.slice(skip, end), { continuation: end < rows.length ? String(end) : undefined });
      };
      return { isAccepted: read(from) };
    }
  }

  // Request and response: a body and named values each.
  class Message {
    #body;
    #values = new Map();
    getBody() {
      return this.#body === undefined ? undefined : parse(this.#body);
    }
    setBody(value) {
      this.#body = text(value);
    }
    appendBody(value) {
      const now = this.getBody();
      this.setBody(now === undefined || now === '' ? asText(value) : asText(now) + asText(value));
    }
    getValue(key) {
      return isBody(key) ? this.getBody() : this.#values.get(String(key));
    }
    setValue(key, value) {
      if (isBody(key)) this.setBody(value);
      else this.#values.set(String(key), value);
    }
    appendValue(key, value) {
      if (isBody(key)) return this.appendBody(value);
      const now = this.#values.get(String(key));
      this.#values.set(String(key), now === undefined ? value : asText(now) + asText(value));
      return undefined;
    }
    getOperationType() {
      return host.operation;
    }
    static text(message) {
      return message.#body;
    }
    static setText(message, bodyText) {
      message.#body = bodyText;
    }
  }
  const isBody = (key) => String(key).toLowerCase() === 'body';
  const asText = (value) => (typeof value === 'object' && value !== null ? stringify(value) : String(value));

  class Response extends Message {
    getMaxResourceQuota() {
      return host.quota;
    }
    getResourceQuotaCurrentUsage() {
      return host.usage;
    }
  }

  const request = new Message();
  const response = new Response();
  const context = {
    getCollection: () => collection,
    getRequest: () => request,
    getResponse: () => response,
    abort(reason) {
      const problem = reason === undefined ? new NativeError('The script was aborted.') : reason;
      if (!aborted) problems.unshift(problem);
      aborted = true;
      throw problem;
    },
  };

  const codes = {
    BadRequest: 400, Forbidden: 403, NotFound: 404, RequestTimeout: 408, Conflict: 409, PreconditionFailed: 412,
    RequestEntityTooLarge: 413, TooManyRequests: 429, RetryWith: 449, InternalServerError: 500,
    BAD_REQUEST: 400, FORBIDDEN: 403, NOT_FOUND: 404, REQUEST_TIMEOUT: 408, CONFLICT: 409, PRECONDITION_FAILED: 412,
    REQUEST_ENTITY_TOO_LARGE: 413, TOO_MANY_REQUESTS: 429, RETRY_WITH: 449, INTERNAL_SERVER_ERROR: 500,
  };

  function shown(value) {
    if (typeof value === 'string') return value;
    if (value instanceof NativeError) return String(value);
    if (typeof value === 'object' && value !== null) {
      try {
        return stringify(value) || String(value);
      } catch {
        return String(value);
      }
    }
    return String(value);
  }

  function log(format, ...values) {
    let line;
    if (typeof format === 'string') {
      let next = 0;
      line = format.replace(/%[sdifjoO%]/g, (directive) => {
        if (directive === '%%') return '%';
        return next < values.length ? shown(values[next++]) : directive;
      });
      for (; next < values.length; next++) line += ' ' + shown(values[next]);
    } else {
      line = [format, ...values].map(shown).join(' ');
    }
    host.log(line);
  }

  const globals = {
    getContext: () => context,
    __: Object.assign(Object.create(collection), { request, response, getContext: () => context }),
    ErrorCodes: Object.freeze({ ...codes }),
    ErrorCode: Object.freeze({ ...codes }),
    console: { log, info: log, warn: log, error: log, debug: log, trace: log },
  };
  for (const name of Object.keys(globals)) {
    Object.defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true, enumerable: false });
  }

  return {
    call(script, argumentsText) {
      Message.setText(request, host.requestBody);
      Message.setText(response, host.responseBody);
      const returned = apply(script, undefined, parse(argumentsText));
      if (returned instanceof NativePromise) apply(then, returned, [undefined, (reason) => problems.push(reason)]);
    },
    take() {
      if (aborted || head === queue.length) return null;
      current = queue[head];
      queue[head++] = undefined;
      if (head === queue.length) {
        queue.length = 0;
        head = 0;
      }
      current.sees = seesResult(current.callback);
      return [current.kind, current.link, current.body, text(current.options), current.sees];
    },
    done(resource, continuation, notModified) {
      const { callback, sees } = current;
      if (typeof callback !== 'function') return;
      if (!sees) {
        callback(undefined);
        return;
      }
      const options = { continuation, maxCollectionSizeInMB: host.quota, currentCollectionSizeInMB: host.usage };
      if (notModified) options.notModified = true;
      callback(undefined, resource === undefined ? undefined : parse(resource), options);
    },
    fail(error, status, words) {
      define(error, 'message', { value: words, writable: true, configurable: true, enumerable: false });
      error.number = status;
      error.body = words;
      const { callback } = current;
      if (typeof callback !== 'function') throw error;
      callback(error, undefined, {});
    },
    body: (most) => shorter(Message.text(response), most),
    requestBody: (most) => shorter(Message.text(request), most),
    rejection(promise, reason, handled) {
      if (handled) rejections.delete(promise);
      else rejections.set(promise, reason);
    },
    problem() {
      for (const reason of [...problems, ...rejections.values()]) return { reason };
      return undefined;
    },
  };
});
