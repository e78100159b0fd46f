// The server's own routes, signed as the SDK signs.
import { createHmac } from "node:crypto";
import { request as http } from "node:http";
import { request as https } from "node:https";

/** A function that sends one request to `_orrery/name` and resolves with the answer's JSON. */
export function admin({ endpoint, key, agent }, name) {
  const link = `_orrery/${name}`;
  return (method, body) =>
    new Promise((resolve, reject) => {
      const date = new Date().toUTCString();
      const text = `${method.toLowerCase()}\n_orrery\n${link}\n${date.toLowerCase()}\n\n`;
      const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
      const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
      const url = new URL(`/${link}`, endpoint);
      const send = url.protocol === "https:" ? https : http;
      const sent = send(url, { method, agent, headers: { authorization, "x-ms-date": date } }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("end", () => {
          const whole = Buffer.concat(parts).toString();
          if (answer.statusCode >= 300) reject(new Error(`${answer.statusCode}: ${whole}`));
          else resolve(whole ? JSON.parse(whole) : {});
        });
      });
      sent.on("error", reject);
      sent.end(body ? JSON.stringify(body) : undefined);
    });
}
