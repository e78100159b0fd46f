// The shell: signs in, draws bars and tree, and shows the page that the address names. Pages come when they are needed.
import { html, render, useEffect, useState, signal } from "./vendor/preact.js";
import { WELL_KNOWN_KEY, importKey, keep, kept, signOut, whenSignedOut } from "./api/sign.js";
import { send, useKey, requests, throttled, unreachable } from "./api/client.js";
import { announcement, databases, definitionOf, go, loadTree, readOnly, route, session, setTheme, theme, to, version, wellKnownKey, READ_ONLY } from "./state.js";
import { ErrorBox, Field, Loading, count, usePolling } from "./parts/ui.js";
import { Tree } from "./parts/tree.js";
import { PAGES, pagesOf } from "./pages.js";

const treeOpen = signal(false);
const drawerOpen = signal(false);
const paletteOpen = signal(false);
const helpOpen = signal(false);
const starting = signal(true);

// ---- signing in ---------------------------------------------------------------------------------------------------------------

/** @param {CryptoKey} key */
async function enter(key) {
  useKey(key);
  const answer = await send("GET", ["_orrery", "whoami"]);
  session.value = answer.value;
  loadTree();
}

async function start() {
  whenSignedOut(() => {
    session.value = null;
    databases.value = null;
    useKey(null);
  });
  // The first page is on its way while the server says who we are.
  if (route.value.length === 0) import("./pages/home.js").then((module) => loaded.set("home", module.default), () => {});
  if (globalThis.crypto?.subtle) {
    try {
      // Where everybody knows the key, nobody waits for another tab to tell it.
      const key = (await kept(!wellKnownKey)) ?? (wellKnownKey ? await importKey(WELL_KNOWN_KEY) : null);
      if (key) await enter(key);
    } catch {
      useKey(null);
    }
  }
  starting.value = false;
}

async function leave() {
  await signOut();
  useKey(null);
  session.value = null;
  databases.value = null;
}

