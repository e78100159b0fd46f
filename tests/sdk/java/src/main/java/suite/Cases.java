package suite;

import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.plain;
import static suite.Suite.refused;
import static suite.Suite.unique;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosBatchItemRequestOptions;
import com.azure.cosmos.models.CosmosBulkOperations;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemOperation;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.IndexingMode;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.ThroughputProperties;
import com.azure.cosmos.models.UniqueKey;
import com.azure.cosmos.models.UniqueKeyPolicy;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The cases, each named by the sentence it proves. Not here: readAllItems, which this SDK sends as a query. */
final class Cases {
    private static final PartitionKey P = new PartitionKey("p");

    private Cases() {}

    static void addTo(Map<String, Suite.Case> cases) {
        addResources(cases);
        addItems(cases);
        addPatchAndConditions(cases);
        addBatchAndBulk(cases);
        addPoliciesAndSessions(cases);
        Queries.addTo(cases);
    }

    private static CosmosItemRequestOptions ifMatch(String etag) {
        return new CosmosItemRequestOptions().setIfMatchETag(etag);
    }

    private static CosmosContainerProperties levels(String id, String... paths) {
        PartitionKeyDefinition definition = new PartitionKeyDefinition();
        definition.setPaths(List.of(paths));
        definition.setKind(PartitionKind.MULTI_HASH);
        definition.setVersion(PartitionKeyDefinitionVersion.V2);
        return new CosmosContainerProperties(id, definition);
    }

    private static void addResources(Map<String, Suite.Case> cases) {
        cases.put("a database is created, read, listed and deleted", suite -> {
            String id = unique("java-extra");
            equal(suite.client.createDatabase(id).getStatusCode(), 201);
            CosmosDatabase database = suite.client.getDatabase(id);
            equal(database.read().getProperties().getId(), id);
            check(suite.client.readAllDatabases().stream().anyMatch(each -> each.getId().equals(id)), "not listed");
            refused(409, () -> suite.client.createDatabase(id));
            equal(suite.client.createDatabaseIfNotExists(id).getStatusCode(), 200);
            equal(database.delete().getStatusCode(), 204);
            refused(404, database::read);
        });
        cases.put("a container comes back with the policies the service fills in", suite -> {
            PartitionKeyDefinition definition = new PartitionKeyDefinition();
            definition.setPaths(List.of("/pk")).setVersion(PartitionKeyDefinitionVersion.V2);
            CosmosContainer container = suite.container(new CosmosContainerProperties("defaults", definition), null);
            CosmosContainerProperties properties = container.read().getProperties();
            equal(properties.getIndexingPolicy().getIndexingMode(), IndexingMode.CONSISTENT);
            equal(properties.getIndexingPolicy().getExcludedPaths().get(0).getPath(), "/\"_etag\"/?");
            equal(properties.getPartitionKeyDefinition().getVersion(), PartitionKeyDefinitionVersion.V2);
            refused(409, () -> suite.database.createContainer("defaults", "/pk"));
            equal(suite.database.createContainerIfNotExists("defaults", "/pk").getStatusCode(), 200);
            check(suite.database.readAllContainers().stream().anyMatch(each -> each.getId().equals("defaults")), "not listed");
        });
        cases.put("a container is replaced and deleted, and its name is free again", suite -> {
            CosmosContainer container = suite.container(new CosmosContainerProperties("replaced", "/pk"), null);
            CosmosContainerProperties properties = container.read().getProperties();
            String rid = properties.getResourceId();
            container.createItem(item("{'id':'a','pk':'p'}"));
            equal(container.replace(properties.setDefaultTimeToLiveInSeconds(60)).getProperties().getDefaultTimeToLiveInSeconds(), 60);
            equal(container.delete().getStatusCode(), 204);
            refused(404, container::read);
            CosmosContainer again = suite.container(new CosmosContainerProperties("replaced", "/pk"), null);
            check(!again.read().getProperties().getResourceId().equals(rid), "a rid was given out twice");
            refused(404, () -> again.readItem("a", P, ObjectNode.class));
        });
        cases.put("thirty thousand units make three partitions", suite -> {
            CosmosContainer container = suite.container(
                new CosmosContainerProperties("wide", "/pk"), ThroughputProperties.createManualThroughput(30000));
            equal(container.getFeedRanges().size(), 3);
            for (int n = 0; n < 30; n++) {
                container.createItem(item("{'id':'i','pk':'k" + n + "'}"));
            }
            for (int n = 0; n < 30; n++) {
                equal(container.readItem("i", new PartitionKey("k" + n), ObjectNode.class).getStatusCode(), 200);
            }
        });
        cases.put("throughput is read and replaced", suite -> {
            CosmosContainer container = suite.container(
                new CosmosContainerProperties("offers", "/pk"), ThroughputProperties.createManualThroughput(500));
            equal(container.readThroughput().getProperties().getManualThroughput(), 500);
            container.replaceThroughput(ThroughputProperties.createManualThroughput(700));
            equal(container.readThroughput().getProperties().getManualThroughput(), 700);
            CosmosContainer automatic = suite.container(
                new CosmosContainerProperties("autoscale", "/pk"), ThroughputProperties.createAutoscaledThroughput(4000));
            equal(automatic.readThroughput().getProperties().getAutoscaleMaxThroughput(), 4000);
        });
    }

