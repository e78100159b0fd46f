package suite;

import static suite.Suite.builder;
import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.refused;
import static suite.ThrottlingCases.fired;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;

/**
 * What differs between gateway and direct mode inside of the SDK and must not for its users: how replicas are read at each
 * consistency level, connections opened ahead, many requests at a time, addresses that have become old.
 */
final class ModeCases {
    private static final PartitionKey P = new PartitionKey("p");
    private static final int WRITERS = 4;
    private static final int AT_A_TIME = 30;

    private ModeCases() {}

    private static CosmosAsyncClient async() {
        return builder().key(System.getenv("COSMOS_KEY")).buildAsyncClient();
    }

    static void addTo(Map<String, Suite.Case> cases) {
        for (ConsistencyLevel level : List.of(ConsistencyLevel.SESSION, ConsistencyLevel.CONSISTENT_PREFIX, ConsistencyLevel.EVENTUAL)) {
            cases.put("a client at level " + level + " reads its writes from the one owner", suite -> {
                try (CosmosClient client = Suite.connect(System.getenv("COSMOS_KEY"), level)) {
                    readsItsWrites(client.getDatabase(suite.database.getId()).getContainer("items"), 1);
                }
            });
        }
        String strong = System.getenv("COSMOS_STRONG_ENDPOINT");
        if (strong != null) {
            for (ConsistencyLevel level : List.of(ConsistencyLevel.STRONG, ConsistencyLevel.BOUNDED_STALENESS)) {
                cases.put("a client at level " + level + " reads two replicas, also while others write", suite -> readsTwice(strong, level));
            }
        }
        cases.put("a client that asks for more than the account promises is refused", suite -> {
            try (CosmosClient client = Suite.connect(System.getenv("COSMOS_KEY"), ConsistencyLevel.STRONG)) {
                CosmosContainer items = client.getDatabase(suite.database.getId()).getContainer("items");
                refused(400, () -> items.readItem("none", P, ObjectNode.class));
            }
        });
        cases.put("connections are opened and caches filled ahead of the first request", suite -> {
            suite.container(new CosmosContainerProperties("warm", "/pk"), ThroughputProperties.createManualThroughput(30000));
            try (CosmosAsyncClient client = async()) {
                CosmosAsyncContainer warm = client.getDatabase(suite.database.getId()).getContainer("warm");
                warm.openConnectionsAndInitCaches().block();
                warm.createItem(item("{'id':'1','pk':'p'}"), P, new CosmosItemRequestOptions()).block();
                equal(warm.readItem("1", P, ObjectNode.class).block().getStatusCode(), 200);
            }
        });
        cases.put("many reads at a time are answered, each with its own", suite -> {
            try (CosmosAsyncClient client = async()) {
                CosmosAsyncContainer items = client.getDatabase(suite.database.getId()).getContainer("items");
                for (int n = 0; n < 100; n++) {
                    ObjectNode many = Suite.JSON.createObjectNode().put("id", "many-" + n).put("pk", "m" + n % 7).put("n", n);
                    suite.items.createItem(many);
                }
                int right = Flux.range(0, 100)
                    .flatMap(n -> items.readItem("many-" + n, new PartitionKey("m" + n % 7), ObjectNode.class)
                        .map(answer -> answer.getItem().get("n").asInt() == n ? 1 : 0), AT_A_TIME)
                    .reduce(0, Integer::sum).block();
                equal(right, 100);
            }
        });
        cases.put("an item of nearly two megabytes comes and goes", suite -> {
            ObjectNode large = item("{'id':'large','pk':'p'}").put("text", "x".repeat(1_900_000));
            equal(suite.items.createItem(large).getStatusCode(), 201);
            ObjectNode found = suite.items.readItem("large", P, ObjectNode.class).getItem();
            equal(found.get("text").asText().length(), 1_900_000);
            refused(413, () -> suite.items.createItem(item("{'id':'larger','pk':'p'}").put("text", "x".repeat(2_200_000))));
            suite.items.deleteItem("large", P, new CosmosItemRequestOptions());
        });
        cases.put("a container that was made again under its name is noticed", suite -> {
            CosmosContainer first = suite.container(new CosmosContainerProperties("again", "/pk"), null);
            first.createItem(item("{'id':'a','pk':'p'}"));
            equal(first.readItem("a", P, ObjectNode.class).getStatusCode(), 200);
            try (CosmosClient other = Suite.connect(System.getenv("COSMOS_KEY"), ConsistencyLevel.SESSION)) {
                other.getDatabase(suite.database.getId()).getContainer("again").delete();
                other.getDatabase(suite.database.getId()).createContainer(new CosmosContainerProperties("again", "/pk"));
            }
            refused(404, () -> first.readItem("a", P, ObjectNode.class));
            equal(first.createItem(item("{'id':'b','pk':'p'}")).getStatusCode(), 201);
            equal(first.readItem("b", P, ObjectNode.class).getStatusCode(), 200);
        });
        cases.put("the change feed of every range is read to its end", suite -> {
            CosmosContainer wide = suite.container(
                new CosmosContainerProperties("wide-feed", "/pk"), ThroughputProperties.createManualThroughput(30000));
            for (int n = 0; n < 30; n++) {
                wide.createItem(item("{'id':'i','pk':'k" + n + "'}"));
            }
            int seen = 0;
            for (FeedRange range : wide.getFeedRanges()) {
                var pages = wide.queryChangeFeed(
                    CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range), JsonNode.class).iterableByPage();
                for (var page : pages) {
                    seen += page.getResults().size();
                    if (page.getResults().isEmpty()) {
                        break;
                    }
                }
            }
            equal(seen, 30);
        });
        cases.put("reads, writes and queries go on while partitions are split, without one failure", ModeCases::splitsUnderLoad);
        addFaults(cases);
    }

    private static void addFaults(Map<String, Suite.Case> cases) {
        cases.put("a read whose answer is lost is tried again", suite -> {
            suite.items.upsertItem(item("{'id':'lost','pk':'p'}"));
            for (String half : List.of("request", "answer")) {
                String rule = "{'container':'items','operations':['read_item'],'drop':'" + half + "','count':1}";
                equal(fired(rule, each -> equal(each.items.readItem("lost", P, ObjectNode.class).getStatusCode(), 200), suite), 1);
            }
        });
        cases.put("a late answer is waited for", suite -> {
            suite.items.upsertItem(item("{'id':'late','pk':'p'}"));
            String rule = "{'container':'items','operations':['read_item'],'delayMs':300,'count':1}";
            long begun = System.nanoTime();
            equal(fired(rule, each -> equal(each.items.readItem("late", P, ObjectNode.class).getStatusCode(), 200), suite), 1);
            check(System.nanoTime() - begun > 300_000_000L, "it was not late");
        });
        if (!Suite.direct) {
            return;
        }
        cases.put("a range that is said to be splitting or moving is looked for again", suite -> {
            suite.items.upsertItem(item("{'id':'moved','pk':'p'}"));
            for (int substatus : List.of(0, 1007, 1008)) {
                String gone = "'container':'items','answer':410,'substatus':" + substatus + ",'count':1}";
                Suite.Case read = each -> equal(each.items.readItem("moved", P, ObjectNode.class).getStatusCode(), 200);
                equal(fired("{'operations':['read_item']," + gone, read, suite), 1);
                Suite.Case write = each -> equal(each.items.upsertItem(item("{'id':'moved','pk':'p'}")).getStatusCode(), 200);
                equal(fired("{'operations':['upsert_item']," + gone, write, suite), 1);
                Suite.Case query = each -> check(each.items.queryItems("SELECT * FROM c WHERE c.id = 'moved'",
                    new CosmosQueryRequestOptions(), ObjectNode.class).stream().count() == 1, "not found");
                equal(fired("{'operations':['query_items']," + gone, query, suite), 1);
            }
        });
        cases.put("a write whose answer is lost is reported and not repeated", suite -> {
            String rule = "{'container':'items','operations':['create_item'],'drop':'answer','count':1}";
            Suite.Case write = each -> refused(408, () -> each.items.createItem(item("{'id':'unknown','pk':'p'}")));
            equal(fired(rule, write, suite), 1);
            equal(suite.items.readItem("unknown", P, ObjectNode.class).getStatusCode(), 200);
        });
    }

    /** The charge of a read is what its replicas charge together: one or, where two are read, two. */
    private static void readsItsWrites(CosmosContainer items, int replicas) throws Exception {
        for (int n = 0; n < 20; n++) {
            items.upsertItem(item("{'id':'level','pk':'p','n':" + n + "}"));
            var found = items.readItem("level", P, ObjectNode.class);
            equal(found.getItem().get("n").asInt(), n);
            equal(found.getRequestCharge(), (double) replicas);
        }
    }

    /** Replicas that are read while somebody writes tell different positions: the client then waits until they agree. */
    private static void readsTwice(String endpoint, ConsistencyLevel level) throws Exception {
        try (CosmosClient client = builder().endpoint(endpoint).key(System.getenv("COSMOS_KEY")).consistencyLevel(level).buildClient()) {
            String id = Suite.unique("java");
            client.createDatabase(id);
            client.getDatabase(id).createContainer(new CosmosContainerProperties("items", "/pk"));
            CosmosContainer items = client.getDatabase(id).getContainer("items");
            AtomicBoolean done = new AtomicBoolean();
            ExecutorService pool = Executors.newSingleThreadExecutor();
            Future<Integer> writer = pool.submit(() -> {
                int n = 0;
                while (!done.get()) {
                    items.upsertItem(item("{'id':'other','pk':'p','n':" + n++ + "}"));
                }
                return n;
            });
            try {
                readsItsWrites(items, 2);
                var rows = items.queryItems("SELECT VALUE COUNT(1) FROM c", new CosmosQueryRequestOptions(), Integer.class);
                equal(rows.iterator().next(), 2);
            } finally {
                done.set(true);
                pool.shutdown();
            }
            check(writer.get() > 0, "nobody wrote");
            client.getDatabase(id).delete();
        }
    }

    /** One client, its connections and its load, until it is done. Returns how many items it has made. */
    private static int writes(String database, int writer, AtomicBoolean done, AtomicInteger operations) throws Exception {
        try (CosmosClient client = Suite.connect(System.getenv("COSMOS_KEY"), ConsistencyLevel.SESSION)) {
            CosmosContainer busy = client.getDatabase(database).getContainer("busy");
            int n = 0;
            while (!done.get()) {
                String id = "w" + writer + "-" + n;
                busy.createItem(item("{'id':'" + id + "','pk':'" + id + "','w':" + writer + "}"));
                equal(busy.readItem(id, new PartitionKey(id), ObjectNode.class).getStatusCode(), 200);
                n++;
                if (n % 10 == 0) {
                    var count = busy.queryItems("SELECT VALUE COUNT(1) FROM c WHERE c.w = " + writer,
                        new CosmosQueryRequestOptions(), Integer.class).iterator().next();
                    equal(count, n);
                }
                operations.addAndGet(2);
            }
            return n;
        }
    }

    private static void splitsUnderLoad(Suite suite) throws Exception {
        CosmosContainer busy = suite.container(new CosmosContainerProperties("busy", "/pk"), null);
        AtomicBoolean done = new AtomicBoolean();
        AtomicInteger operations = new AtomicInteger();
        ExecutorService pool = Executors.newFixedThreadPool(WRITERS);
        List<Future<Integer>> writers = new ArrayList<>();
        for (int w = 0; w < WRITERS; w++) {
            int writer = w;
            writers.add(pool.submit(() -> writes(suite.database.getId(), writer, done, operations)));
        }
        try {
            for (int round = 0; round < 3; round++) {
                int before = operations.get();
                while (operations.get() < before + 100 && writers.stream().noneMatch(Future::isDone)) {
                    Thread.sleep(10);
                }
                SplitCases.run("split", suite, busy);
            }
        } finally {
            done.set(true);
            pool.shutdown();
        }
        int written = 0;
        for (Future<Integer> writer : writers) {
            written += writer.get();
        }
        check(written > 0, "nothing was written");
        int found = busy.queryItems("SELECT VALUE COUNT(1) FROM c", new CosmosQueryRequestOptions(), Integer.class).iterator().next();
        equal(found, written);
    }
}
