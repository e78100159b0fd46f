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
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;

/** People in a table with the Java SDK: last name and first name are the keys. */
public final class People {
    private static final String LOCAL = "DefaultEndpointsProtocol=http;AccountName=orrery;"
        + "AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==;"
        + "TableEndpoint=http://localhost:8902/orrery;";
    private static final List<TableEntity> PEOPLE = List.of(
        person("Smith", "Jeff", 47, "425-555-0104"),
        person("Smith", "Ben", 31, "425-555-0101"),
        person("Smith", "Anna", 28, "425-555-0102"),
        person("Harp", "Walter", 52, "425-555-0103"),
        person("Jones", "Alice", 35, "425-555-0105"));

    private People() {}

    private static TableEntity person(String last, String first, int age, String phone) {
        return new TableEntity(last, first).addProperty("Age", age).addProperty("PhoneNumber", phone);
    }

    public static void main(String[] arguments) {
        String connection = System.getenv("TABLES_COSMOS_CONNECTION_STRING");
        TableServiceClient service = new TableServiceClientBuilder()
            .connectionString(connection == null || connection.isEmpty() ? LOCAL : connection)
            .buildClient();
        TableClient table = service.createTable("people" + UUID.randomUUID().toString().replace("-", ""));
        try {
            run(table);
        } finally {
            table.deleteTable();
        }
        System.out.println("done");
        // The SDK keeps threads for its connections; nothing is left to wait for.
        System.exit(0);
    }

    private static void run(TableClient table) {
        PEOPLE.forEach(table::createEntity);
        System.out.println("inserted: " + PEOPLE.size());

        // Both keys lead straight to the entity.
        TableEntity ben = table.getEntity("Smith", "Ben");
        System.out.println("read: " + shown(ben, "PhoneNumber"));
        table.updateEntity(new TableEntity("Smith", "Ben").addProperty("PhoneNumber", "425-555-0199")
            .addProperty("Email", "ben@contoso.example"), TableEntityUpdateMode.MERGE);
        System.out.println("merged: " + shown(table.getEntity("Smith", "Ben"), "PhoneNumber", "Email"));

        // What was read before the merge is no longer what is there.
        System.out.println("changed meanwhile: " + refused(() ->
            table.updateEntityWithResponse(ben, TableEntityUpdateMode.REPLACE, true, null, null)));

        // The filter fixes the partition: one partition answers, in the order of first names.
        System.out.println("Smith: " + names(find(table, "PartitionKey eq 'Smith'")));
        System.out.println("Smith, by first name from B on: "
            + names(find(table, "PartitionKey eq 'Smith' and RowKey ge 'B'")));

        // Over all of them, by an index.
        System.out.println("older than 40: " + find(table, "Age gt 40").stream()
            .map(one -> one.getPartitionKey() + " " + one.getRowKey() + " " + one.getProperty("Age"))
            .collect(Collectors.joining(", ")));

        List<TableTransactionAction> together = List.of(
            create(person("Jones", "Bob", 22, "425-555-0106")),
            create(person("Jones", "Carol", 23, "425-555-0107")),
            new TableTransactionAction(
                TableTransactionActionType.UPSERT_REPLACE, person("Jones", "Alice", 36, "425-555-0105")));
        System.out.println("together: " + table.submitTransaction(together).getTransactionActionResponses().size());
        try {
            table.submitTransaction(List.of(
                create(person("Jones", "Dave", 24, "425-555-0108")), create(person("Jones", "Bob", 99, "425-555-0109"))));
        } catch (TableTransactionFailedException error) {
            System.out.println("a batch that fails: refused");
        }
        System.out.println("of Jones: " + names(find(table, "PartitionKey eq 'Jones'")));

        table.deleteEntity("Harp", "Walter");
        System.out.println("deleted: " + refused(() -> table.getEntity("Harp", "Walter")));
    }

    private static TableTransactionAction create(TableEntity one) {
        return new TableTransactionAction(TableTransactionActionType.CREATE, one);
    }

    private static List<TableEntity> find(TableClient table, String filter) {
        return table.listEntities(new ListEntitiesOptions().setFilter(filter), null, null).stream().toList();
    }

    private static String names(List<TableEntity> people) {
        return people.stream().map(TableEntity::getRowKey).collect(Collectors.joining(", "));
    }

    private static String shown(TableEntity one, String... properties) {
        StringBuilder text = new StringBuilder(one.getRowKey() + " " + one.getPartitionKey());
        for (String property : properties) {
            text.append(' ').append(one.getProperty(property));
        }
        return text.toString();
    }

    /** The status with which something is refused. */
    private static String refused(Runnable action) {
        try {
            action.run();
            return "not refused";
        } catch (TableServiceException error) {
            return String.valueOf(error.getResponse().getStatusCode());
        }
    }
}