    private static void addItems(Map<String, Suite.Case> cases) {
        cases.put("an item is created, read, replaced and deleted", suite -> {
            var created = suite.items.createItem(item("{'id':'life','pk':'p','n':1}"));
            equal(created.getStatusCode(), 201);
            equal(created.getItem().get("_etag").asText(), created.getETag());
            check(created.getRequestCharge() > 0, "a write costs something");
            equal(suite.items.readItem("life", P, ObjectNode.class).getItem(), created.getItem());
            var replaced = suite.items.replaceItem(item("{'id':'life','pk':'p','n':2}"), "life", P, null);
            equal(plain(replaced.getItem()), "{'id':'life','pk':'p','n':2}");
            equal(replaced.getItem().get("_rid"), created.getItem().get("_rid"));
            equal(suite.items.deleteItem("life", P, null).getStatusCode(), 204);
            refused(404, () -> suite.items.readItem("life", P, ObjectNode.class));
            refused(404, () -> suite.items.deleteItem("life", P, null));
            refused(404, () -> suite.items.replaceItem(item("{'id':'life','pk':'p'}"), "life", P, null));
        });
        cases.put("upsert inserts with 201 and replaces with 200", suite -> {
            equal(suite.items.upsertItem(item("{'id':'up','pk':'p'}")).getStatusCode(), 201);
            equal(suite.items.upsertItem(item("{'id':'up','pk':'p','n':2}")).getStatusCode(), 200);
        });
        cases.put("the answer to a write is empty when the client wants none", suite -> {
            var quiet = new CosmosItemRequestOptions().setContentResponseOnWriteEnabled(false);
            var answer = suite.items.createItem(item("{'id':'quiet','pk':'p'}"), quiet);
            equal(answer.getStatusCode(), 201);
            equal(answer.getItem(), null);
            check(answer.getETag() != null, "the etag is still there");
        });
        cases.put("whole numbers are exact and properties keep their order", suite -> {
            String text = "{'id':'exact','zulu':9007199254740993,'alpha':-9223372036854775808,'pk':'p','m':{'b':1.5,'a':[true,null,'ü€😀']}}";
            suite.items.createItem(item(text));
            equal(plain(suite.items.readItem("exact", P, ObjectNode.class).getItem()), text);
        });
        cases.put("null, missing and empty partition keys are three places", suite -> {
            suite.items.createItem(item("{'id':'k','pk':null,'kind':'null'}"));
            suite.items.createItem(item("{'id':'k','kind':'missing'}"));
            suite.items.createItem(item("{'id':'k','pk':'','kind':'empty'}"));
            var none = new PartitionKey(null);
            equal(suite.items.readItem("k", none, ObjectNode.class).getItem().get("kind").asText(), "null");
            equal(suite.items.readItem("k", PartitionKey.NONE, ObjectNode.class).getItem().get("kind").asText(), "missing");
            equal(suite.items.readItem("k", new PartitionKey(""), ObjectNode.class).getItem().get("kind").asText(), "empty");
        });
        cases.put("numbers and booleans are partition keys", suite -> {
            for (Object key : List.of(0, -1.5, 9007199254740991L, true, false)) {
                suite.items.createItem(item("{'id':'typed','pk':" + key + "}"));
                suite.items.readItem("typed", new PartitionKey(key), ObjectNode.class);
            }
        });
        cases.put("a wrong item is refused", suite -> {
            suite.items.createItem(item("{'id':'twice','pk':'p'}"));
            refused(409, () -> suite.items.createItem(item("{'id':'twice','pk':'p'}")));
            refused(400, () -> suite.items.createItem(item("{'id':'key','pk':'p'}"), new PartitionKey("q"), null));
            refused(413, () -> suite.items.createItem(item("{'id':'huge','pk':'p','t':'" + "x".repeat(2 * 1024 * 1024) + "'}")));
        });
        cases.put("ids may hold blanks, percent signs and any script", suite -> {
            for (String id : List.of("a b", "100%", "a%20b", "Ünïcødé", "日本", "x".repeat(255))) {
                suite.items.createItem(item("{'id':'" + id + "','pk':'p'}"));
                equal(suite.items.readItem(id, P, ObjectNode.class).getItem().get("id").asText(), id);
                suite.items.deleteItem(id, P, null);
            }
        });
        cases.put("a hierarchical key has up to three levels", suite -> {
            CosmosContainer container = suite.container(levels("levels", "/tenant", "/user", "/session"), null);
            PartitionKey full = new PartitionKeyBuilder().add("a").add(1).addNullValue().build();
            container.createItem(item("{'id':'x','tenant':'a','user':1,'session':null}"));
            equal(container.readItem("x", full, ObjectNode.class).getStatusCode(), 200);
            PartitionKey other = new PartitionKeyBuilder().add("a").add(2).addNullValue().build();
            refused(404, () -> container.readItem("x", other, ObjectNode.class));
            refused(400, () -> suite.container(levels("deep", "/a", "/b", "/c", "/d"), null));
        });
        cases.put("the items of one partition key are deleted together", suite -> {
            for (int n = 0; n < 20; n++) {
                suite.items.createItem(item("{'id':'d" + n + "','pk':'doomed'}"));
            }
            suite.items.deleteAllItemsByPartitionKey(new PartitionKey("doomed"), null);
            long deadline = System.nanoTime() + 10_000_000_000L;
            while (true) {
                try {
                    suite.items.readItem("d7", new PartitionKey("doomed"), ObjectNode.class);
                } catch (com.azure.cosmos.CosmosException gone) {
                    equal(gone.getStatusCode(), 404);
                    return;
                }
                check(System.nanoTime() < deadline, "items were still there after ten seconds");
                Thread.sleep(100);
            }
        });
    }

