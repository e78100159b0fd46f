// The throughput of a container or a database: read, changed, and switched between manual and autoscale.
import { html, useEffect, useState } from "../vendor/preact.js";
import { send } from "../api/client.js";
import { announce, readOnly, session, READ_ONLY } from "../state.js";
import { ErrorBox, Loading, count } from "./ui.js";
import { Throughput } from "./throughput.js";
import { partitionsFor } from "../api/shape.js";

/** @param {{of: any, absent: string, partitions?: number, onChanged?: () => void}} properties */
export function Scale({ of, absent, partitions = 0, onChanged, picture = false }) {
  const [offer, setOffer] = useState(/** @type {any} */ (undefined));
  const [amount, setAmount] = useState({ kind: "manual", value: 400 });
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const take = (found, minimum) => {
    setOffer(found ? { ...found, minimum } : null);
    const auto = found?.content?.offerAutopilotSettings;
    if (found) setAmount(auto ? { kind: "autoscale", value: auto.maxThroughput } : { kind: "manual", value: found.content.offerThroughput });
  };
  const read = async () => {
    try {
      const found = await send("POST", ["offers"], { quiet: true, headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true" }, body: { query: "SELECT * FROM o WHERE o.offerResourceId = @rid", parameters: [{ name: "@rid", value: of._rid }] } });
      const one = found.value.Offers[0];
      if (!one) return take(null, 0);
      const whole = await send("GET", ["offers", one._rid], { quiet: true, link: one._rid.toLowerCase() });
      take(whole.value, Number(whole.headers.get("x-ms-cosmos-min-throughput") ?? 400));
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => void read(), [of._rid]);
  if (session.value.serverless) return html`<p class="muted">The account is serverless: every physical partition serves up to 5,000 RU/s.</p>`;
  if (error && offer === undefined) return html`<${ErrorBox} error=${error} onRetry=${read} />`;
  if (offer === undefined) return html`<${Loading} />`;
  if (offer === null) return html`<p class="muted">${absent}</p>`;
  const now = offer.content.offerAutopilotSettings ? { kind: "autoscale", value: offer.content.offerAutopilotSettings.maxThroughput } : { kind: "manual", value: offer.content.offerThroughput };
  const same = now.kind === amount.kind && now.value === amount.value;
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const path = ["offers", offer._rid], link = offer._rid.toLowerCase();
      const { minimum, ...body } = structuredClone(offer);
      if (amount.kind !== now.kind) {
        const header = amount.kind === "autoscale" ? "x-ms-cosmos-migrate-offer-to-autopilot" : "x-ms-cosmos-migrate-offer-to-manual-throughput";
        const content = amount.kind === "autoscale" ? { ...body.content, offerThroughput: -1 } : { ...body.content, offerThroughput: -1 };
        await send("PUT", path, { link, headers: { [header]: "true" }, body: { ...body, content } });
        const whole = await send("GET", path, { link, quiet: true });
        Object.assign(body, whole.value);
      }
      const content = amount.kind === "autoscale" ? { offerAutopilotSettings: { ...body.content.offerAutopilotSettings, maxThroughput: amount.value } } : { ...body.content, offerThroughput: amount.value };
      await send("PUT", path, { link, body: { ...body, content } });
      announce("The throughput is set");
      await read();
      onChanged?.();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const will = partitionsFor(amount.value, session.value.partitionThroughputLimit);
  return html`<${Throughput} ...${amount} minimum=${offer.minimum} kinds=${[["manual", "Manual"], ["autoscale", "Autoscale"]]} onChange=${setAmount} />
    <p class="muted small">Now ${now.kind === "autoscale" ? "autoscale up to " : ""}${count(now.value)} RU/s; the least possible is ${count(offer.minimum)}.</p>
    ${picture && html`<${Preview} now=${partitions} will=${Math.max(will, partitions)} share=${amount.value / Math.max(will, partitions)} />`}
    ${partitions > 0 && will > partitions && html`<p class="badge warn">Makes ${will} physical partitions out of ${partitions}: they are split while they serve, and do not come together again by themselves.</p>`}
    <${ErrorBox} error=${error} title="Not changed" />
    <div class="actions"><button class="primary" disabled=${same || busy || readOnly.value} title=${readOnly.value ? READ_ONLY : undefined} onClick=${save}>${busy ? "Setting…" : "Set the throughput"}</button></div>`;
}

/** The partitions that there would be: those of now, and those that come of splits. */
function Preview({ now, will, share }) {
  const shown = Math.min(will, 60);
  return html`<div class="preview" role="img" aria-label=${`${now} physical partitions now, ${will} then, ${count(share)} RU/s each`}>${Array.from({ length: shown }, (_, n) => html`<span key=${n} class=${n < now ? "" : "new"}>${count(share)}</span>`)}${will > shown && html`<em>and ${count(will - shown)} more</em>`}</div>`;
}
