package suite;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * The official Java SDK (azure-cosmos), unmodified, against a running server: in gateway mode and, over TLS, in its
 * default mode, which is direct.
 *
 * <pre>COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] java ... suite.Suite [WORD]</pre>
 *
 * This class connects, runs the cases of {@link Cases} and the other classes here, and counts. With COSMOS_CA_FILE the
 * certificate is verified against that file alone. The last line is {@code N passed, N failed}, and so says the exit status.
 */
final class Suite {
    /** A case may throw whatever it likes; anything thrown is a failure. */
    interface Case {
        void run(Suite suite) throws Exception;
    }

    /** An action that is expected to be refused. */
    interface Action {
        Object run() throws Exception;
    }

    private static final int MESSAGE_LENGTH_MAX = 1000;

    static final ObjectMapper JSON = new ObjectMapper();

    /** Whether clients are in their default mode, which is the direct one, instead of gateway mode. */
    static boolean direct;

    final CosmosClient client = connect(System.getenv("COSMOS_KEY"), ConsistencyLevel.SESSION);
    final CosmosDatabase database;
    final CosmosContainer items;

    private Suite() {
        String id = unique("java");
        client.createDatabase(id);
        database = client.getDatabase(id);
        items = container(new CosmosContainerProperties("items", "/pk"), null);
    }

    static CosmosClient connect(String key, ConsistencyLevel level) {
        return builder().key(key).consistencyLevel(level).buildClient();
    }

    /** A client but for what it identifies itself with. */
    static CosmosClientBuilder builder() {
        CosmosClientBuilder builder = new CosmosClientBuilder();
        // Direct mode is what a client has that says nothing.
        return (direct ? builder : builder.gatewayMode())
            .endpoint(System.getenv("COSMOS_ENDPOINT"))
            .consistencyLevel(ConsistencyLevel.SESSION)
            .contentResponseOnWriteEnabled(true);
    }

    CosmosContainer container(CosmosContainerProperties properties, ThroughputProperties throughput) {
        if (throughput == null) {
            database.createContainer(properties);
        } else {
            database.createContainer(properties, throughput);
        }
        return database.getContainer(properties.getId());
    }

    static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID();
    }

    /** An item from JSON text, written with single quotes for the eye. */
    static ObjectNode item(String text) throws IOException {
        return (ObjectNode) JSON.readTree(text.replace('\'', '"'));
    }

    /** The item as text, without the properties that the server adds. */
    static String plain(ObjectNode item) {
        ObjectNode kept = JSON.createObjectNode();
        item.fields().forEachRemaining(each -> {
            if (!each.getKey().startsWith("_")) {
                kept.set(each.getKey(), each.getValue());
            }
        });
        return kept.toString().replace('"', '\'');
    }

    static void equal(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    static void refused(int status, Action action) throws Exception {
        Object outcome;
        try {
            outcome = action.run();
        } catch (CosmosException error) {
            check(error.getStatusCode() == status,
                "expected " + status + ", got " + error.getStatusCode() + ": " + error.getShortMessage());
            return;
        }
        throw new AssertionError("expected " + status + ", but it succeeded with " + outcome);
    }

    /** The SDK puts its whole diagnostics into every message; the beginning says enough, as do our own lines of the stack. */
    private static String describe(Throwable problem) {
        String text = String.valueOf(problem);
        StringBuilder description = new StringBuilder(text.substring(0, Math.min(text.length(), MESSAGE_LENGTH_MAX)));
        for (StackTraceElement line : problem.getStackTrace()) {
            if (line.getClassName().startsWith("suite.")) {
                description.append("\n    at ").append(line);
            }
        }
        return description.toString();
    }

    /** The SDK reads the JVM's settings once, so they are made before its first class is used. */
    private static void trust(String certificateFile) throws GeneralSecurityException, IOException {
        if (certificateFile == null || certificateFile.isEmpty()) {
            System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
            return;
        }
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (FileInputStream file = new FileInputStream(certificateFile)) {
            int number = 0;
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
                store.setCertificateEntry("server-" + number++, certificate);
            }
        }
        Path path = Files.createTempFile("sdk-suite", ".p12");
        path.toFile().deleteOnExit();
        try (FileOutputStream file = new FileOutputStream(path.toFile())) {
            store.store(file, "changeit".toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", path.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
        System.setProperty("javax.net.ssl.trustStoreType", "PKCS12");
    }

    public static void main(String[] arguments) throws Exception {
        String certificate = System.getenv("COSMOS_CA_FILE");
        trust(certificate);
        int passed = 0;
        int failed = 0;
        // Direct mode is TLS whatever the endpoint says, so it needs the certificate.
        String modes = System.getenv().getOrDefault("COSMOS_MODES", certificate == null ? "gateway" : "gateway,direct");
        for (String mode : modes.split(",")) {
            direct = mode.equals("direct");
            int[] counts = runAll(mode, arguments);
            passed += counts[0];
            failed += counts[1];
        }
        System.out.printf("%d passed, %d failed%n", passed, failed);
        // The SDK keeps threads that are not daemons; nothing is left to wait for.
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Runs the cases in one mode and returns how many passed and failed. */
    private static int[] runAll(String mode, String[] arguments) throws Exception {
        Map<String, Case> cases = new LinkedHashMap<>();
        Cases.addTo(cases);
        AccessCases.addTo(cases);
        ScriptCases.addTo(cases);
        SplitCases.addTo(cases);
        ThrottlingCases.addTo(cases);
        ModeCases.addTo(cases);
        AsyncCases.addTo(cases);
        SpringCases.addTo(cases);
        Suite suite = new Suite();
        int[] counts = new int[2];
        for (var each : cases.entrySet()) {
            if (arguments.length > 0 && !each.getKey().contains(arguments[0])) {
                continue;
            }
            long started = System.nanoTime();
            try {
                each.getValue().run(suite);
                counts[0]++;
                System.out.printf("ok   %s: %s (%.2f s)%n", mode, each.getKey(), (System.nanoTime() - started) / 1e9);
            } catch (Throwable problem) {
                counts[1]++;
                System.out.println("FAIL " + mode + ": " + each.getKey() + "\n" + describe(problem));
            }
        }
        suite.database.delete();
        suite.client.close();
        return counts;
    }
}
