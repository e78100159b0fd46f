// The text editor: CodeMirror with our colours, loaded when the first editor opens.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { nonce } from "../state.js";
import { sqlMode } from "./sql-mode.js";
import { gremlinMode } from "./gremlin-mode.js";
import { mongoMode } from "./mongo-mode.js";

/** Texts that may still be on their way back to the editor that they came from. */
const TOLD_MAX = 20;

/** Languages with modes of our own. A $filter has the literals and operators of SQL as far as colours go. */
const STREAMS = { sql: sqlMode, gremlin: gremlinMode, filter: sqlMode, mongo: mongoMode };

/** @type {Promise<any> | null} */
let loading = null;
const load = () => (loading ??= import("../vendor/editor.js"));

function theme(cm) {
  const look = cm.EditorView.theme({
    "&": { backgroundColor: "var(--panel)", color: "var(--text)", fontSize: "13px" },
    "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
    ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--muted)", border: "none" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 8%, transparent)" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 28%, transparent) !important" },
    ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-fill)", color: "#fff" },
    ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", marginLeft: "1em" },
    ".cm-tooltip-autocomplete ul li[aria-selected] .cm-completionDetail": { color: "#fff" },
    ".cm-panels": { backgroundColor: "var(--bg)", color: "var(--text)" },
    ".cm-placeholder": { color: "var(--muted)" },
    ".cm-foldPlaceholder": { backgroundColor: "var(--bg)", borderColor: "var(--line)", color: "var(--muted)" },
    ".cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent) !important" },
  });
  const t = cm.tags;
  const colours = cm.HighlightStyle.define([
    { tag: [t.keyword, t.operatorKeyword, t.bool, t.null], color: "var(--code-keyword)" },
    { tag: [t.string, t.special(t.string)], color: "var(--code-string)" },
    { tag: t.number, color: "var(--code-number)" },
    { tag: [t.propertyName, t.attributeName], color: "var(--code-property)" },
    { tag: [t.function(t.variableName), t.standard(t.variableName)], color: "var(--code-property)" },
    { tag: t.special(t.variableName), color: "var(--code-number)" },
    { tag: [t.comment, t.lineComment, t.blockComment], color: "var(--code-comment)", fontStyle: "italic" },
    { tag: t.invalid, color: "var(--bad)" },
  ]);
  return [look, cm.syntaxHighlighting(colours)];
}

/**
 * Typing over a selection. Left to itself, Chromium keeps the look of what was there with a style attribute, which the page's
 * policy forbids; so the editor replaces the text itself. @param {any} cm @param {InputEvent} event @param {any} view
 */
function overwrite(cm, event, view) {
  const { main, ranges } = view.state.selection;
  if (event.inputType !== "insertText" || event.isComposing || event.data === null || main.empty || ranges.length > 1 || view.state.readOnly) return false;
  event.preventDefault();
  const insert = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  const taken = view.state.facet(cm.EditorView.inputHandler).some((handler) => handler(view, main.from, main.to, event.data, insert));
  if (!taken) view.dispatch(insert());
  return true;
}

/**
 * @param {{value: string, label: string, language?: string, onChange?: (text: string) => void, keys?: Record<string, (view: any) => void>,
 *   readOnly?: boolean, size?: string, complete?: (context: any) => any, hint?: string, handle?: (view: any, cm: any) => void, focus?: boolean}} properties
 */
