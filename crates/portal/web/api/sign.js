// Keys and signatures. A key that was typed becomes a CryptoKey that nobody can export again, not even this page; it lives in
// IndexedDB under a random name that only this tab's sessionStorage knows, and is gone with the tab. A second tab gets it from a
// living one over a BroadcastChannel.

/** The emulator's key, which everybody knows; servers that accept it listen on loopback only. */
export const WELL_KNOWN_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const DATABASE = "orrery-portal";
const STORE = "keys";
const SLOT = "orrery-key-slot";
/** How long to wait for another tab to hand its key over. */
const HANDOVER_MS = 250;

/** @param {string} text in base64 @returns {Promise<CryptoKey>} */
export function importKey(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  if (bytes.length === 0) throw new Error("The key is empty.");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

/**
 * The authorization header of a request.
 * @param {CryptoKey} key @param {string} method @param {string} type @param {string} link @param {string} date
 */
export async function authorization(key, method, type, link, date) {
  const text = `${method.toLowerCase()}\n${type.toLowerCase()}\n${link}\n${date.toLowerCase()}\n\n`;
  return encodeURIComponent(`type=master&ver=1.0&sig=${await signature(key, text)}`);
}

/** A text signed, in base64. @param {CryptoKey} key @param {string} text */
export async function signature(key, text) {
  const bytes = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(bytes)));
}

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @template T @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest<T>} work @returns {Promise<T>} */
async function inStore(mode, work) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const request = work(database.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } finally {
    database.close();
  }
}

const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(DATABASE) : null;
/** @type {CryptoKey | null} */
let current = null;
/** Called when another tab signed out. */
let onSignedOut = () => {};

channel?.addEventListener("message", (event) => {
  if (event.data?.ask && current) channel.postMessage({ key: current });
  if (event.data?.alive && current) channel.postMessage({ slot: sessionStorage.getItem(SLOT) });
  if (event.data?.end) {
    current = null;
    sessionStorage.removeItem(SLOT);
    onSignedOut();
  }
});

/** @param {() => void} then */
export function whenSignedOut(then) {
  onSignedOut = then;
}

/** Keeps a key for this tab, over reloads. @param {CryptoKey} key */
export async function keep(key) {
  current = key;
  const slot = crypto.randomUUID();
  try {
    await inStore("readwrite", (store) => store.put(key, slot));
    sessionStorage.setItem(SLOT, slot);
  } catch {
    // Private windows may refuse; then a reload asks for the key again.
  }
  sweep();
}

/** The key of this tab, or, where they are asked, that of a living one. @param {boolean} askOthers @returns {Promise<CryptoKey | null>} */
export async function kept(askOthers) {
  const slot = sessionStorage.getItem(SLOT);
  try {
    const key = slot ? await inStore("readonly", (store) => store.get(slot)) : null;
    if (key) return (current = key);
  } catch {
    // As if there were none.
  }
  const given = askOthers ? await fromAnotherTab() : null;
  if (given) await keep(given);
  return given;
}

/** @returns {Promise<CryptoKey | null>} */
function fromAnotherTab() {
  return new Promise((resolve) => {
    if (!channel) return resolve(null);
    /** @param {MessageEvent} event */
    const answer = (event) => event.data?.key && done(event.data.key);
    /** @param {CryptoKey | null} key */
    const done = (key) => {
      channel.removeEventListener("message", answer);
      resolve(key);
    };
    channel.addEventListener("message", answer);
    channel.postMessage({ ask: true });
    setTimeout(() => done(null), HANDOVER_MS);
  });
}

/** Removes the keys of tabs that are no more. */
function sweep() {
  if (!channel) return;
  const living = new Set([sessionStorage.getItem(SLOT)]);
  /** @param {MessageEvent} event */
  const note = (event) => event.data?.slot && living.add(event.data.slot);
  channel.addEventListener("message", note);
  channel.postMessage({ alive: true });
  setTimeout(async () => {
    channel.removeEventListener("message", note);
    try {
      for (const slot of await inStore("readonly", (store) => store.getAllKeys())) {
        if (!living.has(String(slot))) await inStore("readwrite", (store) => store.delete(slot));
      }
    } catch {
      // Tidying up can wait.
    }
  }, 4 * HANDOVER_MS);
}

/** Ends the session of all tabs. */
export async function signOut() {
  current = null;
  sessionStorage.removeItem(SLOT);
  channel?.postMessage({ end: true });
  try {
    await inStore("readwrite", (store) => store.clear());
  } catch {
    // Nothing was kept.
  }
}
