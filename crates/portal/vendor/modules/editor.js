export { EditorState, Compartment, Prec, StateEffect, StateField } from "@codemirror/state";
export {
  EditorView, keymap, lineNumbers, drawSelection, highlightActiveLine, highlightSpecialChars, placeholder, tooltips,
  Decoration,
} from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export {
  bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting, syntaxTree,
} from "@codemirror/language";
export { autocompletion, closeBrackets, closeCompletion, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { linter, lintGutter, setDiagnostics } from "@codemirror/lint";
export { json, jsonParseLinter } from "@codemirror/lang-json";
export { tags } from "@lezer/highlight";
