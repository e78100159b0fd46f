package suite;

import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.refused;

import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Locale;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Requests that are refused for their rate, and what the SDK makes of it.
 *
 * <p>The server is made to refuse by its fault rules, so that the cases take no time and need no throughput of their own.
 */
final class ThrottlingCases {
    private static final String LINK = "_orrery/faults";

    private ThrottlingCases() {}

    private static JsonNode faults(String method, String body) throws Exception {
        String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC));
        String text = method.toLowerCase(Locale.ROOT) + "\n_orrery\n" + LINK + "\n" + date.toLowerCase(Locale.ROOT) + "\n\n";
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(System.getenv("COSMOS_KEY")), "HmacSHA256"));
        String signature = Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        String token = URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8);
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("COSMOS_ENDPOINT")).resolve("/" + LINK))
            .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body.replace('\'', '"')))
            .header("authorization", token)
            .header("x-ms-date", date)
            .build();
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        HttpResponse<String> answer = client.send(request, BodyHandlers.ofString());
        check(answer.statusCode() < 300, answer.body());
        return Suite.JSON.readTree(answer.body().isEmpty() ? "{}" : answer.body());
    }

    /** Runs an action under one fault rule and returns how often it fired. */
    private static int fired(String rule, Suite.Case action, Suite suite) throws Exception {
        faults("PUT", "{'seed':1,'rules':[" + rule + "]}");
        try {
            action.run(suite);
            return faults("GET", null).path("rules").path(0).path("fired").asInt();
        } finally {
            faults("DELETE", null);
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
    }
}
