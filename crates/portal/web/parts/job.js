// Something done to many items, some at a time: how far it is, pause and go on, stop; what failed is kept.
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { toNdjson } from "../api/files.js";
import { ErrorBox, count, download, plural } from "./ui.js";

/** @typedef {{charge: number, failed?: {item: any, problem: any}[]}} Did */

/**
 * @param {{noun: string, name: string, done?: string, parallel: number, again?: boolean}} how
 *   `again`: doing the same twice changes nothing, so that what was under way at a stop may be done again
 */
export function useJob({ noun, name, done = "", parallel, again = false }) {
  const [, draw] = useState(0);
  const job = useRef({ state: "ready", total: 0, next: 0, done: 0, charge: 0, failed: /** @type {any[]} */ ([]), again: /** @type {any[][]} */ ([]), error: /** @type {any} */ (null), stop: new AbortController(),
    take: /** @type {() => any[]} */ (() => []), work: /** @type {(items: any[], signal: AbortSignal) => Promise<Did>} */ (async () => ({ charge: 0 })) }).current;
  useEffect(() => () => job.stop.abort(), []);
  const tell = (state = job.state) => ((job.state = state), draw((n) => n + 1));
  const go = async () => {
    const { signal } = (job.stop = new AbortController());
    tell("running");
    const timer = setInterval(tell, 200);
    await Promise.all(Array.from({ length: parallel }, async () => {
      while (job.state === "running" && !signal.aborted) {
        const items = job.again.pop() ?? job.take();
        if (!items.length) return;
        try {
          const { charge, failed = [] } = await job.work(items, signal);
          job.done += items.length - failed.length;
          job.charge += charge;
          job.failed.push(...failed);
        } catch (problem) {
          if (!signal.aborted) job.failed.push(...items.map((item) => ({ item, problem })));
          else if (again) job.again.push(items);
        }
      }
    }));
    clearInterval(timer);
    tell(signal.aborted ? "stopped" : left() ? "paused" : "done");
  };
  const left = () => job.total - job.done - job.failed.length;
  /** @param {(signal: AbortSignal, onRead: (rows: number) => void) => any[] | Promise<any[]>} rows what to work on @param {typeof job.work} work @param {number} [batch] @param {(row: any) => any} [of] a row as an item */
  const start = async (rows, work, batch = 1, of = (row) => row) => {
    const { signal } = (job.stop = new AbortController());
    job.error = null;
    tell("reading");
    try {
      const all = await rows(signal, (read) => ((job.next = read), tell()));
      Object.assign(job, { work, total: all.length, next: 0 });
      job.take = () => {
        const items = [];
        while (items.length < batch && job.next < all.length) {
          const row = all[job.next++];
          try {
            items.push(of(row));
          } catch (problem) {
            job.failed.push({ item: row instanceof Map ? Object.fromEntries(row) : row, problem });
          }
        }
        return items;
      };
      await go();
    } catch (problem) {
      job.error = signal.aborted ? null : problem;
      tell("stopped");
    }
  };
  const { state, failed } = job, total = plural(job.total, noun);
  // The button that began it is gone: the next one has the focus, for those who use no mouse.
  useEffect(() => void (state !== "reading" && document.activeElement === document.body && document.querySelector("dialog[open] .actions button")?.focus()), [state]);
  const busy = state === "reading" || state === "running" || state === "pausing";
  const goesOn = state === "paused" || (again && state === "stopped" && left() > 0);
  const estimate = job.done && left() && state !== "done" ? `, about ${((job.charge / job.done) * left()).toFixed(0)} RU to go` : "";
  const view = html`<${ErrorBox} error=${job.error} />
    ${state !== "ready" && html`<div class="progress" role="progressbar" aria-label=${`${noun}s${done || " done"}`} aria-valuenow=${job.done} aria-valuemin="0" aria-valuemax=${job.total}><span style=${{ width: `${(100 * (job.done + failed.length)) / Math.max(1, job.total)}%` }}></span></div>
      <p role="status">${state === "reading" ? `Reading which ${noun}s: ${count(job.next)}…` : `${count(job.done)} of ${total}${done}, ${job.charge.toFixed(1)} RU${estimate}${busy ? "…" : `. ${state[0].toUpperCase()}${state.slice(1)}.`}`}</p>`}
    ${failed.length > 0 && html`<p class="field-error">${plural(failed.length, noun)} failed. The first: ${failed[0].problem.message}</p>
      <button onClick=${() => download(`${name}-failed.ndjson`, [toNdjson(failed.map(({ item, problem }) => (again ? item : { ...item, error: problem.message })))], "application/x-ndjson")}>Save what failed</button>`}`;
  // One button for pause and going on, so that it keeps the focus; with keys, so that none is made of the one that began it.
  const buttons = html`${(goesOn || (busy && state !== "reading")) && html`<button key="pause" onClick=${() => (goesOn ? go() : state === "running" && tell("pausing"))}>${goesOn ? "Go on" : state === "running" ? "Pause" : "Pausing…"}</button>`}
    ${(busy || state === "paused") && html`<button key="stop" onClick=${() => (job.stop.abort(), busy || tell("stopped"))}>Stop</button>`}`;
  return { job, state, busy, start, view, buttons };
}
