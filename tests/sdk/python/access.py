"""Users, permissions and resource tokens, as the cases of suite.py."""


def add_to(case, connect, refused):
    def grant(f, name, container=None, mode="All", item=None, key=None):
        """A permission of a user of its own; the client that has nothing but its token, and the container seen by it."""
        container = container or f.items
        link = f"dbs/{f.database.id}/colls/{container.id}" + (f"/docs/{item}" if item else "")
        body = {"id": "grant", "permissionMode": mode, "resource": link}
        if key is not None:
            body["resourcePartitionKey"] = [key]
        user = f.database.create_user({"id": name})
        token = user.create_permission(body).properties["_token"]
        client = connect(key={link: token})
        return client.get_database_client(f.database.id).get_container_client(container.id)

    @case
    def users_and_permissions_are_created_listed_queried_replaced_and_deleted(f):
        user = f.database.create_user({"id": "crud"})
        assert [each["id"] for each in f.database.query_users("SELECT * FROM u WHERE u.id = 'crud'")] == ["crud"]
        refused(409, f.database.create_user, {"id": "crud"})
        body = {"id": "p", "permissionMode": "Read", "resource": f"dbs/{f.database.id}/colls/items"}
        permission = user.create_permission(body)
        assert permission.properties["_token"].startswith("type=resource&ver=1&sig=")
        refused(409, user.create_permission, {**body, "id": "q"})
        assert user.get_permission("p").permission_mode == "Read"
        assert user.replace_permission("p", {**body, "permissionMode": "All"}).permission_mode == "All"
        assert [each["id"] for each in user.list_permissions()] == ["p"]
        user.delete_permission("p")
        refused(404, user.get_permission, "p")
        f.database.delete_user("crud")
        refused(404, user.read)

    @case
    def a_container_token_opens_the_container_and_nothing_else(f):
        container = grant(f, "whole")
        container.create_item({"id": "token", "pk": "p"})
        assert container.read_item("token", "p")["pk"] == "p"
        assert [each["id"] for each in container.query_items("SELECT c.id FROM c WHERE c.id = 'token'",
                                                             enable_cross_partition_query=True)] == ["token"]
        container.delete_item("token", "p")
        # The same token, said to be for another container.
        f.container("not-granted", "/pk")
        token = next(iter(container.client_connection.resource_tokens.values()))
        link = f"dbs/{f.database.id}/colls/not-granted"
        other = connect(key={link: token}).get_database_client(f.database.id).get_container_client("not-granted")
        refused(403, other.read)
        refused(403, other.create_item, {"id": "token", "pk": "p"})

    @case
    def a_read_token_reads_and_does_not_write(f):
        f.items.create_item({"id": "read-only", "pk": "p"})
        container = grant(f, "reader", mode="Read")
        assert container.read_item("read-only", "p")["id"] == "read-only"
        refused(403, container.upsert_item, {"id": "read-only", "pk": "p"})
        refused(403, container.delete_item, "read-only", "p")

    @case
    def a_token_for_a_key_opens_that_key_alone(f):
        container = grant(f, "tenant", key="tenant-1")
        f.items.create_item({"id": "other", "pk": "tenant-2"})
        container.create_item({"id": "own", "pk": "tenant-1"})
        assert [each["id"] for each in container.query_items("SELECT * FROM c", partition_key="tenant-1")] == ["own"]
        assert [each["id"] for each in container.query_items_change_feed(partition_key="tenant-1",
                                                                         start_time="Beginning")] == ["own"]
        container.execute_item_batch([("upsert", ({"id": "own", "pk": "tenant-1"},))], "tenant-1")
        refused(403, container.read_item, "other", "tenant-2")
        refused(403, container.create_item, {"id": "new", "pk": "tenant-2"})
        refused(403, lambda: list(container.query_items("SELECT * FROM c", partition_key="tenant-2")))
        refused(403, lambda: list(container.query_items("SELECT * FROM c", enable_cross_partition_query=True)))
        refused(403, container.execute_item_batch, [("upsert", ({"id": "x", "pk": "tenant-2"},))], "tenant-2")

    @case
    def a_token_for_an_item_opens_that_item_alone(f):
        for name in ["mine", "yours"]:
            f.items.create_item({"id": name, "pk": "p"})
        container = grant(f, "owner", item="mine", key="p")
        assert container.read_item("mine", "p")["id"] == "mine"
        assert container.replace_item("mine", {"id": "mine", "pk": "p", "seen": True})["seen"]
        refused(403, container.read_item, "yours", "p")
        refused(403, container.create_item, {"id": "third", "pk": "p"})
        refused(403, lambda: list(container.query_items("SELECT * FROM c", partition_key="p")))
        container.delete_item("mine", "p")

    @case
    def a_changed_token_is_401(f):
        container = grant(f, "forger", mode="Read")
        tokens = container.client_connection.resource_tokens
        link, token = next(iter(tokens.items()))
        head, payload, _ = token.split(";")
        letter = "A" if payload[10] != "A" else "B"
        forged = f"{head};{payload[:10]}{letter}{payload[11:]};"
        refused(401, lambda: connect(key={link: forged}).get_database_client(f.database.id)
                .get_container_client("items").read())
