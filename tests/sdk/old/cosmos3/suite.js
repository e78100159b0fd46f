// Device readings with @azure/cosmos 3.17.

const fs = require("fs");
const https = require("https");
const { CosmosClient } = require("@azure/cosmos");
const { run } = require("./readings");
const { steps } = require("./containers");

const endpoint = process.env.COSMOS_ENDPOINT;
const ca = process.env.COSMOS_CA_FILE && fs.readFileSync(process.env.COSMOS_CA_FILE);
const agent = ca && new https.Agent({ ca });
const client = new CosmosClient({ endpoint, key: process.env.COSMOS_KEY, agent });

run(steps(client, {
    body: (response) => response.resource,
    all: async (iterator) => (await iterator.fetchAll()).resources,
    procedures: (container) => ({
        create: (definition) => container.scripts.storedProcedures.create(definition),
        execute: (id, key) => container.scripts.storedProcedure(id).execute(key, []),
    }),
}));
