package suite;

import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;

import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosAsyncDatabase;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CompositePath;
import com.azure.cosmos.models.CompositePathSortOrder;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosFullTextIndex;
import com.azure.cosmos.models.CosmosFullTextPath;
import com.azure.cosmos.models.CosmosFullTextPolicy;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosVectorDataType;
import com.azure.cosmos.models.CosmosVectorDistanceFunction;
import com.azure.cosmos.models.CosmosVectorEmbedding;
import com.azure.cosmos.models.CosmosVectorEmbeddingPolicy;
import com.azure.cosmos.models.CosmosVectorIndexSpec;
import com.azure.cosmos.models.ExcludedPath;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.IncludedPath;
import com.azure.cosmos.models.IndexingPolicy;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Queries over three physical partitions: what the SDK merges by itself from the server's plans.
 *
 * <p>Sixty readings: {@code score} is a permutation of 0..59, so every order is known; {@code v} turns with {@code n},
 * so every distance is.
 */
final class Queries {
    private static final int COUNT = 60;
    private static final String[] TEXTS = {
        "swim in the lake", "run up the hill", "walk home slowly", "walk home slowly"
    };

    private static CosmosContainer container;
    private static Suite owner;

    private Queries() {}

    /** The same container for the asynchronous client. */
    static CosmosAsyncContainer readings(Suite suite, CosmosAsyncDatabase database) throws Exception {
        return database.getContainer(readings(suite).getId());
    }

    /** Makes the container on first use; all cases of a suite share it. */
    private static CosmosContainer readings(Suite suite) throws Exception {
        if (owner == suite) {
            return container;
        }
        CosmosContainerProperties properties = new CosmosContainerProperties("readings", "/pk");
        IndexingPolicy indexing = new IndexingPolicy();
        indexing.setIncludedPaths(List.of(new IncludedPath("/*")));
        indexing.setExcludedPaths(List.of(new ExcludedPath("/v/*")));
        indexing.setCompositeIndexes(List.of(List.of(
            new CompositePath().setPath("/kind").setOrder(CompositePathSortOrder.ASCENDING),
            new CompositePath().setPath("/score").setOrder(CompositePathSortOrder.DESCENDING))));
        indexing.setVectorIndexes(List.of(new CosmosVectorIndexSpec().setPath("/v").setType("flat")));
        indexing.setCosmosFullTextIndexes(List.of(new CosmosFullTextIndex().setPath("/text")));
        properties.setIndexingPolicy(indexing);
        CosmosVectorEmbeddingPolicy vectors = new CosmosVectorEmbeddingPolicy();
        vectors.setCosmosVectorEmbeddings(List.of(new CosmosVectorEmbedding()
            .setPath("/v")
            .setDataType(CosmosVectorDataType.FLOAT32)
            .setEmbeddingDimensions(2)
            .setDistanceFunction(CosmosVectorDistanceFunction.COSINE)));
        properties.setVectorEmbeddingPolicy(vectors);
        CosmosFullTextPolicy texts = new CosmosFullTextPolicy();
        texts.setDefaultLanguage("en-US");
        texts.setPaths(List.of(new CosmosFullTextPath().setPath("/text").setLanguage("en-US")));
        properties.setFullTextPolicy(texts);
        CosmosContainer made = suite.container(properties, ThroughputProperties.createManualThroughput(30000));
        equal(made.getFeedRanges().size(), 3);
        for (int n = 0; n < COUNT; n++) {
            made.createItem(item(("{'id':'i%d','pk':'k%d','n':%d,'kind':'%s','score':%d,'v':[%d,1],'text':'%s'}").formatted(
                n, n % 20, n, "abc".charAt(n % 3), n * 37 % COUNT, n, TEXTS[n % 4] + " again".repeat(n))));
        }
        container = made;
        owner = suite;
        return made;
    }

    private static List<JsonNode> rows(Suite suite, String query) throws Exception {
        return rows(suite, new SqlQuerySpec(query), new CosmosQueryRequestOptions());
    }

    private static List<JsonNode> rows(Suite suite, SqlQuerySpec query, CosmosQueryRequestOptions options)
        throws Exception {
        return readings(suite).queryItems(query, options, JsonNode.class).stream().collect(Collectors.toList());
    }

    private static List<Integer> integers(List<JsonNode> rows) {
        return rows.stream().map(JsonNode::asInt).collect(Collectors.toList());
    }

    private static List<Integer> numbers(int from, int count) {
        return IntStream.range(from, from + count).boxed().collect(Collectors.toList());
    }

