package suite;

import static suite.Suite.check;

import com.fasterxml.jackson.databind.JsonNode;
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
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The server's own routes, signed as the SDK signs. */
final class Admin {
    private Admin() {}

    /** One request to {@code _orrery/name}; the body is JSON with single quotes for the eye, or null. */
    static JsonNode ask(String method, String name, String body) throws Exception {
        String link = "_orrery/" + name;
        String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC));
        String text = method.toLowerCase(Locale.ROOT) + "\n_orrery\n" + link + "\n" + date.toLowerCase(Locale.ROOT) + "\n\n";
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(Base64.getDecoder().decode(System.getenv("COSMOS_KEY")), "HmacSHA256"));
        String signature = Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        String token = URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8);
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("COSMOS_ENDPOINT")).resolve("/" + link))
            .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body.replace('\'', '"')))
            .header("authorization", token)
            .header("x-ms-date", date)
            .build();
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        HttpResponse<String> answer = client.send(request, BodyHandlers.ofString());
        check(answer.statusCode() < 300, answer.body());
        return Suite.JSON.readTree(answer.body().isEmpty() ? "{}" : answer.body());
    }
}
