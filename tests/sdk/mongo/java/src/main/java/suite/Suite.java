package suite;

import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gt;
import static com.mongodb.client.model.Filters.in;
import static com.mongodb.client.model.Filters.lt;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoSecurityException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import java.io.FileInputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bson.Document;
import org.bson.types.Decimal128;
import org.bson.types.ObjectId;

/**
 * MongoDB's driver for Java (sync) and Spring Data MongoDB over it, unmodified, against a running server.
 *
 * <pre>COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] java ... suite.Suite [WORD]</pre>
 *
 * Every case is named by the sentence it proves. The last line is {@code N passed, N failed}, and so says the exit status.
 */
final class Suite {
    /** A case may throw whatever it likes; anything thrown is a failure. */
    interface Case {
        void run(MongoClient client, MongoDatabase database) throws Exception;
    }

    private static final Map<String, Case> CASES = new LinkedHashMap<>();

    static {
        CASES.put("every type comes back as it was", (client, database) -> {
            MongoCollection<Document> types = database.getCollection("types");
            Document given = new Document("_id", new ObjectId()).append("text", "it's ü").append("flag", true)
                .append("small", -5).append("large", 1L << 60).append("half", 2.5).append("when", new Date(1700000000123L))
                .append("exact", Decimal128.parse("1.50")).append("list", Arrays.asList(1, "b", null))
                .append("inner", new Document("a", new Document("b", 1)));
            types.insertOne(given);
            equal(types.find(eq("_id", given.get("_id"))).first(), given);
            equal(types.find(eq("exact", 1.5)).projection(Projections.include("small")).first().getInteger("small"), -5);
        });
        CASES.put("a second document with an id is refused", (client, database) -> {
            MongoCollection<Document> people = database.getCollection("people");
            people.insertOne(new Document("_id", 1));
            try {
                people.insertOne(new Document("_id", 1.0));
                throw new AssertionError("it was inserted twice");
            } catch (MongoWriteException error) {
                equal(error.getError().getCode(), 11000);
            }
        });
        CASES.put("queries find, sort and page", (client, database) -> {
            MongoCollection<Document> numbers = database.getCollection("numbers");
            List<Document> all = new ArrayList<>();
            for (int n = 0; n < 300; n++) {
                all.add(new Document("_id", n).append("n", n).append("group", n % 3));
            }
            numbers.insertMany(all);
            equal(numbers.countDocuments(eq("group", 1)), 100L);
            List<Integer> found = new ArrayList<>();
            numbers.find(lt("n", 50)).sort(Sorts.descending("n")).limit(3).forEach(one -> found.add(one.getInteger("n")));
            equal(found, List.of(49, 48, 47));
            int count = 0;
            for (Document ignored : numbers.find().batchSize(70)) {
                count++;
            }
            equal(count, 300);
            List<Integer> groups = numbers.distinct("group", Integer.class).into(new ArrayList<>());
            groups.sort(null);
            equal(groups, List.of(0, 1, 2));
        });
        CASES.put("updates change what they name", (client, database) -> {
            MongoCollection<Document> stock = database.getCollection("stock");
            stock.insertOne(new Document("_id", "pen").append("count", 5).append("tags", List.of("a")));
            equal(stock.updateOne(eq("_id", "pen"),
                Updates.combine(Updates.inc("count", -2), Updates.pushEach("tags", List.of("b", "c")))).getModifiedCount(), 1L);
            stock.updateOne(eq("_id", "ink"), Updates.setOnInsert("count", 1), new UpdateOptions().upsert(true));
            Document after = stock.findOneAndUpdate(eq("_id", "pen"), Updates.set("seen", true),
                new FindOneAndUpdateOptions().returnDocument(ReturnDocument.AFTER));
            equal(after, new Document("_id", "pen").append("count", 3).append("tags", List.of("a", "b", "c")).append("seen", true));
            equal(stock.replaceOne(eq("_id", "cap"), new Document("count", 2), new ReplaceOptions().upsert(true)).getUpsertedId()
                .asString().getValue(), "cap");
            equal(stock.deleteMany(in("_id", "pen", "ink", "cap")).getDeletedCount(), 3L);
        });
        CASES.put("a bulk is done in order", (client, database) -> {
            MongoCollection<Document> bulk = database.getCollection("bulk");
            var result = bulk.bulkWrite(List.of(new InsertOneModel<>(new Document("_id", 1)),
                new ReplaceOneModel<>(eq("_id", 1), new Document("a", 2)), new DeleteOneModel<>(eq("_id", 9))));
            equal(result.getInsertedCount(), 1);
            equal(result.getModifiedCount(), 1);
            equal(bulk.find().first(), new Document("_id", 1).append("a", 2));
        });
        CASES.put("a pipeline groups and sorts", (client, database) -> {
            MongoCollection<Document> sales = database.getCollection("sales");
            sales.insertMany(List.of(new Document("p", "pen").append("n", 3), new Document("p", "ink").append("n", 1),
                new Document("p", "pen").append("n", 4)));
            List<Document> found = sales.aggregate(List.of(Aggregates.match(gt("n", 0)),
                Aggregates.group("$p", Accumulators.sum("n", "$n")), Aggregates.sort(Sorts.ascending("_id"))))
                .into(new ArrayList<>());
            equal(found, List.of(new Document("_id", "ink").append("n", 1), new Document("_id", "pen").append("n", 7)));
        });
        CASES.put("an index keeps values unique", (client, database) -> {
            MongoCollection<Document> users = database.getCollection("users");
            equal(users.createIndex(Indexes.ascending("mail"), new IndexOptions().unique(true)), "mail_1");
            users.insertOne(new Document("mail", "a@b"));
            try {
                users.insertOne(new Document("mail", "a@b"));
                throw new AssertionError("it was inserted twice");
            } catch (MongoWriteException error) {
                equal(error.getError().getCode(), 11000);
            }
        });
        CASES.put("a transaction is all or nothing", (client, database) -> {
            MongoCollection<Document> accounts = database.getCollection("accounts");
            accounts.insertMany(List.of(new Document("_id", "a").append("n", 10), new Document("_id", "b").append("n", 0)));
            try (ClientSession session = client.startSession()) {
                session.startTransaction();
                accounts.updateOne(session, eq("_id", "a"), Updates.inc("n", -4));
                session.abortTransaction();
                equal(accounts.find(eq("_id", "a")).first().getInteger("n"), 10);
                session.withTransaction(() -> {
                    accounts.updateOne(session, eq("_id", "a"), Updates.inc("n", -4));
                    return accounts.updateOne(session, eq("_id", "b"), Updates.inc("n", 4)).getModifiedCount();
                });
            }
            equal(accounts.find(eq("_id", "a")).first().getInteger("n"), 6);
            equal(accounts.find(eq("_id", "b")).first().getInteger("n"), 4);
        });
        CASES.put("Spring Data stores objects", SpringCases::objects);
        CASES.put("Spring Data aggregates", SpringCases::aggregation);
        CASES.put("a wrong password is refused", (client, database) -> {
            try (MongoClient other = connect("wrong")) {
                other.getDatabase("admin").runCommand(new Document("listDatabases", 1));
                throw new AssertionError("it was let in");
            } catch (MongoSecurityException expected) {
                // As it should be.
            }
        });
    }

