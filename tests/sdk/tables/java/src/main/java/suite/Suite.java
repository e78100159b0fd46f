package suite;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * The official Table SDK for Java (azure-data-tables), unmodified, against a running server.
 *
 * <pre>COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] java ... suite.Suite [WORD]</pre>
 *
 * Each case runs twice: addressed to 127.0.0.1 the server speaks the dialect of storage, to localhost that of Cosmos DB. The
 * last line is {@code N passed, N failed}, and so says the exit status.
 */
final class Suite {
    /** A case may throw whatever it likes; anything thrown is a failure. */
    interface Case {
        void run(TableClient table) throws Exception;
    }

    private static final Map<String, Case> CASES = new LinkedHashMap<>();

    static {
        CASES.put("every type comes back as it was", table -> {
            OffsetDateTime time = OffsetDateTime.parse("2020-01-02T03:04:05.678Z");
            UUID guid = UUID.randomUUID();
            TableEntity entity = new TableEntity("types", "1").addProperty("text", "it's ü").addProperty("flag", true)
                .addProperty("small", -5).addProperty("half", 2.5).addProperty("large", 1L << 60).addProperty("guid", guid)
                .addProperty("time", time).addProperty("bytes", new byte[] {0, -1});
            table.createEntity(entity);
            TableEntity found = table.getEntity("types", "1");
            for (String name : List.of("text", "flag", "small", "half", "large", "guid", "time")) {
                equal(found.getProperty(name), entity.getProperty(name));
            }
            refused(409, () -> table.createEntity(entity));
        });
        CASES.put("an entity is changed only in the version that was read", table -> {
            table.createEntity(new TableEntity("etag", "1").addProperty("n", 1));
            TableEntity before = table.getEntity("etag", "1");
            table.updateEntity(new TableEntity("etag", "1").addProperty("n", 2), TableEntityUpdateMode.REPLACE);
            refused(412, () ->
                table.updateEntityWithResponse(before, TableEntityUpdateMode.REPLACE, true, null, null));
            refused(412, () -> table.deleteEntityWithResponse(before, true, null, null));
            equal(table.getEntity("etag", "1").getProperty("n"), 2);
        });
        CASES.put("a merge keeps what it does not name", table -> {
            table.upsertEntityWithResponse(
                new TableEntity("merge", "1").addProperty("a", 1).addProperty("b", 1), TableEntityUpdateMode.MERGE, null, null);
            table.upsertEntityWithResponse(
                new TableEntity("merge", "1").addProperty("b", 2), TableEntityUpdateMode.MERGE, null, null);
            equal(table.getEntity("merge", "1").getProperty("a"), 1);
            equal(table.getEntity("merge", "1").getProperty("b"), 2);
        });
        CASES.put("queries find and page", table -> {
            List<TableTransactionAction> creates = new ArrayList<>();
            for (int n = 0; n < 100; n++) {
                TableEntity entity = new TableEntity("query", String.format("%03d", n)).addProperty("n", n);
                creates.add(new TableTransactionAction(TableTransactionActionType.CREATE, entity));
            }
            table.submitTransaction(creates);
            ListEntitiesOptions options = new ListEntitiesOptions().setFilter("PartitionKey eq 'query' and n ge 40").setTop(25);
            List<Integer> sizes = new ArrayList<>();
            List<Object> numbers = new ArrayList<>();
            for (PagedResponse<TableEntity> page : table.listEntities(options, null, null).iterableByPage()) {
                sizes.add(page.getValue().size());
                page.getValue().forEach(entity -> numbers.add(entity.getProperty("n")));
            }
            equal(sizes, List.of(25, 25, 10));
            equal(numbers.get(0), 40);
            equal(numbers.get(59), 99);
        });
        CASES.put("a transaction is all or nothing", table -> {
            table.createEntity(new TableEntity("batch", "1"));
            try {
                table.submitTransaction(List.of(
                    new TableTransactionAction(TableTransactionActionType.UPSERT_MERGE, new TableEntity("batch", "2")),
                    new TableTransactionAction(TableTransactionActionType.CREATE, new TableEntity("batch", "1"))));
                throw new AssertionError("the transaction succeeded");
            } catch (TableTransactionFailedException error) {
                equal(error.getFailedTransactionActionIndex(), 1);
            }
            refused(404, () -> table.getEntity("batch", "2"));
        });
        CASES.put("keys may hold what addresses may not", table -> {
            for (String key : List.of("O'Brien", "a b", "100%", "a+b=c&d", "ü💡", "(x)")) {
                table.upsertEntity(new TableEntity(key, key).addProperty("n", 1));
                equal(table.getEntity(key, key).getRowKey(), key);
            }
        });
    }

    private static void equal(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }

    private static void refused(int status, Runnable action) {
        try {
            action.run();
        } catch (TableServiceException error) {
            equal(error.getResponse().getStatusCode(), status);
            return;
        }
        throw new AssertionError("expected " + status + ", but it succeeded");
    }

    private static TableServiceClient connect(String host) {
        String endpoint = System.getenv("COSMOS_ENDPOINT").replaceAll("/$", "").replace("127.0.0.1", host);
        String account = Objects.requireNonNullElse(System.getenv("COSMOS_ACCOUNT"), "orrery");
        return new TableServiceClientBuilder().endpoint(endpoint + "/" + account)
            .credential(new AzureNamedKeyCredential(account, System.getenv("COSMOS_KEY"))).buildClient();
    }

    /** The JVM takes the certificates that it trusts from a file of its own form. */
    private static void trust(String file) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(file)) {
            int number = 0;
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("server" + number++, certificate);
            }
        }
        Path kept = Files.createTempFile("trust", ".p12");
        kept.toFile().deleteOnExit();
        try (FileOutputStream out = new FileOutputStream(kept.toFile())) {
            store.store(out, "changeit".toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", kept.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
    }

    public static void main(String[] words) throws Exception {
        if (System.getenv("COSMOS_CA_FILE") != null) {
            trust(System.getenv("COSMOS_CA_FILE"));
        }
        int passed = 0;
        int failed = 0;
        for (String host : List.of("127.0.0.1", "localhost")) {
            TableServiceClient service = connect(host);
            String name = "java" + UUID.randomUUID().toString().replace("-", "");
            TableClient table = service.createTable(name);
            for (Map.Entry<String, Case> each : CASES.entrySet()) {
                if (words.length > 0 && !each.getKey().contains(words[0])) {
                    continue;
                }
                try {
                    each.getValue().run(table);
                    passed++;
                    System.out.println("ok   " + each.getKey() + " (" + host + ")");
                } catch (Throwable problem) {
                    failed++;
                    System.out.println("FAIL " + each.getKey() + " (" + host + ")\n" + problem);
                }
            }
            service.deleteTable(name);
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed > 0 ? 1 : 0);
    }
}
