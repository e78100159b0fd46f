package suite;

import static suite.Suite.builder;
import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.refused;
import static suite.Suite.unique;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;

/**
 * Requests that are refused for their rate, and what the SDK makes of it.
 *
 * <p>The server is made to refuse by its fault rules, so that the cases take no time and need no throughput of their own.
 */
final class ThrottlingCases {
    private static final String ROUTE = "faults";

    private ThrottlingCases() {}

    /** Runs an action under one fault rule and returns how often it fired. */
    static int fired(String rule, Suite.Case action, Suite suite) throws Exception {
        Admin.ask("PUT", ROUTE, "{'seed':1,'rules':[" + rule + "]}");
        try {
            action.run(suite);
            return Admin.ask("GET", ROUTE, null).path("rules").path(0).path("fired").asInt();
        } finally {
            Admin.ask("DELETE", ROUTE, null);
        }
    }

    static void addTo(Map<String, Suite.Case> cases) {
        cases.put("a throttled write is tried again until it succeeds", suite -> {
            String rule = "{'container':'items','operations':['create_item'],'answer':429,'retryAfterMs':20,'count':3}";
            equal(fired(rule, each -> each.items.createItem(item("{'id':'throttled','pk':'p'}")), suite), 3);
            equal(suite.items.readItem("throttled", new PartitionKey("p"), ObjectNode.class).getStatusCode(), 200);
        });
        cases.put("a throttled read is tried again", suite -> {
            suite.items.upsertItem(item("{'id':'read-again','pk':'p'}"));
            String rule = "{'container':'items','operations':['read_item'],'answer':429,'retryAfterMs':5,'count':2}";
            Suite.Case read = each -> each.items.readItem("read-again", new PartitionKey("p"), ObjectNode.class);
            equal(fired(rule, read, suite), 2);
        });
        cases.put("an endless refusal reaches the caller as 429", suite -> {
            String rule = "{'container':'items','operations':['create_item'],'answer':429,'retryAfterMs':1}";
            Suite.Case create = each -> refused(429, () -> each.items.createItem(item("{'id':'never','pk':'p'}")));
            check(fired(rule, create, suite) > 1, "the SDK gave up at once");
        });
        if (System.getenv("COSMOS_THROTTLING_ENDPOINT") != null) {
            cases.put("a load above the provisioned throughput is slowed down to it", suite -> aLoadIsSlowedDown());
        }
    }

    private static void aLoadIsSlowedDown() throws Exception {
        String endpoint = System.getenv("COSMOS_THROTTLING_ENDPOINT");
        try (CosmosClient client = builder().endpoint(endpoint).key(System.getenv("COSMOS_KEY")).buildClient()) {
            String id = unique("java");
            client.createDatabase(id);
            client.getDatabase(id).createContainer(
                new CosmosContainerProperties("slow", "/pk"), ThroughputProperties.createManualThroughput(400));
            CosmosContainer container = client.getDatabase(id).getContainer("slow");
            long begun = System.nanoTime();
            for (int i = 0; i < 150; i++) {
                container.createItem(item("{'id':'" + i + "','pk':'p','n':" + i + "}"));
            }
            // 150 items of 6.29 RU: a second's worth is there at the beginning, the rest comes at 400 RU/s.
            double took = (System.nanoTime() - begun) / 1e9;
            check(took > 1.1 && took < 20, took + " s");
            client.getDatabase(id).delete();
        }
    }
}
