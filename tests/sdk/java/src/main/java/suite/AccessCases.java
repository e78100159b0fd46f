package suite;

import static suite.Suite.builder;
import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.refused;

import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncPermission;
import com.azure.cosmos.CosmosAsyncUser;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ContainerChildResourceType;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPermissionProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosUserProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PermissionMode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/**
 * Users, permissions and resource tokens, each case named by the sentence it proves. Not here: a client with a list of
 * permissions, for which this SDK finds no token by itself once it addresses a container by rid.
 */
final class AccessCases {
    private AccessCases() {}

    /** A permission of a user of its own, as it came back with its token. */
    private static CosmosPermissionProperties grant(Suite suite, String name, CosmosPermissionProperties permission) {
        suite.database.createUser(new CosmosUserProperties().setId(name));
        try (CosmosAsyncClient client = async()) {
            CosmosAsyncUser user = client.getDatabase(suite.database.getId()).getUser(name);
            return user.createPermission(permission.setId("grant"), null).block().getProperties();
        }
    }

    /** Permissions are for the asynchronous client alone. */
    private static CosmosAsyncClient async() {
        return builder().key(System.getenv("COSMOS_KEY")).buildAsyncClient();
    }

    private static CosmosPermissionProperties on(String container, PermissionMode mode) {
        return new CosmosPermissionProperties().setContainerName(container).setPermissionMode(mode);
    }

    /** What a client that has nothing but the token does with the container. */
    private static void as(Suite suite, CosmosPermissionProperties permission, Use use) throws Exception {
        try (CosmosClient client = builder().resourceToken(permission.getToken()).buildClient()) {
            use.run(client.getDatabase(suite.database.getId()).getContainer("items"));
        }
    }

    private interface Use {
        void run(CosmosContainer container) throws Exception;
    }

    private static long count(CosmosContainer container, String key) {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey(key));
        return container.queryItems("SELECT * FROM c", options, ObjectNode.class).stream().count();
    }

    static void addTo(Map<String, Suite.Case> cases) {
        cases.put("users and permissions are created, listed and deleted", suite -> {
            equal(suite.database.createUser(new CosmosUserProperties().setId("crud")).getStatusCode(), 201);
            refused(409, () -> suite.database.createUser(new CosmosUserProperties().setId("crud")));
            try (CosmosAsyncClient client = async()) {
                CosmosAsyncUser user = client.getDatabase(suite.database.getId()).getUser("crud");
                CosmosPermissionProperties permission = on("items", PermissionMode.READ).setId("p");
                String token = user.createPermission(permission, null).block().getProperties().getToken();
                check(token.startsWith("type=resource&ver=1&sig="), token);
                equal(user.readAllPermissions().count().block(), 1L);
                CosmosAsyncPermission found = user.getPermission("p");
                equal(found.read(null).block().getProperties().getPermissionMode(), PermissionMode.READ);
                equal(found.delete(null).block().getStatusCode(), 204);
            }
            equal(suite.database.getUser("crud").delete().getStatusCode(), 204);
            refused(404, () -> suite.database.getUser("crud").read());
        });
        cases.put("a read token reads and does not write", suite -> {
            suite.items.createItem(item("{'id':'read-only','pk':'p'}"));
            as(suite, grant(suite, "reader", on("items", PermissionMode.READ)), container -> {
                equal(container.readItem("read-only", new PartitionKey("p"), ObjectNode.class).getStatusCode(), 200);
                check(count(container, "p") > 0, "nothing found");
                refused(403, () -> container.upsertItem(item("{'id':'read-only','pk':'p'}")));
                refused(403, container::delete);
            });
        });
        cases.put("a token for a key opens that key alone", suite -> {
            suite.items.createItem(item("{'id':'other','pk':'tenant-2'}"));
            CosmosPermissionProperties permission =
                on("items", PermissionMode.ALL).setResourcePartitionKey(new PartitionKey("tenant-1"));
            as(suite, grant(suite, "tenant", permission), container -> {
                container.createItem(item("{'id':'own','pk':'tenant-1'}"));
                equal(count(container, "tenant-1"), 1L);
                refused(403, () -> count(container, "tenant-2"));
                refused(403, () -> container.readItem("other", new PartitionKey("tenant-2"), ObjectNode.class));
                refused(403, () -> container.createItem(item("{'id':'new','pk':'tenant-2'}")));
            });
        });
        cases.put("a token for an item opens that item alone", suite -> {
            PartitionKey key = new PartitionKey("p");
            for (String id : List.of("mine", "yours")) {
                suite.items.createItem(item("{'id':'" + id + "','pk':'p'}"));
            }
            CosmosPermissionProperties permission = on("items", PermissionMode.ALL)
                .setResourcePath(ContainerChildResourceType.ITEM, "mine")
                .setResourcePartitionKey(key);
            as(suite, grant(suite, "owner", permission), container -> {
                equal(container.readItem("mine", key, ObjectNode.class).getStatusCode(), 200);
                refused(403, () -> container.readItem("yours", key, ObjectNode.class));
                refused(403, () -> container.createItem(item("{'id':'third','pk':'p'}")));
                equal(container.deleteItem("mine", key, new CosmosItemRequestOptions()).getStatusCode(), 204);
            });
        });
    }
}