function SignIn() {
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  if (!globalThis.crypto?.subtle) {
    const secure = `https://${location.host}/_explorer/`;
    return html`<main class="signin"><h1>Orrery</h1>
      <p>This page was opened without encryption from another machine. Browsers sign requests only on pages they can trust.</p>
      <p><a class="button primary" href=${secure}>Open it with https</a></p>
      <p class="muted">The certificate is the server's own unless you gave it one: <a href="/_explorer/emulator.pem">emulator.pem</a>.</p></main>`;
  }
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const key = await importKey(text);
      await enter(key);
      await keep(key);
      setText("");
    } catch (problem) {
      useKey(null);
      const wrong = problem instanceof DOMException || problem instanceof TypeError;
      setError(wrong ? new Error("That is no key: keys are base64, 88 characters long as a rule.") : problem.status === 401 ? new Error("The server does not know this key, or the clocks of this machine and the server differ by more than 15 minutes.") : problem);
    }
    setBusy(false);
  };
  return html`<main class="signin"><form onSubmit=${submit}>
    <img src=${new URL("icon.svg", import.meta.url).pathname} alt="" width="48" height="48" /><h1>Sign in to Orrery</h1>
    <${Field} label="Account key" hint="One of the server's keys: --key, or --readonly-key to look without changing. It stays in this tab and cannot be read back.">
      ${(id) => html`<input id=${id} type="password" autocomplete="off" spellcheck="false" required autofocus value=${text} onInput=${(event) => setText(event.target.value)} />`}
    </${Field}>
    <${ErrorBox} error=${error} title="Not signed in" />
    <button class="primary" disabled=${busy}>${busy ? "Signing in…" : "Sign in"}</button>
    ${wellKnownKey && html`<p class="muted">This server accepts the emulator's well-known key. <button type="button" class="link" onClick=${() => setText(WELL_KNOWN_KEY)}>Use it</button></p>`}
  </form></main>`;
}

// ---- pages --------------------------------------------------------------------------------------------------------------------

const loaded = new Map();

function Page({ name, ...properties }) {
  const [, again] = useState(0);
  const known = loaded.get(name);
  useEffect(() => {
    if (!loaded.has(name)) {
      import(`./pages/${name}.js`).then((module) => loaded.set(name, module.default), (error) => loaded.set(name, error)).then(() => again((n) => n + 1));
    }
  }, [name]);
  if (!known) return html`<${Loading} />`;
  if (known instanceof Error) {
    return html`<${ErrorBox} error=${new Error("A part of the page could not be loaded. If the server was updated meanwhile, reload the page.")} onRetry=${() => location.reload()} />`;
  }
  return html`<${known} ...${properties} />`;
}

function Main() {
  const [first = "", db, coll, page = "items", ...rest] = route.value;
  const pages = pagesOf(db, definitionOf(db, coll));
  useEffect(() => {
    treeOpen.value = false;
    document.title = first === "c" ? `${coll} · ${pages[page]?.[1] ?? ""} · Orrery` : `${PAGES[first]?.[1] ?? db ?? ""} · Orrery`;
  }, [first, db, coll, page]);
  if (first === "c" && db && coll && pages[page]) {
    if (!databases.value) return html`<${Loading} />`;
    return html`<nav class="tabs" aria-label=${`Pages of ${coll}`}>
      ${Object.entries(pages).map(([path, [, title]]) => html`<a key=${path} href=${to("c", db, coll, path)} aria-current=${path === page ? "page" : undefined}>${title}</a>`)}
    </nav>
    <${Page} key=${`${db}/${coll}/${page}`} name=${pages[page][0]} db=${db} coll=${coll} rest=${rest} />`;
  }
  if (first === "d" && db) return html`<${Page} key=${`${db}/${coll ?? ""}`} name=${coll === "users" ? "access" : "database"} db=${db} />`;
  if (first in PAGES) return html`<${Page} key=${first} name=${PAGES[first][0]} rest=${route.value.slice(1)} />`;
  return html`<h1>There is no such page</h1><p><a href="#/">Home</a></p>`;
}

// ---- the shell ----------------------------------------------------------------------------------------------------------------

const THEMES = { auto: ["light", "◐", "as the system"], light: ["dark", "☀", "light"], dark: ["auto", "☾", "dark"] };

function TopBar() {
  const [next, icon, name] = THEMES[theme.value] ?? THEMES.auto;
  const mode = readOnly.value ? "read-only key" : wellKnownKey && session.value?.principal === "primary" ? "well-known key" : "own key";
  return html`<header class="top">
    <button class="plain menu" aria-label="Databases" aria-expanded=${treeOpen.value ? "true" : "false"} onClick=${() => (treeOpen.value = !treeOpen.value)}>☰</button>
    <a class="brand" href="#/"><img src=${new URL("icon.svg", import.meta.url).pathname} alt="" width="24" height="24" /><span>Orrery</span> <small>${version}</small></a>
    <span class=${`badge ${readOnly.value ? "warn" : ""}`} title=${readOnly.value ? READ_ONLY : "Who you are to the server"}>${mode}</span>
    ${session.value?.throttling && html`<span class="badge warn" title="Requests beyond the provisioned throughput get 429">throttling on</span>`}
    ${throttled.value > 0 && html`<span class="badge bad" role="status">429 · waiting</span>`}
    <span class="grow"></span>
    <button class="plain search" onClick=${() => (paletteOpen.value = true)}><span class="wide-only">Go to… </span><kbd>Ctrl K</kbd></button>
    <button class="plain" aria-label=${`Colours: ${name}. Change`} title=${`Colours: ${name}`} onClick=${() => setTheme(next)}>${icon}</button>
    <button class="plain keys" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick=${() => (helpOpen.value = true)}>?</button>
    <button class="plain" onClick=${leave}>Sign out</button>
  </header>`;
}

function Drawer() {
  const all = requests.value;
  const spent = all.reduce((sum, one) => sum + one.charge, 0);
  return html`<section class=${`drawer ${drawerOpen.value ? "open" : ""}`} aria-label="Requests">
    <button class="plain drawer-handle" aria-expanded=${drawerOpen.value ? "true" : "false"} onClick=${() => (drawerOpen.value = !drawerOpen.value)}>
      ${drawerOpen.value ? "▾" : "▸"} Requests <span class="muted">${count(all.length)} · ${spent.toFixed(1)} RU</span></button>
    ${drawerOpen.value && html`<${Page} name="requests" />`}
  </section>`;
}

const FAULTS_POLL_MS = 5000;

/** Nobody should wonder why requests fail that were meant to. */
function FaultBar() {
  const [rules, setRules] = useState(0);
  usePolling(async () => {
    try {
      setRules((await send("GET", ["_orrery", "faults"], { quiet: true })).value.rules.length);
    } catch {
      // Whoever cannot read the rules cannot be told of them.
    }
  }, FAULTS_POLL_MS);
  return rules > 0 && route.value[0] !== "faults" ? html`<div class="banner" role="status">${count(rules)} fault rule${rules === 1 ? " is" : "s are"} in force: requests fail on purpose. <a href="#/faults">Faults</a></div>` : null;
}

function Shell() {
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>Skip to the page</a>
    <${TopBar} />
    ${unreachable.value && html`<div class="banner" role="alert">The server does not answer. Nothing that you typed is lost. <button onClick=${() => loadTree()}>Try again</button></div>`}
    <${FaultBar} />
    <div class=${`body ${treeOpen.value ? "tree-open" : ""}`}>
      <nav class="tree" aria-label="Databases"><${Tree} /></nav>
      <main id="main" tabindex="-1"><${Main} /></main>
    </div>
    <${Drawer} />
    ${paletteOpen.value && html`<${Page} name="palette" onClose=${() => (paletteOpen.value = false)} />`}
    ${helpOpen.value && html`<${Page} name="shortcuts" onClose=${() => (helpOpen.value = false)} />`}
    <div class="announcement" role="status" aria-live="polite">${announcement.value}</div>`;
}

