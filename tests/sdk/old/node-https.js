// For clients of 2015 to 2019 on a Node of today. They send everything through `https.request`, also to `http:` endpoints,
// and pin TLS 1.0, which neither Node nor the server offers any more. What they say stays as it is; only the socket differs.

const http = require("http");
const https = require("https");

const overTls = https.request;
const plain = new http.Agent({ keepAlive: true });
const tls = new https.Agent({ keepAlive: true });

https.request = (options, ...rest) => {
    const { secureProtocol, agent, ...others } = options;
    return options.protocol === "http:"
        ? http.request({ ...others, agent: plain }, ...rest)
        : overTls({ ...others, agent: tls, minVersion: "TLSv1.2" }, ...rest);
};
