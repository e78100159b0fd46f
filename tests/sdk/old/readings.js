// Device readings, for every JavaScript client: what is written, and how steps are run and counted.

const { randomUUID } = require("crypto");

exports.database = "readings-" + randomUUID();

exports.reading = (device, n) => ({
    id: `${device}-${n}`,
    deviceId: `device-${device}`,
    metricType: n % 2 === 0 ? "Temperature" : "Humidity",
    metricValue: device * 10 + n,
});

exports.HOT =
    'SELECT c.deviceId, c.metricValue FROM c WHERE c.metricType = "Temperature" AND c.metricValue > 100 ORDER BY c.metricValue DESC';

/** A stored procedure that says how many items it sees. */
exports.count = function () {
    var items = getContext().getCollection();
    items.queryDocuments(items.getSelfLink(), "SELECT * FROM c", function (error, found) {
        if (error) throw error;
        getContext().getResponse().setBody(found.length);
    });
};

exports.run = async (steps) => {
    let passed = 0;
    let failed = 0;
    for (const [name, step] of Object.entries(steps)) {
        try {
            await step();
            passed += 1;
        } catch (error) {
            failed += 1;
            console.log(`FAILED ${name}`, error && error.stack ? error.stack : error);
        }
    }
    console.log(`${passed} passed, ${failed} failed`);
    process.exit(failed > 0 ? 1 : 0);
};