    private static void addPatchAndConditions(Map<String, Suite.Case> cases) {
        cases.put("every patch operation does what it says, and a condition decides", suite -> {
            suite.items.createItem(item("{'id':'patch','pk':'p','n':1,'gone':1,'old':'v','list':[1,3],'keep':{'a':1}}"));
            CosmosPatchOperations operations = CosmosPatchOperations.create()
                .add("/added", Map.of("x", 1))
                .add("/list/1", 2)
                .add("/list/-", 4)
                .set("/keep/b", false)
                .replace("/list/0", "one")
                .remove("/gone")
                .increment("/n", 41)
                .increment("/counter", 2.5)
                .move("/old", "/keep/moved");
            var onlyOnce = new CosmosPatchItemRequestOptions().setFilterPredicate("from c where c.n = 1");
            var patched = suite.items.patchItem("patch", P, operations, onlyOnce, ObjectNode.class);
            ObjectNode wanted = item("{'id':'patch','pk':'p','n':42,'list':['one',2,3,4],"
                + "'keep':{'a':1,'b':false,'moved':'v'},'added':{'x':1},'counter':2.5}");
            for (var each = wanted.fields(); each.hasNext();) {
                var property = each.next();
                equal(patched.getItem().get(property.getKey()), property.getValue());
            }
            check(!patched.getItem().has("gone") && !patched.getItem().has("old"), "removed and moved away");
            refused(412, () -> suite.items.patchItem("patch", P, operations, onlyOnce, ObjectNode.class));
            CosmosPatchOperations absent = CosmosPatchOperations.create().set("/n", 0).remove("/absent");
            refused(400, () -> suite.items.patchItem("patch", P, absent, ObjectNode.class));
            refused(404, () -> suite.items.patchItem("nowhere", P, operations, ObjectNode.class));
            equal(suite.items.readItem("patch", P, ObjectNode.class).getItem().get("n").asInt(), 42);
        });
        cases.put("a stale etag is refused, and an unchanged item is not sent again", suite -> {
            String first = suite.items.createItem(item("{'id':'etag','pk':'p','n':1}")).getETag();
            var unlessChanged = new CosmosItemRequestOptions().setIfNoneMatchETag(first);
            equal(suite.items.readItem("etag", P, unlessChanged, ObjectNode.class).getStatusCode(), 304);
            String second = suite.items.upsertItem(item("{'id':'etag','pk':'p','n':2}")).getETag();
            ObjectNode body = item("{'id':'etag','pk':'p','n':3}");
            refused(412, () -> suite.items.replaceItem(body, "etag", P, ifMatch(first)));
            refused(412, () -> suite.items.upsertItem(body, ifMatch(first)));
            refused(412, () -> suite.items.deleteItem("etag", P, ifMatch(first)));
            equal(suite.items.readItem("etag", P, unlessChanged, ObjectNode.class).getStatusCode(), 200);
            equal(suite.items.replaceItem(body, "etag", P, ifMatch(second)).getStatusCode(), 200);
        });
    }

