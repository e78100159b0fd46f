package suite;

import com.microsoft.azure.storage.CloudStorageAccount;
import com.microsoft.azure.storage.StorageException;
import com.microsoft.azure.storage.table.CloudTable;
import com.microsoft.azure.storage.table.CloudTableClient;
import com.microsoft.azure.storage.table.DynamicTableEntity;
import com.microsoft.azure.storage.table.EntityProperty;
import com.microsoft.azure.storage.table.TableBatchOperation;
import com.microsoft.azure.storage.table.TableOperation;
import com.microsoft.azure.storage.table.TableQuery;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/**
 * The storage client for Java of 2013 to 2022 (com.microsoft.azure:azure-storage), unmodified, against the tables of a running server.
 *
 * <pre>COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] java ... suite.Suite</pre>
 *
 * Each case runs twice: addressed to 127.0.0.1 the server speaks the dialect of storage, to localhost that of Cosmos DB. The
 * last line is {@code N passed, N failed}, and so says the exit status.
 */
final class Suite {
    /** A case may throw whatever it likes; anything thrown is a failure. */
    interface Case {
        void run(CloudTable table) throws Exception;
    }

    interface Action {
        void run() throws Exception;
    }

    private static final Map<String, Case> CASES = new LinkedHashMap<>();

    static {
        CASES.put("a table is created once and listed", table -> {
            equal(table.createIfNotExists(), false);
            refused(409, table::create);
            List<String> names = new ArrayList<>();
            table.getServiceClient().listTables(table.getName()).forEach(names::add);
            equal(names, List.of(table.getName()));
        });
        CASES.put("every type comes back as it was", table -> {
            UUID guid = UUID.randomUUID();
            DynamicTableEntity entity = entity("types", "1");
            entity.getProperties().put("text", new EntityProperty("it's ü"));
            entity.getProperties().put("flag", new EntityProperty(true));
            entity.getProperties().put("small", new EntityProperty(-5));
            entity.getProperties().put("large", new EntityProperty(1L << 60));
            entity.getProperties().put("half", new EntityProperty(2.5));
            entity.getProperties().put("guid", new EntityProperty(guid));
            entity.getProperties().put("bytes", new EntityProperty(new byte[] {0, -1}));
            table.execute(TableOperation.insert(entity));
            DynamicTableEntity found = read(table, "types", "1");
            equal(found.getProperties().get("text").getValueAsString(), "it's ü");
            equal(found.getProperties().get("flag").getValueAsBoolean(), true);
            equal(found.getProperties().get("small").getValueAsInteger(), -5);
            equal(found.getProperties().get("large").getValueAsLong(), 1L << 60);
            equal(found.getProperties().get("half").getValueAsDouble(), 2.5);
            equal(found.getProperties().get("guid").getValueAsUUID(), guid);
            equal(found.getProperties().get("bytes").getValueAsByteArray()[1], (byte) -1);
        });
        CASES.put("entities are changed in every way", table -> {
            table.execute(TableOperation.insert(number("ways", "1", 1)));
            refused(409, () -> table.execute(TableOperation.insert(number("ways", "1", 1))));
            DynamicTableEntity before = read(table, "ways", "1");
            DynamicTableEntity change = entity("ways", "1");
            change.setEtag("*");
            change.getProperties().put("b", new EntityProperty(2));
            table.execute(TableOperation.merge(change));
            refused(412, () -> table.execute(TableOperation.replace(before)));
            equal(read(table, "ways", "1").getProperties().keySet().containsAll(List.of("n", "b")), true);
            table.execute(TableOperation.insertOrMerge(number("ways", "2", 1)));
            table.execute(TableOperation.insertOrReplace(entity("ways", "2")));
            equal(read(table, "ways", "2").getProperties().containsKey("n"), false);
            table.execute(TableOperation.delete(read(table, "ways", "2")));
            equal(read(table, "ways", "2"), null);
        });
        CASES.put("queries find and page", table -> {
            TableBatchOperation batch = new TableBatchOperation();
            for (int n = 0; n < 100; n++) {
                batch.insert(number("query", String.format("%03d", n), n));
            }
            table.execute(batch);
            String filter = TableQuery.combineFilters("PartitionKey eq 'query'", "and", "n ge 95");
            equal(keys(table, TableQuery.from(DynamicTableEntity.class).where(filter)),
                List.of("095", "096", "097", "098", "099"));
            var page = table.executeSegmented(
                TableQuery.from(DynamicTableEntity.class).where("PartitionKey eq 'query'").take(40), null);
            equal(page.getLength(), 40);
            page = table.executeSegmented(
                TableQuery.from(DynamicTableEntity.class).where("PartitionKey eq 'query'"), page.getContinuationToken());
            equal(page.getResults().get(0).getRowKey(), "040");
        });
        CASES.put("a batch is all or nothing", table -> {
            table.execute(TableOperation.insert(entity("batch", "there")));
            TableBatchOperation failing = new TableBatchOperation();
            failing.insert(entity("batch", "new"));
            failing.insert(entity("batch", "there"));
            refused(409, () -> table.execute(failing));
            equal(read(table, "batch", "new"), null);
            TableBatchOperation batch = new TableBatchOperation();
            batch.insertOrReplace(entity("batch", "new"));
            batch.insertOrMerge(number("batch", "there", 1));
            equal(table.execute(batch).size(), 2);
        });
    }

