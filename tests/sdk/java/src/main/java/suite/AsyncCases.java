package suite;

import static suite.Suite.builder;
import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.refused;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemIdentity;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import reactor.core.publisher.Flux;

/** The asynchronous client does what the other one does; here it does a little of everything. */
final class AsyncCases {
    private static final PartitionKey P = new PartitionKey("async");

    private AsyncCases() {}

    private interface Use {
        void run(CosmosAsyncDatabase database) throws Exception;
    }

    private static void with(Suite suite, Use use) throws Exception {
        try (CosmosAsyncClient client = builder().key(System.getenv("COSMOS_KEY")).buildAsyncClient()) {
            use.run(client.getDatabase(suite.database.getId()));
        }
    }

    private static List<JsonNode> rows(CosmosAsyncContainer container, String query) {
        return container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class).collectList().block();
    }

    static void addTo(Map<String, Suite.Case> cases) {
        cases.put("asynchronously, an item lives its whole life", suite -> with(suite, database -> {
            CosmosAsyncContainer items = database.getContainer("items");
            String etag = items.createItem(item("{'id':'life','pk':'async','n':1}")).block().getETag();
            var unlessChanged = new CosmosItemRequestOptions().setIfNoneMatchETag(etag);
            equal(items.readItem("life", P, unlessChanged, ObjectNode.class).block().getStatusCode(), 304);
            var patched = items.patchItem("life", P, CosmosPatchOperations.create().increment("/n", 2), ObjectNode.class).block();
            equal(patched.getItem().get("n").asInt(), 3);
            var stale = new CosmosItemRequestOptions().setIfMatchETag(etag);
            refused(412, () -> items.replaceItem(item("{'id':'life','pk':'async'}"), "life", P, stale).block());
            equal(items.upsertItem(item("{'id':'life','pk':'async','n':9}")).block().getStatusCode(), 200);
            equal(items.readItem("life", P, ObjectNode.class).block().getItem().get("n").asInt(), 9);
            equal(items.deleteItem("life", P).block().getStatusCode(), 204);
            refused(404, () -> items.readItem("life", P, ObjectNode.class).block());
        }));
        cases.put("asynchronously, batches and bulks are carried out", suite -> with(suite, database -> {
            CosmosAsyncContainer items = database.getContainer("items");
            CosmosBatch batch = CosmosBatch.createCosmosBatch(P);
            batch.createItemOperation(item("{'id':'b1','pk':'async'}"));
            batch.patchItemOperation("b1", CosmosPatchOperations.create().set("/x", 1));
            batch.deleteItemOperation("b1");
            var answer = items.executeCosmosBatch(batch).block();
            equal(answer.getResults().stream().map(each -> each.getStatusCode()).collect(Collectors.toList()), List.of(201, 200, 204));
            CosmosAsyncContainer readings = Queries.readings(suite, database);
            var upserts = Flux.range(100, 60).map(n -> CosmosBulkOperations.getUpsertItemOperation(
                Suite.JSON.createObjectNode().put("id", "bulk" + n).put("pk", "k" + n % 20), new PartitionKey("k" + n % 20)));
            Map<Integer, Integer> counts = new TreeMap<>();
            readings.executeBulkOperations(upserts).toIterable()
                .forEach(each -> counts.merge(each.getResponse().getStatusCode(), 1, Integer::sum));
            equal(counts, Map.of(201, 60));
            var deletes = Flux.range(100, 60)
                .map(n -> CosmosBulkOperations.getDeleteItemOperation("bulk" + n, new PartitionKey("k" + n % 20)));
            equal(readings.executeBulkOperations(deletes).filter(each -> each.getResponse().getStatusCode() == 204).count().block(), 60L);
        }));
        cases.put("asynchronously, queries of every kind go over three partitions", suite -> with(suite, database -> {
            CosmosAsyncContainer readings = Queries.readings(suite, database);
            equal(rows(readings, "SELECT VALUE c.score FROM c ORDER BY c.score").stream().map(JsonNode::asInt).collect(Collectors.toList()),
                IntStream.range(0, 60).boxed().collect(Collectors.toList()));
            equal(rows(readings, "SELECT VALUE COUNT(1) FROM c").get(0).asInt(), 60);
            equal(rows(readings, "SELECT c.kind, MAX(c.score) AS best FROM c GROUP BY c.kind").size(), 3);
            equal(rows(readings, "SELECT DISTINCT VALUE c.kind FROM c").size(), 3);
            equal(rows(readings, "SELECT TOP 7 * FROM c ORDER BY c.score DESC").size(), 7);
            equal(rows(readings, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 50 LIMIT 20").size(), 10);
            equal(rows(readings, "SELECT VALUE x FROM c JOIN x IN c.v WHERE c.n < 5").size(), 10);
            equal(rows(readings, "SELECT VALUE c.id FROM c WHERE EXISTS (SELECT VALUE x FROM x IN c.v WHERE x = 30)").size(), 1);
            equal(rows(readings, "SELECT VALUE UPPER(c.kind) FROM c WHERE c.text LIKE 'swim%' AND c.n IN (0, 4, 5)").size(), 2);
            equal(rows(readings, "SELECT TOP 1 VALUE c.n FROM c ORDER BY VectorDistance(c.v, [0, 1])").get(0).asInt(), 0);
            List<CosmosItemIdentity> many = IntStream.range(0, 30)
                .mapToObj(n -> new CosmosItemIdentity(new PartitionKey("k" + n % 20), "i" + n))
                .collect(Collectors.toList());
            equal(readings.readMany(many, JsonNode.class).block().getResults().size(), 30);
            equal(readings.readAllItems(new PartitionKey("k3"), new CosmosQueryRequestOptions(), JsonNode.class).count().block(), 3L);
            // Page by page, each asked for with what the one before said.
            List<Integer> seen = new ArrayList<>();
            String token = null;
            do {
                String sorted = "SELECT VALUE c.score FROM c ORDER BY c.score";
                FeedResponse<Integer> page = readings.queryItems(sorted, new CosmosQueryRequestOptions(), Integer.class)
                    .byPage(token, 7).blockFirst();
                seen.addAll(page.getResults());
                token = page.getContinuationToken();
            } while (token != null);
            equal(seen, IntStream.range(0, 60).boxed().collect(Collectors.toList()));
        }));
        cases.put("asynchronously, the change feed of every range is read", suite -> with(suite, database -> {
            CosmosAsyncContainer readings = Queries.readings(suite, database);
            long seen = 0;
            for (FeedRange range : readings.getFeedRanges().block()) {
                var options = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range);
                seen += readings.queryChangeFeed(options, JsonNode.class).byPage().takeUntil(page -> page.getResults().isEmpty())
                    .map(page -> page.getResults().stream().filter(each -> each.has("score")).count()).reduce(0L, Long::sum).block();
            }
            equal(seen, 60L);
        }));
        cases.put("asynchronously, procedures run and resource tokens open what they are for", suite -> with(suite, database -> {
            CosmosAsyncContainer items = database.getContainer("items");
            String body = "function (n) { getContext().getResponse().setBody(n * 2); }";
            items.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties("twice", body)).block();
            var options = new CosmosStoredProcedureRequestOptions().setPartitionKey(P);
            equal(items.getScripts().getStoredProcedure("twice").execute(List.of(21), options).block().getResponseAsString(), "42");
            items.upsertItem(item("{'id':'opened','pk':'async'}")).block();
            database.createUser(new CosmosUserProperties().setId("async-reader")).block();
            String token = database.getUser("async-reader").createPermission(new CosmosPermissionProperties().setId("p")
                .setContainerName("items").setPermissionMode(PermissionMode.READ), null).block().getProperties().getToken();
            try (CosmosAsyncClient reader = builder().resourceToken(token).buildAsyncClient()) {
                CosmosAsyncContainer seen = reader.getDatabase(suite.database.getId()).getContainer("items");
                equal(seen.readItem("opened", P, ObjectNode.class).block().getStatusCode(), 200);
                refused(403, () -> seen.upsertItem(item("{'id':'opened','pk':'async'}")).block());
            }
        }));
        cases.put("asynchronously, items expire and throttled writes are tried again", suite -> with(suite, database -> {
            database.createContainer(new CosmosContainerProperties("async-expiring", "/pk").setDefaultTimeToLiveInSeconds(-1)).block();
            CosmosAsyncContainer expiring = database.getContainer("async-expiring");
            expiring.createItem(item("{'id':'brief','pk':'async','ttl':1}")).block();
            int fired = ThrottlingCases.fired(
                "{'container':'async-expiring','operations':['create_item'],'answer':429,'retryAfterMs':10,'count':3}",
                each -> expiring.createItem(item("{'id':'stays','pk':'async'}")).block(), suite);
            equal(fired, 3);
            Thread.sleep(2200);
            refused(404, () -> expiring.readItem("brief", P, ObjectNode.class).block());
            equal(expiring.readItem("stays", P, ObjectNode.class).block().getStatusCode(), 200);
        }));
        cases.put("asynchronously, reads at every level see what was written", suite -> {
            String strong = System.getenv("COSMOS_STRONG_ENDPOINT");
            for (ConsistencyLevel level : ConsistencyLevel.values()) {
                boolean twice = level == ConsistencyLevel.STRONG || level == ConsistencyLevel.BOUNDED_STALENESS;
                if (twice && strong == null) {
                    continue;
                }
                String endpoint = twice ? strong : System.getenv("COSMOS_ENDPOINT");
                try (CosmosAsyncClient client = builder().endpoint(endpoint).key(System.getenv("COSMOS_KEY"))
                    .consistencyLevel(level).buildAsyncClient()) {
                    String id = Suite.unique("java");
                    client.createDatabase(id).block();
                    client.getDatabase(id).createContainer("levels", "/pk").block();
                    CosmosAsyncContainer levels = client.getDatabase(id).getContainer("levels");
                    for (int n = 0; n < 5; n++) {
                        levels.upsertItem(item("{'id':'1','pk':'async','n':" + n + "}")).block();
                        var read = levels.readItem("1", P, ObjectNode.class).block();
                        equal(read.getItem().get("n").asInt(), n);
                        check(read.getRequestCharge() == (twice ? 2 : 1), level + " costs " + read.getRequestCharge());
                    }
                    client.getDatabase(id).delete().block();
                }
            }
        });
    }
}
