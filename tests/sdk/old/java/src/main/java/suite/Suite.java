package suite;

import com.microsoft.azure.documentdb.Attachment;
import com.microsoft.azure.documentdb.ConnectionMode;
import com.microsoft.azure.documentdb.ConnectionPolicy;
import com.microsoft.azure.documentdb.ConsistencyLevel;
import com.microsoft.azure.documentdb.Database;
import com.microsoft.azure.documentdb.Document;
import com.microsoft.azure.documentdb.DocumentClient;
import com.microsoft.azure.documentdb.DocumentClientException;
import com.microsoft.azure.documentdb.DocumentCollection;
import com.microsoft.azure.documentdb.FeedOptions;
import com.microsoft.azure.documentdb.MediaOptions;
import com.microsoft.azure.documentdb.PartitionKey;
import com.microsoft.azure.documentdb.PartitionKeyDefinition;
import com.microsoft.azure.documentdb.RequestOptions;
import com.microsoft.azure.documentdb.StoredProcedure;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Device readings with azure-documentdb 2.6, which speaks TLS only. The last line is {@code N passed, N failed}. */
final class Suite {
    interface Step {
        void run() throws Exception;
    }

    private static final String HOT = "SELECT * FROM c WHERE c.metricType = 'Temperature' AND c.metricValue > 100 "
            + "ORDER BY c.metricValue DESC";
    private static final String COUNT = "function () { var items = getContext().getCollection(); "
            + "items.queryDocuments(items.getSelfLink(), 'SELECT * FROM c', function (error, found) { "
            + "getContext().getResponse().setBody(found.length); }); }";

    private final DocumentClient client;
    private final String database = "readings-" + UUID.randomUUID();
    private final String link = "dbs/" + database;
    private final String fixed = link + "/colls/fixed";
    private final String keyed = link + "/colls/keyed";

    private Suite() {
        ConnectionPolicy policy = new ConnectionPolicy();
        policy.setConnectionMode(ConnectionMode.Gateway);
        client = new DocumentClient(System.getenv("COSMOS_ENDPOINT"), System.getenv("COSMOS_KEY"), policy,
                ConsistencyLevel.Session);
    }

    private Map<String, Step> steps() {
        Map<String, Step> steps = new LinkedHashMap<>();
        steps.put("a collection without a key has none", this::fixedCollection);
        steps.put("its documents need no key", this::fixedDocuments);
        steps.put("a partitioned collection routes by its key", this::keyedDocuments);
        steps.put("queries go over both partitions", this::queries);
        steps.put("procedures run", this::procedures);
        steps.put("attachments are kept with their document", this::attachments);
        return steps;
    }

    private void fixedCollection() throws Exception {
        DocumentCollection collection = new DocumentCollection();
        collection.setId("fixed");
        RequestOptions options = new RequestOptions();
        options.setOfferType("S1");
        DocumentCollection created = client.createCollection(link, collection, options).getResource();
        // Its getter would put one in.
        check(!created.has("partitionKey"), created);
        check(!client.readCollection(fixed, null).getResource().has("partitionKey"), created);
    }

    private void fixedDocuments() throws Exception {
        for (int n = 0; n < 10; n++) {
            client.createDocument(fixed, reading(1, n), null, true);
        }
        Document one = client.readDocument(fixed + "/docs/1-2", null).getResource();
        one.set("metricValue", 99);
        check(client.replaceDocument(one, null).getResource().getInt("metricValue") == 99, one);
        String hot = "SELECT * FROM c WHERE c.metricValue > 17 ORDER BY c.metricValue DESC";
        check(values(fixed, hot, new FeedOptions()).equals(List.of(99, 19, 18)), hot);
        client.deleteDocument(one.getSelfLink(), null);
        check(statusOf(() -> client.readDocument(fixed + "/docs/1-2", null)) == 404, "deleted");
    }

    private void keyedDocuments() throws Exception {
        PartitionKeyDefinition key = new PartitionKeyDefinition();
        key.setPaths(List.of("/deviceId"));
        DocumentCollection collection = new DocumentCollection();
        collection.setId("keyed");
        collection.setPartitionKey(key);
        RequestOptions offer = new RequestOptions();
        offer.setOfferThroughput(20_000);
        client.createCollection(link, collection, offer);
        for (int device = 0; device < 20; device++) {
            for (int n = 0; n < 5; n++) {
                client.createDocument(keyed, reading(device, n), null, true);
            }
        }
        Document one = client.readDocument(keyed + "/docs/3-2", under("device-3")).getResource();
        one.set("metricValue", 99);
        check(client.replaceDocument(one, under("device-3")).getResource().getInt("metricValue") == 99, one);
        client.deleteDocument(one.getSelfLink(), under("device-3"));
        check(statusOf(() -> client.readDocument(keyed + "/docs/3-2", under("device-3"))) == 404, "deleted");
    }