function App() {
  if (starting.value) return html`<p class="starting">Starting…</p>`;
  return session.value ? html`<${Shell} />` : html`<${SignIn} />`;
}

// ---- keys ---------------------------------------------------------------------------------------------------------------------

/** @param {EventTarget | null} target */
const isTyping = (target) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
let goes = 0;

addEventListener("keydown", (event) => {
  if (!session.value) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    paletteOpen.value = !paletteOpen.value;
    return;
  }
  if (event.key === "F6") {
    event.preventDefault();
    const regions = [...document.querySelectorAll("nav.tree a, #main, .drawer-handle, header.top a")].filter((one, at, all) => all.findIndex((other) => other.parentElement === one.parentElement) === at);
    const here = regions.findIndex((region) => region.contains(document.activeElement) || region.parentElement === document.activeElement?.parentElement);
    /** @type {HTMLElement} */ (regions[(here + 1) % regions.length])?.focus();
    return;
  }
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || localStorage.getItem("orrery-letters") === "off") return;
  if (event.key === "?") helpOpen.value = true;
  if (event.key === "/") {
    const filter = /** @type {HTMLElement | null} */ (document.querySelector("[data-filter]"));
    if (filter) event.preventDefault(), filter.focus();
  }
  if (event.key === "g") goes = event.timeStamp;
  else if (event.timeStamp - goes < 1500) {
    goes = 0;
    const [first, db, coll] = route.value;
    const page = Object.entries(pagesOf(db, definitionOf(db, coll))).find(([, [, , letter]]) => letter === event.key);
    if (event.key === "h") go();
    else if (page && first === "c") go("c", db, coll, page[0]);
  }
});

render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
start();