export function Editor({ value, label, language = "json", onChange, keys = {}, readOnly = false, size = "", complete, hint = "", handle, focus = false }) {
  const place = useRef(null);
  const view = useRef(/** @type {any} */ (null));
  const now = useRef({ onChange, keys, complete });
  now.current = { onChange, keys, complete };
  /** Texts that came from the editor itself: they are not put back into it while somebody types on. */
  const told = useRef([value]);
  const [failed, setFailed] = useState(false);
  const tell = (text) => {
    told.current = [...told.current.slice(-TOLD_MAX), text];
    now.current.onChange?.(text);
  };

  useEffect(() => {
    let gone = false;
    (async () => {
      const cm = await load();
      const js = language === "js" ? await import("../vendor/editor-js.js") : null;
      if (gone || !place.current) return;
      const bound = Object.keys(keys).map((key) => ({ key, preventDefault: true, run: (at) => (cm.closeCompletion(at), now.current.keys[key]?.(at), true) }));
      const mode = language === "json" ? [cm.json(), cm.linter(cm.jsonParseLinter())] : language in STREAMS ? cm.StreamLanguage.define(STREAMS[language]) : js ? js.javascript() : [];
      const extensions = [
        cm.EditorView.cspNonce.of(nonce),
        cm.Prec.highest(cm.keymap.of(bound)),
        cm.lineNumbers(), cm.foldGutter(), cm.history(), cm.drawSelection(), cm.indentOnInput(), cm.bracketMatching(), cm.closeBrackets(),
        cm.highlightActiveLine(), cm.highlightSpecialChars(), cm.highlightSelectionMatches(), cm.search({ top: true }),
        cm.autocompletion(language in STREAMS ? { icons: false, override: [(context) => now.current.complete?.(context) ?? null] } : {}),
        cm.keymap.of([...cm.closeBracketsKeymap, ...cm.completionKeymap, ...cm.searchKeymap, ...cm.historyKeymap, ...cm.foldKeymap, ...cm.defaultKeymap]),
        mode, theme(cm), cm.EditorView.lineWrapping,
        cm.EditorView.contentAttributes.of({ "aria-label": label }),
        cm.EditorView.domEventHandlers({ beforeinput: (event, at) => overwrite(cm, event, at) }),
        cm.EditorState.readOnly.of(readOnly),
        ...(hint ? [cm.placeholder(hint)] : []),
        cm.EditorView.updateListener.of((update) => update.docChanged && tell(update.state.doc.toString())),
      ];
      view.current = new cm.EditorView({ parent: place.current, state: cm.EditorState.create({ doc: value, extensions }) });
      handle?.(view.current, cm);
      if (focus) view.current.focus();
    })().catch(() => setFailed(true));
    return () => {
      gone = true;
      view.current?.destroy();
      view.current = null;
    };
  }, [language, readOnly]);

  useEffect(() => {
    const editor = view.current;
    if (value === told.current.at(-1)) told.current = [value];
    if (!editor || told.current.includes(value)) return;
    told.current = [value];
    if (editor.state.doc.toString() !== value) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);

  if (failed) {
    return html`<textarea class=${`editor ${size}`} aria-label=${label} value=${value} readonly=${readOnly} onInput=${(event) => onChange?.(event.target.value)}></textarea>`;
  }
  return html`<div class=${`editor ${size}`} ref=${place}></div>`;
}

/** Two texts beside each other, with what differs marked; the right one can be edited. */
export function Diff({ before, after, onChange, labels, readOnly = false }) {
  const place = useRef(null);
  useEffect(() => {
    let made = null;
    let gone = false;
    (async () => {
      const [cm, diff] = await Promise.all([load(), import("../vendor/editor-diff.js")]);
      if (gone || !place.current) return;
      const common = (label) => [cm.EditorView.cspNonce.of(nonce), cm.lineNumbers(), cm.json(), theme(cm), cm.EditorView.lineWrapping, cm.EditorView.contentAttributes.of({ "aria-label": label })];
      made = new diff.MergeView({
        parent: place.current,
        a: { doc: before, extensions: [...common(labels[0]), cm.EditorState.readOnly.of(true)] },
        b: { doc: after, extensions: [...common(labels[1]), cm.EditorState.readOnly.of(readOnly), cm.keymap.of(cm.defaultKeymap), cm.history(), cm.EditorView.updateListener.of((update) => update.docChanged && onChange?.(update.state.doc.toString()))] },
        revertControls: readOnly ? undefined : "a-to-b",
        collapseUnchanged: { margin: 3, minSize: 6 },
      });
    })();
    return () => {
      gone = true;
      made?.destroy();
    };
  }, []);
  return html`<div class="merge" ref=${place}></div>`;
}