    private static void addBatchAndBulk(Map<String, Suite.Case> cases) {
        cases.put("a batch does all of its operations", suite -> {
            suite.items.createItem(item("{'id':'old','pk':'batch','n':1}"));
            suite.items.createItem(item("{'id':'gone','pk':'batch'}"));
            CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey("batch"));
            batch.createItemOperation(item("{'id':'new','pk':'batch'}"));
            batch.upsertItemOperation(item("{'id':'up','pk':'batch'}"));
            batch.replaceItemOperation("old", item("{'id':'old','pk':'batch','n':2}"));
            batch.readItemOperation("old");
            batch.patchItemOperation("old", CosmosPatchOperations.create().increment("/n", 5));
            batch.deleteItemOperation("gone");
            var answer = suite.items.executeCosmosBatch(batch);
            check(answer.isSuccessStatusCode(), "the batch failed: " + answer.getErrorMessage());
            equal(answer.getResults().stream().map(each -> each.getStatusCode()).collect(Collectors.toList()),
                List.of(201, 201, 200, 200, 200, 204));
            equal(answer.getResults().get(3).getItem(ObjectNode.class).get("n").asInt(), 2);
            equal(suite.items.readItem("old", new PartitionKey("batch"), ObjectNode.class).getItem().get("n").asInt(), 7);
        });
        cases.put("a failed batch leaves no trace", suite -> {
            PartitionKey key = new PartitionKey("rollback");
            String etag = suite.items.createItem(item("{'id':'old','pk':'rollback'}")).getETag();
            CosmosBatch batch = CosmosBatch.createCosmosBatch(key);
            batch.createItemOperation(item("{'id':'new','pk':'rollback'}"));
            batch.replaceItemOperation("old", item("{'id':'old','pk':'rollback'}"),
                new CosmosBatchItemRequestOptions().setIfMatchETag("\"not-this-one\""));
            batch.deleteItemOperation("old");
            var answer = suite.items.executeCosmosBatch(batch);
            check(!answer.isSuccessStatusCode(), "the batch succeeded");
            equal(answer.getResults().stream().map(each -> each.getStatusCode()).collect(Collectors.toList()),
                List.of(424, 412, 424));
            refused(404, () -> suite.items.readItem("new", key, ObjectNode.class));
            equal(suite.items.readItem("old", key, ObjectNode.class).getETag(), etag);
        });
        cases.put("bulk goes to every partition and reports each operation by itself", suite -> {
            CosmosContainer container = suite.container(
                new CosmosContainerProperties("bulk", "/pk"), ThroughputProperties.createManualThroughput(30000));
            container.createItem(item("{'id':'i0','pk':'k0'}"));
            List<CosmosItemOperation> operations = new ArrayList<>();
            for (int n = 0; n < 300; n++) {
                operations.add(CosmosBulkOperations.getCreateItemOperation(
                    item("{'id':'i" + n + "','pk':'k" + n + "'}"), new PartitionKey("k" + n)));
            }
            operations.add(CosmosBulkOperations.getReadItemOperation("absent", new PartitionKey("k0")));
            Map<Integer, Integer> counts = new TreeMap<>();
            for (var each : container.executeBulkOperations(operations)) {
                check(each.getResponse() != null, "no response: " + each.getException());
                counts.merge(each.getResponse().getStatusCode(), 1, Integer::sum);
            }
            equal(counts, new TreeMap<>(Map.of(201, 299, 404, 1, 409, 1)));
            equal(container.readItem("i299", new PartitionKey("k299"), ObjectNode.class).getStatusCode(), 200);
        });
    }

    private static void addPoliciesAndSessions(Map<String, Suite.Case> cases) {
        cases.put("items expire as their container and they themselves say", suite -> {
            CosmosContainer container = suite.container(
                new CosmosContainerProperties("expiring", "/pk").setDefaultTimeToLiveInSeconds(1), null);
            container.createItem(item("{'id':'default','pk':'p'}"));
            container.createItem(item("{'id':'never','pk':'p','ttl':-1}"));
            Thread.sleep(2200);
            refused(404, () -> container.readItem("default", P, ObjectNode.class));
            equal(container.readItem("never", P, ObjectNode.class).getStatusCode(), 200);
            refused(400, () -> container.createItem(item("{'id':'wrong','pk':'p','ttl':0}")));
        });
        cases.put("unique keys hold within a partition key", suite -> {
            UniqueKeyPolicy policy = new UniqueKeyPolicy().setUniqueKeys(List.of(new UniqueKey(List.of("/email"))));
            CosmosContainer container = suite.container(new CosmosContainerProperties("unique", "/pk").setUniqueKeyPolicy(policy), null);
            container.createItem(item("{'id':'1','pk':'p','email':'a'}"));
            refused(409, () -> container.createItem(item("{'id':'2','pk':'p','email':'a'}")));
            container.createItem(item("{'id':'2','pk':'q','email':'a'}"));
        });
        cases.put("another client reads what a session token promises", suite -> {
            String token = suite.items.createItem(item("{'id':'session','pk':'p'}")).getSessionToken();
            try (CosmosClient other = Suite.connect(System.getenv("COSMOS_KEY"), ConsistencyLevel.SESSION)) {
                CosmosContainer container = other.getDatabase(suite.database.getId()).getContainer("items");
                var options = new CosmosItemRequestOptions().setSessionToken(token);
                equal(container.readItem("session", P, options, ObjectNode.class).getStatusCode(), 200);
            }
        });
        cases.put("a wrong key opens nothing", suite -> {
            try (CosmosClient other = Suite.connect("d3Jvbmc=", ConsistencyLevel.EVENTUAL)) {
                check(false, "the client was built");
            } catch (RuntimeException refusal) {
                // The account is read when the client is built; the SDK wraps the refusal.
                check(refusal.getMessage().contains("cosmosdb-tsg-unauthorized"), "refused because of " + refusal);
            }
        });
    }
}
