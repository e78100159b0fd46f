import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Locale;
import java.util.UUID;

/** Device readings with the Java SDK: writing, reading by key, and queries over two physical partitions. */
public final class Readings {
    private static final int DEVICES = 20;
    private static final int READINGS = 5;

    private Readings() {}

    private static String setting(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    public static void main(String[] arguments) {
        // For http://; with https:// the JVM must trust the server's certificate (`orrery cert --explain`).
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        CosmosClient client = new CosmosClientBuilder()
            .endpoint(setting("COSMOS_ENDPOINT", "http://127.0.0.1:8081"))
            .key(setting("COSMOS_KEY",
                "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="))
            .gatewayMode()
            .contentResponseOnWriteEnabled(true)
            .buildClient();
        String id = "readings-" + UUID.randomUUID();
        client.createDatabase(id);
        CosmosDatabase database = client.getDatabase(id);
        try {
            run(database);
        } finally {
            database.delete();
        }
        System.out.println("done");
        // The SDK keeps threads that are not daemons; nothing is left to wait for.
        System.exit(0);
    }

    private static void run(CosmosDatabase database) {
        // 20,000 RU/s are more than one physical partition serves, so there are two.
        database.createContainer(new CosmosContainerProperties("readings", "/deviceId"),
            ThroughputProperties.createManualThroughput(20000));
        CosmosContainer container = database.getContainer("readings");
        System.out.println("partitions: " + container.getFeedRanges().size());

        ObjectMapper json = new ObjectMapper();
        for (int device = 0; device < DEVICES; device++) {
            for (int n = 0; n < READINGS; n++) {
                container.createItem(json.createObjectNode()
                    .put("id", device + "-" + n)
                    .put("deviceId", "device-" + device)
                    .put("metricType", n % 2 == 0 ? "Temperature" : "Humidity")
                    .put("metricValue", device * 10 + n));
            }
        }

        // A key and an id lead straight to the item.
        PartitionKey key = new PartitionKey("device-3");
        ObjectNode one = container.readItem("3-2", key, ObjectNode.class).getItem();
        System.out.println("read: " + one.get("metricValue").asInt());
        one.put("metricValue", 99);
        ObjectNode replaced = container.replaceItem(one, "3-2", key, new CosmosItemRequestOptions()).getItem();
        System.out.println("replaced: " + replaced.get("metricValue").asInt());
        container.deleteItem("3-2", key, new CosmosItemRequestOptions());
        try {
            container.readItem("3-2", key, ObjectNode.class);
        } catch (CosmosException error) {
            System.out.println(error.getStatusCode() == 404 ? "deleted" : error.getMessage());
        }

        // The filter fixes the partition key: one partition answers.
        SqlQuerySpec ofDevice = new SqlQuerySpec(
            "SELECT VALUE c.metricValue FROM c WHERE c.deviceId = @device ORDER BY c.metricValue",
            List.of(new SqlParameter("@device", "device-7")));
        System.out.println("device-7: " + rows(container, ofDevice));

        // Over all partitions, merged by the SDK, several partitions at a time.
        List<JsonNode> hot = rows(container, new SqlQuerySpec(
            "SELECT c.deviceId, c.metricValue FROM c WHERE c.metricType = \"Temperature\" AND c.metricValue > 100"
                + " ORDER BY c.metricValue DESC"));
        System.out.println("hot: " + hot.size() + " hottest: " + hot.get(0).get("deviceId").asText() + " "
            + hot.get(0).get("metricValue").asInt());

        for (String aggregate : List.of(
            "COUNT(1)", "MIN(c.metricValue)", "MAX(c.metricValue)", "SUM(c.metricValue)", "AVG(c.metricValue)")) {
            JsonNode total = rows(container, new SqlQuerySpec("SELECT VALUE " + aggregate + " FROM c")).get(0);
            String name = aggregate.substring(0, aggregate.indexOf('('));
            System.out.println(name + ": " + String.format(Locale.ROOT, "%.2f", total.asDouble()));
        }
    }

    private static List<JsonNode> rows(CosmosContainer container, SqlQuerySpec query) {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(4);
        return container.queryItems(query, options, JsonNode.class).stream().toList();
    }
}
