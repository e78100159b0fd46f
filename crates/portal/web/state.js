// What all pages share: who is signed in, where we are, what the tree shows, how it looks.
import { signal, computed } from "./vendor/preact.js";
import * as client from "./api/client.js";

const meta = (name) => /** @type {HTMLMetaElement | null} */ (document.querySelector(`meta[name="${name}"]`))?.content ?? "";
export const nonce = meta("csp-nonce");
export const version = meta("orrery-version");
export const wellKnownKey = meta("orrery-key") === "well-known";

/** What whoami said; null while nobody is signed in. */
export const session = signal(/** @type {any} */ (null));
export const readOnly = computed(() => session.value !== null && !session.value.writes);
export const READ_ONLY = "This key only reads.";

// ---- where we are -------------------------------------------------------------------------------------------------------------

export const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

/** The route as decoded parts: ["c", "shop", "orders", "items"]. */
export const route = computed(() => hash.value.replace(/^#\/?/, "").split("/").filter(Boolean).map((part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}));

/** @param {...string} parts */
export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
/** @param {...string} parts */
export const go = (...parts) => (location.hash = to(...parts));

// ---- the tree -----------------------------------------------------------------------------------------------------------------

/** Databases with their containers: [{id, containers: [definition] | null}], or null before they were read. */
export const databases = signal(/** @type {any[] | null} */ (null));
export const treeError = signal(/** @type {any} */ (null));

export async function loadTree() {
  try {
    const found = await client.list(["dbs"], "Databases");
    found.sort((a, b) => a.id.localeCompare(b.id));
    const loaded = await Promise.all(found.map(async (db) => {
      const containers = await client.list(["dbs", db.id, "colls"], "DocumentCollections");
      containers.sort((a, b) => a.id.localeCompare(b.id));
      return { ...db, containers };
    }));
    databases.value = loaded;
    treeError.value = null;
  } catch (error) {
    treeError.value = error;
  }
}

/** The definition of a container, as the tree has it. @param {string} db @param {string} coll */
export const definitionOf = (db, coll) =>
  databases.value?.find((one) => one.id === db)?.containers?.find((one) => one.id === coll) ?? null;

// ---- how it looks -------------------------------------------------------------------------------------------------------------

const THEME = "orrery-theme";
export const theme = signal(localStorage.getItem(THEME) ?? "auto");

/** @param {string} name auto, light or dark */
export function setTheme(name) {
  theme.value = name;
  localStorage.setItem(THEME, name);
  document.documentElement.dataset.theme = name;
}
document.documentElement.dataset.theme = theme.value;

/** A sentence for screen readers and the corner of the page. */
export const announcement = signal("");
let announced = 0;
/** @param {string} text */
export function announce(text) {
  announcement.value = text;
  clearTimeout(announced);
  announced = setTimeout(() => (announcement.value = ""), 5000);
}

/** Whether text was typed that a reload would lose. */
export const unsaved = signal(false);
addEventListener("beforeunload", (event) => unsaved.value && event.preventDefault());
