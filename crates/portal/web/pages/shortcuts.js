// The list of keys, and the switch for those that are single letters.
import { html, useState } from "../vendor/preact.js";
import { Dialog } from "../parts/ui.js";

const KEYS = [
  ["Ctrl K", "go to anything"], ["Ctrl Enter", "run the query"], ["Ctrl Shift Enter", "run the selected text"], ["Ctrl Shift E", "show the plan"], ["Ctrl Space", "what can be typed here; inside of quotes, the values that items have"],
  ["Ctrl S", "save the item or script"], ["Alt N", "new item"], ["/", "filter"], ["↑ ↓ or j k", "rows"], ["Enter or e", "open the row"], ["x or Space", "select the row"], ["Del", "delete what is selected"], ["Ctrl C", "copy the row"],
  ["[ ]", "query before, query after"], ["n p", "in the graph: vertex after, vertex before; Enter expands, + − 0 zoom"], ["g then h i q v p s r c a", "go to Home, Items, Query, Graph, Partitions, Settings, Scripts, Changes, Advisor"], ["F6", "next region"], ["Esc", "close"], ["?", "this list"],
];

export default function Shortcuts({ onClose }) {
  const [letters, setLetters] = useState(localStorage.getItem("orrery-letters") !== "off");
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <table class="plain-table"><tbody>${KEYS.map(([keys, what]) => html`<tr key=${keys}><td class="nowrap"><kbd>${keys}</kbd></td><td>${what}</td></tr>`)}</tbody></table>
    <label class="row"><input type="checkbox" checked=${letters} onChange=${(event) => (setLetters(event.target.checked), localStorage.setItem("orrery-letters", event.target.checked ? "on" : "off"))} /> Single letters work outside of fields</label>
  </${Dialog}>`;
}