    static void addTo(Map<String, Suite.Case> cases) {
        cases.put("ORDER BY merges the sorted rows of all partitions", suite -> {
            CosmosQueryRequestOptions parallel = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(3);
            SqlQuerySpec rising = new SqlQuerySpec("SELECT VALUE c.score FROM c ORDER BY c.score");
            equal(integers(rows(suite, rising, parallel)), numbers(0, COUNT));
            List<Integer> falling = numbers(0, COUNT);
            Collections.reverse(falling);
            equal(integers(rows(suite, "SELECT VALUE c.score FROM c ORDER BY c.score DESC")), falling);
        });
        cases.put("ORDER BY two properties follows the composite index", suite -> {
            List<JsonNode> found = rows(suite, "SELECT c.kind, c.score FROM c ORDER BY c.kind ASC, c.score DESC");
            equal(found.size(), COUNT);
            for (int at = 1; at < COUNT; at++) {
                int kinds = found.get(at - 1).get("kind").asText().compareTo(found.get(at).get("kind").asText());
                boolean falls = found.get(at - 1).get("score").asInt() > found.get(at).get("score").asInt();
                check(kinds < 0 || kinds == 0 && falls, "row " + at + " is out of order");
            }
        });
        cases.put("TOP and OFFSET LIMIT count over all partitions", suite -> {
            equal(integers(rows(suite, "SELECT TOP 5 VALUE c.score FROM c ORDER BY c.score")), numbers(0, 5));
            String window = "SELECT VALUE c.score FROM c ORDER BY c.score OFFSET 10 LIMIT 7";
            equal(integers(rows(suite, window)), numbers(10, 7));
            equal(rows(suite, "SELECT TOP 9 * FROM c").size(), 9);
            equal(rows(suite, "SELECT VALUE c.n FROM c OFFSET 55 LIMIT 100").size(), 5);
        });
        cases.put("DISTINCT gives every value once", suite -> {
            List<String> kinds = new ArrayList<>();
            rows(suite, "SELECT DISTINCT VALUE c.kind FROM c").forEach(row -> kinds.add(row.asText()));
            Collections.sort(kinds);
            equal(kinds, List.of("a", "b", "c"));
            String sorted = "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC";
            equal(rows(suite, sorted).toString(), "[\"c\", \"b\", \"a\"]");
        });
        cases.put("GROUP BY adds up the groups of all partitions", suite -> {
            String query = "SELECT c.kind, COUNT(1) AS count, SUM(c.n) AS total, MAX(c.n) AS high FROM c GROUP BY c.kind";
            TreeSet<String> found = new TreeSet<>();
            for (JsonNode row : rows(suite, query)) {
                found.add(row.get("kind").asText() + " " + row.get("count").asInt() + " " + row.get("total").asInt()
                    + " " + row.get("high").asInt());
            }
            equal(found.toString(), "[a 20 570 57, b 20 590 58, c 20 610 59]");
        });
        cases.put("aggregates are those of all items", suite -> {
            String[][] aggregates = {
                {"COUNT(1)", "60"}, {"SUM(c.n)", "1770"}, {"MIN(c.n)", "0"}, {"MAX(c.n)", "59"}, {"AVG(c.n)", "29.5"}
            };
            for (String[] each : aggregates) {
                List<JsonNode> found = rows(suite, "SELECT VALUE " + each[0] + " FROM c");
                equal(found.size(), 1);
                equal(found.get(0).asDouble(), Double.parseDouble(each[1]));
            }
        });
        cases.put("the nearest vectors of all partitions come first", suite -> {
            String query = "SELECT TOP 3 c.id, VectorDistance(c.v, [1, 0]) AS similarity FROM c"
                + " ORDER BY VectorDistance(c.v, [1, 0])";
            List<String> found = rows(suite, query).stream().map(row -> row.get("id").asText()).toList();
            equal(found, List.of("i59", "i58", "i57"));
        });
        cases.put("full-text ranks over all partitions", suite -> {
            String text = "SELECT TOP 15 c.n FROM c ORDER BY RANK FullTextScore(c.text, 'lake')";
            for (JsonNode row : rows(suite, text)) {
                equal(row.get("n").asInt() % 4, 0);
            }
        });
        cases.put("full-text and vector ranks are fused over all partitions", suite -> {
            String both = "SELECT TOP 4 c.id, c.n FROM c"
                + " ORDER BY RANK RRF(FullTextScore(c.text, 'lake'), VectorDistance(c.v, [1, 0]))";
            List<JsonNode> found = rows(suite, both);
            equal(found.stream().map(row -> row.get("id").asText()).distinct().count(), 4L);
            // Which of those with the word come first is not asked: this SDK takes equal scores for different ones (it compares
            // boxed numbers by identity), so ties get ranks of their own, by _rid.
            for (JsonNode row : found) {
                equal(row.get("n").asInt() % 4, 0);
            }
        });
        for (String order : new String[] {"", " ORDER BY c.score"}) {
            String what = order.isEmpty() ? "a query" : "a sorted query";
            cases.put(what + " goes on where its continuation says", suite -> {
                List<Integer> seen = new ArrayList<>();
                String continuation = null;
                do {
                    Iterable<FeedResponse<JsonNode>> pages = readings(suite)
                        .queryItems("SELECT VALUE c.score FROM c" + order, new CosmosQueryRequestOptions(), JsonNode.class)
                        .iterableByPage(continuation, 7);
                    FeedResponse<JsonNode> page = pages.iterator().next();
                    seen.addAll(integers(page.getResults()));
                    continuation = page.getContinuationToken();
                } while (continuation != null);
                if (order.isEmpty()) {
                    Collections.sort(seen);
                }
                equal(seen, numbers(0, COUNT));
            });
        }
        cases.put("a filter on the partition key asks one partition", suite -> {
            SqlQuerySpec query = new SqlQuerySpec("SELECT VALUE c.n FROM c WHERE c.pk = @pk ORDER BY c.n",
                List.of(new SqlParameter("@pk", "k7")));
            equal(integers(rows(suite, query, new CosmosQueryRequestOptions())), List.of(7, 27, 47));
            CosmosQueryRequestOptions one = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("k7"));
            equal(integers(rows(suite, new SqlQuerySpec("SELECT VALUE c.n FROM c ORDER BY c.n"), one)), List.of(7, 27, 47));
        });
    }
}
