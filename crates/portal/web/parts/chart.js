// A line over time: uPlot in our colours, loaded when the first chart is shown.
import { html, useEffect, useRef } from "../vendor/preact.js";
import { theme } from "../state.js";

/** @type {Promise<any> | null} */
let loading = null;
function load() {
  return (loading ??= (async () => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL("../vendor/uplot.css", import.meta.url).pathname;
    document.head.append(link);
    return (await import("../vendor/uplot.js")).default;
  })());
}

const HEIGHT_PX = 170;
/** A chart of a few seconds would be all noise. */
const SPAN_S_MIN = 60;
/** What an axis shows at least: nothing at all is a line at the bottom. */
const LEAST = 1;
/** Before the first figure there is an empty minute. @param {number[][]} data */
const drawn = (data) => (data[0].length ? data : [[Date.now() / 1000 - SPAN_S_MIN, Date.now() / 1000], ...data.slice(1).map(() => [null, null])]);
/** Colours as canvases need them. @param {string} name */
const colour = (name) => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};

/** @param {{title: string, series: {name: string, colour: string, dash?: number[]}[], data: number[][], unit: (n: number) => string}} properties */
export function Chart({ title, series, data, unit }) {
  const place = useRef(null);
  const plot = useRef(/** @type {any} */ (null));
  const latest = useRef(data);
  latest.current = drawn(data);
  useEffect(() => {
    let gone = false;
    let observer = /** @type {ResizeObserver | null} */ (null);
    load().then((uPlot) => {
      const element = place.current;
      if (gone || !element) return;
      const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
      plot.current = new uPlot({
        width: element.clientWidth, height: HEIGHT_PX, legend: { show: false },
        series: [{}, ...series.map((one) => ({ label: one.name, stroke: colour(one.colour), width: 2, dash: one.dash, points: { show: false }, value: (_, n) => (n === null || n === undefined ? "–" : unit(n)) }))],
        axes: [axis, { ...axis, size: 64, values: (_, /** @type {number[]} */ all) => all.map(unit) }],
        scales: { x: { range: (_, low, high) => (high ? [Math.min(low, high - SPAN_S_MIN), high] : [Date.now() / 1000 - SPAN_S_MIN, Date.now() / 1000]) }, y: { range: (_, __, high) => [0, Math.max(high * 1.1, LEAST)] } },
      }, latest.current, element);
      observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
      observer.observe(element);
    });
    return () => {
      gone = true;
      observer?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [theme.value]);
  useEffect(() => plot.current?.setData(drawn(data)), [data]);
  const now = series.map((one, n) => `${one.name} ${unit(data[n + 1].at(-1) ?? 0)}`).join(", ");
  return html`<section class="card"><h2>${title} <small class="muted">${now}</small></h2><div class="chart" ref=${place} role="img" aria-label=${`${title} over the last minutes. Now: ${now}`}></div></section>`;
}
