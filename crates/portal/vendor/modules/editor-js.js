export { javascript } from "@codemirror/lang-javascript";