    private Suite() {}

    private static DynamicTableEntity entity(String partition, String row) {
        return new DynamicTableEntity(partition, row);
    }

    private static DynamicTableEntity number(String partition, String row, int n) {
        DynamicTableEntity entity = entity(partition, row);
        entity.getProperties().put("n", new EntityProperty(n));
        return entity;
    }

    private static DynamicTableEntity read(CloudTable table, String partition, String row) throws StorageException {
        return table.execute(TableOperation.retrieve(partition, row, DynamicTableEntity.class)).getResultAsType();
    }

    private static List<String> keys(CloudTable table, TableQuery<DynamicTableEntity> query) {
        List<String> keys = new ArrayList<>();
        table.execute(query).forEach(one -> keys.add(one.getRowKey()));
        return keys;
    }

    private static void equal(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }

    private static void refused(int status, Action action) throws Exception {
        try {
            action.run();
        } catch (StorageException error) {
            equal(error.getHttpStatusCode(), status);
            return;
        }
        throw new AssertionError("expected " + status + ", but it succeeded");
    }

    /** The JVM trusts the certificates of the file, and nobody else. */
    private static void trust(String file) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        int n = 0;
        try (FileInputStream from = new FileInputStream(file)) {
            for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(from)) {
                store.setCertificateEntry("orrery" + n++, one);
            }
        }
        Path path = Files.createTempFile("orrery", ".p12");
        try (FileOutputStream to = new FileOutputStream(path.toFile())) {
            store.store(to, "orrery".toCharArray());
        }
        path.toFile().deleteOnExit();
        System.setProperty("javax.net.ssl.trustStore", path.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "orrery");
    }

    public static void main(String[] arguments) throws Exception {
        String certificates = System.getenv("COSMOS_CA_FILE");
        if (certificates != null) {
            trust(certificates);
        }
        int passed = 0;
        int failed = 0;
        for (String host : List.of("127.0.0.1", "localhost")) {
            String endpoint = System.getenv("COSMOS_ENDPOINT").replaceAll("/$", "").replace("127.0.0.1", host);
            CloudTableClient client = CloudStorageAccount.parse("DefaultEndpointsProtocol=" + endpoint.split(":")[0]
                + ";AccountName=orrery;AccountKey=" + System.getenv("COSMOS_KEY")
                + ";TableEndpoint=" + endpoint + "/orrery").createCloudTableClient();
            CloudTable table = client.getTableReference("old" + UUID.randomUUID().toString().replace("-", ""));
            table.create();
            for (Map.Entry<String, Case> each : CASES.entrySet()) {
                try {
                    each.getValue().run(table);
                    passed++;
                    System.out.println("ok   " + host + " " + each.getKey());
                } catch (Throwable error) {
                    failed++;
                    System.out.println("FAIL " + host + " " + each.getKey());
                    error.printStackTrace(System.out);
                }
            }
            table.delete();
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
