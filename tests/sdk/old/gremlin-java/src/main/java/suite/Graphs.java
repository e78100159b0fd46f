package suite;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Locale;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.apache.tinkerpop.gremlin.driver.Cluster;

/** Where the server is, and the graphs that the NoSQL API makes there. */
final class Graphs {
  private static final String TRUST_PASSWORD = "changeit";
  private static final DateTimeFormatter DATE =
      DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US);

  private final URI endpoint = URI.create(System.getenv("COSMOS_ENDPOINT"));
  private final String key = System.getenv("COSMOS_KEY");
  private final String database = "gremlin" + UUID.randomUUID().toString().substring(0, 8);
  private final KeyStore trusted;
  private final HttpClient http;

  Graphs() {
    try {
      trusted = trusted();
      HttpClient.Builder builder = HttpClient.newBuilder();
      if (trusted != null) {
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        builder.sslContext(tls);
      }
      http = builder.build();
      rest("POST", "/dbs", "dbs", "", "{\"id\":\"" + database + "\"}");
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static KeyStore trusted() throws Exception {
    String file = System.getenv("COSMOS_CA_FILE");
    if (file == null) {
      return null;
    }
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    try (FileInputStream in = new FileInputStream(file)) {
      int number = 0;
      for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
        store.setCertificateEntry("orrery" + number++, one);
      }
    }
    return store;
  }

  /** A cluster of one server whose credentials name the graph. */
  Cluster.Builder cluster(String graph) {
    try {
      Cluster.Builder builder = Cluster.build(endpoint.getHost())
          .port(endpoint.getPort())
          .credentials("/dbs/" + database + "/colls/" + graph, key);
      if (trusted != null) {
        Path store = Files.createTempFile("orrery", ".p12");
        store.toFile().deleteOnExit();
        try (FileOutputStream out = new FileOutputStream(store.toFile())) {
          trusted.store(out, TRUST_PASSWORD.toCharArray());
        }
        builder.enableSsl(true).trustStore(store.toString()).trustStorePassword(TRUST_PASSWORD);
      }
      return builder;
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  /** A new graph, partitioned by `pk`. */
  String make() throws Exception {
    String name = UUID.randomUUID().toString();
    String body = "{\"id\":\"" + name + "\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}";
    rest("POST", "/dbs/" + database + "/colls", "colls", "dbs/" + database, body);
    return name;
  }

  void drop() throws Exception {
    rest("DELETE", "/dbs/" + database, "dbs", "dbs/" + database, null);
  }

  private void rest(String method, String path, String kind, String link, String body) throws Exception {
    String date = ZonedDateTime.now(ZoneOffset.UTC).format(DATE);
    String text = String.join("\n", method.toLowerCase(Locale.ROOT), kind, link, date.toLowerCase(Locale.ROOT), "", "");
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(Base64.getDecoder().decode(key), "HmacSHA256"));
    String signature =
        Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
    String token = URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8);
    HttpRequest request = HttpRequest.newBuilder(endpoint.resolve(path))
        .header("authorization", token)
        .header("x-ms-date", date)
        .header("x-ms-version", "2018-12-31")
        .header("content-type", "application/json")
        .method(method, body == null
            ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body))
        .build();
    HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() >= 300) {
      throw new IllegalStateException(method + " " + path + ": " + answer.statusCode() + " " + answer.body());
    }
  }
}
