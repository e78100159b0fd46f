package suite;

import static suite.Suite.builder;
import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** A change feed processor, with its leases, through splits and merges of the partitions it follows. */
final class SplitCases {
    private static final String ROUTE = "splits";
    private static final int ITEMS = 40;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private SplitCases() {}

    static void run(String operation, Suite suite, CosmosContainer container) throws Exception {
        String body = "{'operation':'" + operation + "','database':'" + suite.database.getId() + "','container':'"
            + container.getId() + "'}";
        JsonNode job = Admin.ask("POST", ROUTE, body);
        int number = job.get("job").asInt();
        while (!List.of("done", "failed").contains(job.get("step").asText())) {
            Thread.sleep(50);
            for (JsonNode each : Admin.ask("GET", ROUTE, null).get("jobs")) {
                job = each.get("job").asInt() == number ? each : job;
            }
        }
        equal(job.get("step").asText(), "done");
    }

    static void aProcessorSeesEveryChangeThroughSplitsAndMerges(Suite suite) throws Exception {
        CosmosContainer feed = suite.container(new CosmosContainerProperties("splits-feed", "/pk"), null);
        suite.container(new CosmosContainerProperties("splits-leases", "/id"), null);
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        List<String> backwards = new ArrayList<>();
        try (CosmosAsyncClient client = builder().key(System.getenv("COSMOS_KEY")).buildAsyncClient()) {
            CosmosAsyncDatabase database = client.getDatabase(suite.database.getId());
            ChangeFeedProcessor processor = new ChangeFeedProcessorBuilder()
                .hostName("only")
                .feedContainer(database.getContainer("splits-feed"))
                .leaseContainer(database.getContainer("splits-leases"))
                .options(new ChangeFeedProcessorOptions()
                    .setStartFromBeginning(true)
                    .setFeedPollDelay(Duration.ofMillis(100))
                    .setLeaseAcquireInterval(Duration.ofSeconds(1))
                    .setLeaseRenewInterval(Duration.ofSeconds(2))
                    .setLeaseExpirationInterval(Duration.ofSeconds(6)))
                .handleChanges((List<JsonNode> changes) -> {
                    for (JsonNode change : changes) {
                        int n = change.get("n").asInt();
                        seen.merge(change.get("id").asText(), n, (before, now) -> {
                            // At least once, but never back in time.
                            if (now < before) {
                                backwards.add(change.toString());
                            }
                            return now;
                        });
                    }
                })
                .buildChangeFeedProcessor();
            processor.start().block(PATIENCE);
            try {
                int n = 0;
                for (String operation : List.of("", "split", "split", "merge", "split")) {
                    if (!operation.isEmpty()) {
                        run(operation, suite, feed);
                    }
                    n += 1;
                    for (int i = 0; i < ITEMS; i++) {
                        feed.upsertItem(item("{'id':'" + i + "','pk':'k" + i + "','n':" + n + "}"));
                    }
                    await(seen, n);
                }
            } finally {
                processor.stop().block(PATIENCE);
            }
        }
        equal(backwards, List.of());
    }

    /** Waits until every item has been seen at this version. */
    private static void await(Map<String, Integer> seen, int n) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (seen.size() < ITEMS || seen.values().stream().anyMatch(value -> value != n)) {
            check(System.nanoTime() < end, "after " + PATIENCE + " only this was seen of version " + n + ": " + seen);
            Thread.sleep(50);
        }
    }

    static void addTo(Map<String, Suite.Case> cases) {
        cases.put("a change feed processor sees every change through splits and merges",
            SplitCases::aProcessorSeesEveryChangeThroughSplitsAndMerges);
    }
}