    static void equal(Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }

    private static SSLContext trusting(String file) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream input = new FileInputStream(file)) {
            int number = 0;
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(input)) {
                store.setCertificateEntry("orrery" + number++, certificate);
            }
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    /** Opens the shared port of the server, with TLS where there is a certificate. */
    static MongoClient connect(String key) throws Exception {
        URI endpoint = URI.create(System.getenv("COSMOS_ENDPOINT"));
        String password = URLEncoder.encode(key, StandardCharsets.UTF_8);
        String address = "mongodb://orrery:" + password + "@" + endpoint.getAuthority() + "/?replicaSet=globaldb";
        MongoClientSettings.Builder settings = MongoClientSettings.builder().applyConnectionString(new ConnectionString(address))
            .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(10, TimeUnit.SECONDS));
        String certificate = System.getenv("COSMOS_CA_FILE");
        if (certificate != null && Files.exists(Path.of(certificate))) {
            SSLContext context = trusting(certificate);
            settings.applyToSslSettings(ssl -> ssl.enabled(true).context(context));
        }
        return MongoClients.create(settings.build());
    }

    public static void main(String[] arguments) throws Exception {
        String word = arguments.length > 0 ? arguments[0] : "";
        int passed = 0;
        int failed = 0;
        try (MongoClient client = connect(System.getenv("COSMOS_KEY"))) {
            MongoDatabase database = client.getDatabase("java" + UUID.randomUUID().toString().substring(0, 8));
            for (Map.Entry<String, Case> one : CASES.entrySet()) {
                if (!one.getKey().contains(word)) {
                    continue;
                }
                try {
                    one.getValue().run(client, database);
                    passed++;
                } catch (Throwable problem) {
                    failed++;
                    System.out.println("FAILED " + one.getKey() + ": " + problem);
                }
            }
            database.drop();
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
