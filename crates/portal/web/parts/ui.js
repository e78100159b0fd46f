// Small parts that every page uses: errors that stay, dialogs that give the focus back, figures for people.
import { html, useEffect, useRef, useState, useId } from "../vendor/preact.js";
import { announce } from "../state.js";

// ---- figures ------------------------------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
/** @param {number} n */
export const count = (n) => whole.format(n);
/** @param {number} n */
export const figure = (n) => (Math.abs(n) >= 1000 ? whole : fine).format(n);
/** @param {number} n */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** @param {number} bytes */
export function bytes(bytes) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1000 && at < units.length - 1) {
    bytes /= 1000;
    at += 1;
  }
  return `${bytes >= 100 || at === 0 ? whole.format(bytes) : bytes.toFixed(1)} ${units[at]}`;
}

/** @param {number} ms */
export const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`);

// ---- errors -------------------------------------------------------------------------------------------------------------------

/** What to do about an error, where that can be said. @param {any} error */
function advice(error) {
  switch (error.status) {
    case 0: return "Nothing that you typed is lost; try again when the server is back.";
    case 401: return "Sign out and in again. If the key is right, compare the clocks of this machine and the server.";
    case 403: return "The key or its limits do not allow this.";
    case 408: return "It took too long. Ask for less, or try again.";
    case 409: return "Something with this id is there already.";
    case 412: return "Somebody changed it meanwhile.";
    case 413: return "An item may have 2 MB.";
    case 429: return "More request units were asked for than the container has. Try again in a moment, or give it more throughput.";
    case 503: return "The server has no room for this right now. Try again.";
    default: return "";
  }
}

/** An error that stays on the page. */
export function ErrorBox({ error, title = "", onRetry = null, onClose = null }) {
  if (!error) return null;
  const hint = advice(error);
  return html`<div class="error" role="alert">
    <div class="error-head"><strong>${title || "That did not work"}</strong>
      ${error.status ? html` <span class="badge bad">${error.status}${error.substatus ? `/${error.substatus}` : ""}</span>` : null}
      ${onClose && html`<button class="plain small" onClick=${onClose} aria-label="Dismiss this message">✕</button>`}</div>
    <p class="error-text">${error.message ?? String(error)}</p>
    ${hint && html`<p class="muted">${hint}</p>`}
    ${error.activity && html`<p class="muted small">Activity <code>${error.activity}</code> <${Copy} text=${error.activity} what="activity id" /></p>`}
    ${onRetry && html`<button onClick=${onRetry}>Try again</button>`}
  </div>`;
}

// ---- buttons and fields -------------------------------------------------------------------------------------------------------

/** @param {{text: string | (() => string), what: string, label?: string}} properties */
export function Copy({ text, what, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      setDone(true);
      announce(`Copied the ${what}`);
      setTimeout(() => setDone(false), 1500);
    } catch {
      announce("The browser did not allow copying");
    }
  };
  return html`<button type="button" class="plain small" onClick=${copy} aria-label=${`Copy the ${what}`}>${done ? "✓ Copied" : label}</button>`;
}

export function Field({ label, hint = "", error = "", children }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children(id)}
    ${hint && html`<p class="muted small hint">${hint}</p>`}
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
  </div>`;
}

/** One of a few choices. @param {{label: string, value: string, options: [string, string][], onChange: (value: string) => void}} properties */
export function Choice({ label, value, options, onChange }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(([name, text]) => html`<button type="button" key=${name} aria-pressed=${value === name ? "true" : "false"} onClick=${() => onChange(name)}>${text}</button>`)}
  </div>`;
}

// ---- dialogs ------------------------------------------------------------------------------------------------------------------

/** A modal dialog; the browser keeps the focus inside and gives it back. */
export function Dialog({ title, onClose, children, wide = false }) {
  const element = useRef(null);
  const id = useId();
  useEffect(() => {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    element.current?.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${element} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${(event) => (event.preventDefault(), onClose())}>
    <div class="dialog-head"><h2 id=${id}>${title}</h2><button class="plain" onClick=${onClose} aria-label="Close">✕</button></div>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/** Asks before something is destroyed; with `name`, it must be typed. */
export function Confirm({ title, text, action, name = "", onDo, onClose }) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const run = async (event) => {
    event.preventDefault();
    if (name && typed !== name) return;
    setBusy(true);
    try {
      await onDo();
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${run}>
      <p>${text}</p>
      ${name && html`<${Field} label=${html`Type <strong>${name}</strong> to confirm`}>${(id) => html`<input id=${id} autocomplete="off" autofocus value=${typed} onInput=${(event) => setTyped(event.target.value)} />`}</${Field}>`}
      <${ErrorBox} error=${error} />
      <div class="actions"><button type="button" onClick=${onClose}>Cancel</button>
        <button class="danger" disabled=${busy || (name && typed !== name)}>${busy ? "Working…" : action}</button></div>
    </form>
  </${Dialog}>`;
}

export const Loading = ({ what = "Loading" }) => html`<p class="loading" role="status"><span class="spinner" aria-hidden="true"></span> ${what}…</p>`;

/** Runs `work` now and again while the page is visible. @param {() => Promise<unknown>} work @param {number} ms @param {unknown[]} inputs */
export function usePolling(work, ms, inputs = []) {
  useEffect(() => {
    let timer = 0;
    let over = false;
    const round = async () => {
      if (!document.hidden) await work();
      if (!over) timer = setTimeout(round, ms);
    };
    round();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [ms, ...inputs]);
}

/** Gives a file to the person. @param {string} name @param {BlobPart[]} parts @param {string} type */
export function download(name, parts, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