    private void queries() {
        FeedOptions one = new FeedOptions();
        one.setPartitionKey(new PartitionKey("device-7"));
        check(values(keyed, "SELECT * FROM c ORDER BY c.metricValue", one).equals(List.of(70, 71, 72, 73, 74)), "one");
        FeedOptions across = new FeedOptions();
        across.setEnableCrossPartitionQuery(true);
        List<Integer> found = values(keyed, HOT, across);
        check(found.size() == 29 && found.get(0) == 194, found);
        Object sum = client.queryDocuments(keyed, "SELECT VALUE SUM(c.metricValue) FROM c", across)
                .getQueryIterator().next().get("_aggregate");
        check(sum instanceof Number total && total.intValue() == 9668, sum);
    }

    private void procedures() throws Exception {
        StoredProcedure procedure = new StoredProcedure();
        procedure.setId("count");
        procedure.setBody(COUNT);
        client.createStoredProcedure(fixed, procedure, null);
        client.createStoredProcedure(keyed, procedure, null);
        String here = client.executeStoredProcedure(fixed + "/sprocs/count", null, null).getResponseAsString();
        check(here.equals("9"), here);
        String there = client.executeStoredProcedure(keyed + "/sprocs/count", under("device-7"), null).getResponseAsString();
        check(there.equals("5"), there);
    }

    private void attachments() throws Exception {
        String document = keyed + "/docs/4-4";
        Attachment manual = new Attachment();
        manual.setId("manual");
        manual.setContentType("text/html");
        manual.setMediaLink("http://example.com/m");
        RequestOptions options = under("device-4");
        Attachment made = client.createAttachment(document, manual, options).getResource();
        check(client.readAttachment(made.getSelfLink(), options).getResource().getMediaLink().endsWith("/m"), made);
        client.deleteAttachment(made.getSelfLink(), options);
        check(statusOf(() -> client.readAttachment(made.getSelfLink(), options)) == 404, made);
        // Uploads have no options for a key, so they go into a collection without one.
        MediaOptions plain = new MediaOptions();
        plain.setSlug("photo");
        plain.setContentType("text/plain");
        Attachment photo = client.createAttachment(fixed + "/docs/1-4", stream("first"), plain).getResource();
        check(read(photo).equals("first"), photo);
        client.updateMedia(photo.getMediaLink(), stream("second"), plain);
        check(read(photo).equals("second"), photo);
    }

    private String read(Attachment attachment) throws Exception {
        try (InputStream media = client.readMedia(attachment.getMediaLink()).getMedia()) {
            return new String(media.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private List<Integer> values(String collection, String query, FeedOptions options) {
        List<Integer> values = new ArrayList<>();
        for (Document found : client.queryDocuments(collection, query, options).getQueryIterable()) {
            values.add(found.getInt("metricValue"));
        }
        return values;
    }

    private static InputStream stream(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
    }

    private static RequestOptions under(String key) {
        RequestOptions options = new RequestOptions();
        options.setPartitionKey(new PartitionKey(key));
        return options;
    }

    private static Document reading(int device, int n) {
        Document reading = new Document();
        reading.setId(device + "-" + n);
        reading.set("deviceId", "device-" + device);
        reading.set("metricType", n % 2 == 0 ? "Temperature" : "Humidity");
        reading.set("metricValue", device * 10 + n);
        return reading;
    }

    private static int statusOf(Step step) throws Exception {
        try {
            step.run();
            return 200;
        } catch (DocumentClientException refused) {
            return refused.getStatusCode();
        }
    }

    private static void check(boolean holds, Object found) {
        if (!holds) {
            throw new AssertionError("found " + found);
        }
    }

    /** Trusts the certificates of the file and no others. */
    private static void trust(String file) throws Exception {
        if (file == null) {
            return;
        }
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream in = Files.newInputStream(Path.of(file))) {
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("server-" + store.size(), certificate);
            }
        }
        Path saved = Files.createTempFile("trust", ".p12");
        saved.toFile().deleteOnExit();
        try (OutputStream out = Files.newOutputStream(saved)) {
            store.store(out, "trusted".toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", saved.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "trusted");
    }

    public static void main(String[] arguments) throws Exception {
        trust(System.getenv("COSMOS_CA_FILE"));
        Suite suite = new Suite();
        Database database = new Database();
        database.setId(suite.database);
        suite.client.createDatabase(database, null);
        int passed = 0;
        int failed = 0;
        for (var each : suite.steps().entrySet()) {
            try {
                each.getValue().run();
                passed++;
            } catch (Throwable problem) {
                failed++;
                System.out.println("FAILED " + each.getKey() + ": " + problem);
            }
        }
        suite.client.deleteDatabase(suite.link, null);
        System.out.printf("%d passed, %d failed%n", passed, failed);
        System.exit(failed > 0 ? 1 : 0);
    }
}
