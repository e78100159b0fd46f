import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV2;

/** People who know each other, with gremlin-driver: see ../README.md. */
public final class People {
  private static final String KEY = env("COSMOS_KEY",
      "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==");
  private static final URI REST = URI.create(env("COSMOS_ENDPOINT", "http://localhost:8081/"));
  private static final URI GRAPHS = URI.create(env("GREMLIN_ENDPOINT", "ws://localhost:8901/"));
  private static final String DATABASE =
      env("COSMOS_DATABASE", "social-" + UUID.randomUUID().toString().substring(0, 8));
  private static final DateTimeFormatter DATE =
      DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US);

  private static Client graph;

  private static String env(String name, String otherwise) {
    return Optional.ofNullable(System.getenv(name)).orElse(otherwise);
  }

  /** A request of the NoSQL API, signed. */
  private static void rest(String method, String path, String kind, String link, String body) throws Exception {
    String date = ZonedDateTime.now(ZoneOffset.UTC).format(DATE);
    String text = String.join("\n", method.toLowerCase(Locale.ROOT), kind, link, date.toLowerCase(Locale.ROOT), "", "");
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(Base64.getDecoder().decode(KEY), "HmacSHA256"));
    String signature = Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
    HttpRequest request = HttpRequest.newBuilder(REST.resolve(path))
        .header("authorization",
            URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8))
        .header("x-ms-date", date)
        .header("x-ms-version", "2018-12-31")
        .header("content-type", "application/json")
        .method(method, HttpRequest.BodyPublishers.ofString(body))
        .build();
    HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() >= 300) {
      throw new IllegalStateException(method + " " + path + ": " + answer.statusCode());
    }
  }

  private static List<String> run(String script, Map<String, Object> bindings) throws Exception {
    List<String> found = new ArrayList<>();
    for (Result result : graph.submit(script, bindings).all().get()) {
      found.add(result.getString());
    }
    return found;
  }

  private static String one(String script) throws Exception {
    return run(script, Map.of()).get(0);
  }

  private static String sorted(String script) throws Exception {
    return String.join(", ", run(script, Map.of()).stream().sorted().toList());
  }

  public static void main(String[] arguments) throws Exception {
    rest("POST", "/dbs", "dbs", "", "{\"id\":\"" + DATABASE + "\"}");
    rest("POST", "/dbs/" + DATABASE + "/colls", "colls", "dbs/" + DATABASE,
        "{\"id\":\"people\",\"partitionKey\":{\"paths\":[\"/town\"],\"kind\":\"Hash\",\"version\":2}}");
    Cluster cluster = Cluster.build(GRAPHS.getHost())
        .port(GRAPHS.getPort())
        .enableSsl(GRAPHS.getScheme().equals("wss"))
        .credentials("/dbs/" + DATABASE + "/colls/people", KEY)
        .serializer(new GraphSONMessageSerializerV2())
        .create();
    graph = cluster.connect();
    for (Object[] person : new Object[][] {
        {"ann", "oslo", 30}, {"bob", "oslo", 25}, {"cid", "rome", 28}, {"dot", "rome", 29}}) {
      run("g.addV('person').property('id', name).property('town', town).property('age', age)",
          Map.of("name", person[0], "town", person[1], "age", person[2]));
    }
    for (String[] pair : new String[][] {{"ann", "bob"}, {"ann", "cid"}, {"bob", "cid"}, {"cid", "dot"}}) {
      run("g.V(one).addE('knows').to(g.V(other))", Map.of("one", pair[0], "other", pair[1]));
    }
    System.out.println(one("g.V().count()") + " people, " + one("g.E().count()") + " edges");
    System.out.println("ann lives in " + one("g.V(['oslo', 'ann']).values('town')"));
    System.out.println("ann knows: " + sorted("g.V(['oslo', 'ann']).out('knows').id()"));
    System.out.println("ann knows at two hops: "
        + sorted("g.V(['oslo', 'ann']).out('knows').out('knows').dedup().id()"));
    System.out.println("cid is known by: " + sorted("g.V(['rome', 'cid']).in('knows').id()"));
    System.out.println("older than 28, by age: "
        + String.join(", ", run("g.V().has('age', gt(28)).order().by('age').id()", Map.of())));
    System.out.println("bob is now " + one("g.V(['oslo', 'bob']).property('age', 26).values('age')"));
    run("g.V(['rome', 'cid']).drop()", Map.of());
    System.out.println("without cid: " + one("g.V().count()") + " people, " + one("g.E().count()") + " edges");
    cluster.close();
    rest("DELETE", "/dbs/" + DATABASE, "dbs", "dbs/" + DATABASE, "");
    System.exit(0);
  }
}
