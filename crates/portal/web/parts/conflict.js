// Somebody else saved first: theirs on the left, mine on the right, and what is saved is what stands there.
import { html, useRef } from "../vendor/preact.js";
import { Dialog, ErrorBox } from "./ui.js";
import { Diff } from "./editor.js";

/** @param {{noun: string, mine: string, theirs: string, onKeep: (merged: string) => void, onTheirs: () => void, onClose: () => void, busy: boolean, error: any}} properties */
export function Conflict({ noun, mine, theirs, onKeep, onTheirs, onClose, busy, error }) {
  const merged = useRef(mine);
  return html`<${Dialog} title=${`Somebody changed this ${noun} meanwhile`} wide=${true} onClose=${onClose}>
    <p>Left is what the server has now, right is yours. Take over single changes with the arrows between them, edit the right side, then save.</p>
    <${Diff} before=${theirs} after=${mine} labels=${["On the server now", "Yours"]} onChange=${(text) => (merged.current = text)} />
    <${ErrorBox} error=${error} />
    <div class="actions"><button onClick=${onClose}>Go on editing</button><button onClick=${onTheirs}>Take theirs</button><button class="primary" disabled=${busy} onClick=${() => onKeep(merged.current)}>Save the right side</button></div>
  </${Dialog}>`;
}
