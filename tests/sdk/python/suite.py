"""The official Python SDK (azure-cosmos), unmodified, against a running server.

    COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] python suite.py [WORD]

Every function marked @case is one test, named by the sentence it proves; WORD selects those whose name holds it.
With COSMOS_CA_FILE the certificate is verified against that file alone. (The SDK would skip verification on
loopback by itself; handing it the file switches verification on again.)
The last line is `N passed, N failed`, and the exit status says the same.
"""
import os
import sys
import time
import traceback
import uuid

from azure.core import MatchConditions
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties, exceptions
from azure.cosmos.documents import SSLConfiguration
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

import access
import splits
import throttling

ENDPOINT = os.environ["COSMOS_ENDPOINT"]
KEY = os.environ["COSMOS_KEY"]
CA_FILE = os.environ.get("COSMOS_CA_FILE")

CASES = []


def case(function):
    CASES.append(function)
    return function


def connect(key=KEY, **options):
    if CA_FILE:
        options.update(ssl_config=SSLConfiguration(), connection_verify=CA_FILE)
    return CosmosClient(ENDPOINT, key, **options)


def refused(status, action, *args, **kwargs):
    """Run an action that must be refused with this status; the error is returned for a closer look."""
    try:
        outcome = action(*args, **kwargs)
    except exceptions.CosmosHttpResponseError as error:
        assert error.status_code == status, f"expected {status}, got {error.status_code}: {error.message}"
        return error
    raise AssertionError(f"expected {status}, but it succeeded with {outcome!r}")


def without_system_properties(item):
    return {name: value for name, value in item.items() if not name.startswith("_")}


class Fixture:
    """One database for the run, with the containers that most cases share."""

    def __init__(self):
        self.client = connect()
        self.database = self.client.create_database(f"python-{uuid.uuid4()}")
        self.items = self.container("items", "/pk")

    def container(self, name, *paths, **options):
        key = PartitionKey(list(paths), kind="MultiHash") if len(paths) > 1 else PartitionKey(paths[0])
        return self.database.create_container(name, key, **options)

    def close(self):
        self.client.delete_database(self.database)


# Databases and containers

@case
def a_database_is_created_read_listed_and_deleted(f):
    name = f"python-extra-{uuid.uuid4()}"
    database = f.client.create_database(name)
    properties = database.read()
    assert properties["id"] == name
    assert properties["_self"] == f"dbs/{properties['_rid']}/" and properties["_colls"] == "colls/"
    assert name in [each["id"] for each in f.client.list_databases()]
    f.client.delete_database(name)
    refused(404, database.read)


@case
def an_existing_database_is_a_conflict_unless_it_may_exist(f):
    refused(409, f.client.create_database, f.database.id)
    again = f.client.create_database_if_not_exists(f.database.id)
    assert again.read()["_rid"] == f.database.read()["_rid"]
    fresh = f.client.create_database_if_not_exists(f"python-fresh-{uuid.uuid4()}")
    f.client.delete_database(fresh)


@case
def a_container_comes_back_with_the_policies_the_service_fills_in(f):
    properties = f.container("defaults", "/pk").read()
    policy = properties["indexingPolicy"]
    assert policy["indexingMode"] == "consistent" and policy["automatic"] is True
    assert [path["path"] for path in policy["includedPaths"]] == ["/*"]
    assert [path["path"] for path in policy["excludedPaths"]] == ['/"_etag"/?']
    assert properties["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert properties["conflictResolutionPolicy"]["mode"] == "LastWriterWins"
    assert properties["geospatialConfig"] == {"type": "Geography"}


@case
def an_existing_container_is_a_conflict_unless_it_may_exist(f):
    refused(409, f.container, "items", "/pk")
    again = f.database.create_container_if_not_exists("items", PartitionKey("/pk"))
    assert again.read()["_rid"] == f.items.read()["_rid"]
    assert "items" in [each["id"] for each in f.database.list_containers()]


@case
def a_container_is_replaced_but_keeps_its_partition_key(f):
    container = f.container("replaced", "/pk")
    before = container.read()
    policy = {"indexingMode": "consistent", "automatic": True,
              "includedPaths": [{"path": "/name/?"}], "excludedPaths": [{"path": "/*"}]}
    f.database.replace_container(container, PartitionKey("/pk"), default_ttl=60, indexing_policy=policy)
    after = container.read()
    assert after["defaultTtl"] == 60 and after["_rid"] == before["_rid"] and after["_etag"] != before["_etag"]
    assert [path["path"] for path in after["indexingPolicy"]["includedPaths"]] == ["/name/?"]
    refused(400, f.database.replace_container, container, PartitionKey("/other"))


@case
def a_deleted_container_is_gone_and_its_name_is_free(f):
    container = f.container("short-lived", "/pk")
    container.create_item({"id": "a", "pk": "p"})
    rid = container.read()["_rid"]
    f.database.delete_container(container)
    refused(404, container.read)
    again = f.container("short-lived", "/pk")
    assert again.read()["_rid"] != rid
    refused(404, again.read_item, "a", "p")


@case
def thirty_thousand_units_make_three_partitions_that_hold_every_item(f):
    container = f.container("wide", "/pk", offer_throughput=30000)
    assert len(list(container.read_feed_ranges())) == 3
    names = {f"item-{n}" for n in range(90)}
    for name in names:
        container.create_item({"id": name, "pk": name})
    assert {item["id"] for item in container.read_all_items(max_item_count=20)} == names
    for name in sorted(names)[:10]:
        assert container.read_item(name, name)["pk"] == name


# Items

@case
def an_item_is_created_read_replaced_and_deleted(f):
    created = f.items.create_item({"id": "life", "pk": "p", "n": 1})
    assert created["_etag"] == created.get_response_headers()["etag"]
    assert created["_self"].endswith(f"/docs/{created['_rid']}/") and created["_attachments"] == "attachments/"
    read = f.items.read_item("life", "p")
    assert dict(read) == dict(created)
    replaced = f.items.replace_item("life", {"id": "life", "pk": "p", "n": 2})
    assert replaced["n"] == 2 and replaced["_rid"] == created["_rid"] and replaced["_etag"] != created["_etag"]
    f.items.delete_item("life", "p")
    refused(404, f.items.read_item, "life", "p")
    refused(404, f.items.delete_item, "life", "p")
    refused(404, f.items.replace_item, "life", {"id": "life", "pk": "p"})


@case
def upsert_inserts_and_then_replaces(f):
    first = f.items.upsert_item({"id": "up", "pk": "p", "n": 1, "old": True})
    second = f.items.upsert_item({"id": "up", "pk": "p", "n": 2})
    assert first["_rid"] == second["_rid"] and "old" not in second
    assert without_system_properties(f.items.read_item("up", "p")) == {"id": "up", "pk": "p", "n": 2}


@case
def the_same_id_lives_once_in_each_partition_key(f):
    f.items.create_item({"id": "twin", "pk": "left"})
    f.items.create_item({"id": "twin", "pk": "right"})
    refused(409, f.items.create_item, {"id": "twin", "pk": "left"})


@case
def null_missing_and_empty_partition_keys_are_three_places(f):
    f.items.create_item({"id": "k", "pk": None, "kind": "null"})
    f.items.create_item({"id": "k", "kind": "missing"})
    f.items.create_item({"id": "k", "pk": "", "kind": "empty"})
    assert f.items.read_item("k", NullPartitionKeyValue)["kind"] == "null"
    assert f.items.read_item("k", NonePartitionKeyValue)["kind"] == "missing"
    assert f.items.read_item("k", "")["kind"] == "empty"


@case
def numbers_and_booleans_are_partition_keys(f):
    for key in (0, -1.5, 9007199254740991, True, False):
        f.items.create_item({"id": "typed", "pk": key})
        assert f.items.read_item("typed", key)["pk"] == key


@case
def whole_numbers_are_exact_and_properties_keep_their_order(f):
    item = {"id": "exact", "zulu": 9007199254740993, "alpha": -9223372036854775808, "pk": "p",
            "mike": {"b": 1.5, "a": [True, None, {"y": "ü€😀", "x": ""}]}}
    f.items.create_item(item)
    read = without_system_properties(f.items.read_item("exact", "p"))
    assert read == item
    assert list(read) == list(item) and list(read["mike"]) == ["b", "a"]


@case
def ids_may_hold_blanks_percent_signs_and_any_script(f):
    for name in ("a b", "100%", "a%20b", "Ünïcødé", "日本", "a'\"b", "x" * 255):
        f.items.create_item({"id": name, "pk": "ids"})
        assert f.items.read_item(name, "ids")["id"] == name
        f.items.delete_item(name, "ids")


@case
def an_item_without_an_id_is_refused(f):
    refused(400, f.items.create_item, {"pk": "p"}, enable_automatic_id_generation=False)


@case
def an_item_of_more_than_two_megabytes_is_refused(f):
    refused(413, f.items.create_item, {"id": "huge", "pk": "p", "text": "x" * (2 * 1024 * 1024)})
    refused(404, f.items.read_item, "huge", "p")
    f.items.create_item({"id": "large", "pk": "p", "text": "x" * (1900 * 1024)})
    assert len(f.items.read_item("large", "p")["text"]) == 1900 * 1024


@case
def the_answer_to_a_write_is_empty_when_the_client_wants_none(f):
    answer = f.items.create_item({"id": "quiet", "pk": "p"}, no_response=True)
    assert dict(answer) == {} and answer.get_response_headers()["etag"]
    assert dict(f.items.upsert_item({"id": "quiet", "pk": "p", "n": 1}, no_response=True)) == {}
    assert f.items.read_item("quiet", "p")["n"] == 1


@case
def the_items_of_one_partition_key_are_deleted_together(f):
    for n in range(25):
        f.items.create_item({"id": f"d{n}", "pk": "doomed"})
    f.items.create_item({"id": "d0", "pk": "spared"})
    f.items.delete_all_items_by_partition_key("doomed")
    deadline = time.monotonic() + 10
    while any(item.get("pk") == "doomed" for item in f.items.read_all_items()):
        assert time.monotonic() < deadline, "items were still there after ten seconds"
        time.sleep(0.1)
    assert f.items.read_item("d0", "spared")["id"] == "d0"


# Hierarchical keys

@case
def a_hierarchical_key_has_up_to_three_levels(f):
    container = f.container("levels", "/tenant", "/user", "/session")
    definition = container.read()["partitionKey"]
    assert definition["kind"] == "MultiHash" and definition["paths"] == ["/tenant", "/user", "/session"]
    for tenant in ("a", "b"):
        for user in (1, None, True):
            container.create_item({"id": "x", "tenant": tenant, "user": user, "session": "s"})
            assert container.read_item("x", [tenant, user, "s"])["user"] == user
    refused(404, container.read_item, "x", ["c", 1, "s"])
    refused(400, container.read_item, "x", ["a"])
    refused(400, f.container, "too-deep", "/a", "/b", "/c", "/d")


# Patch

@case
def every_patch_operation_does_what_it_says(f):
    f.items.create_item({"id": "patch", "pk": "p", "n": 1, "gone": 1, "old": "v", "list": [1, 3], "keep": {"a": 1}})
    patched = f.items.patch_item("patch", "p", [
        {"op": "add", "path": "/added", "value": {"x": 1}},
        {"op": "add", "path": "/list/1", "value": 2},
        {"op": "add", "path": "/list/-", "value": 4},
        {"op": "set", "path": "/keep/b", "value": None},
        {"op": "replace", "path": "/list/0", "value": "one"},
        {"op": "remove", "path": "/gone"},
        {"op": "incr", "path": "/n", "value": 41},
        {"op": "incr", "path": "/counter", "value": 2.5},
        {"op": "move", "from": "/old", "path": "/keep/moved"},
    ])
    assert without_system_properties(patched) == {
        "id": "patch", "pk": "p", "n": 42, "list": ["one", 2, 3, 4], "keep": {"a": 1, "b": None, "moved": "v"},
        "added": {"x": 1}, "counter": 2.5}
    assert dict(f.items.read_item("patch", "p")) == dict(patched)


@case
def a_patch_that_cannot_be_applied_changes_nothing(f):
    before = f.items.create_item({"id": "stay", "pk": "p", "n": 1, "text": "t"})
    for operations in (
        [{"op": "set", "path": "/n", "value": 2}, {"op": "remove", "path": "/absent"}],
        [{"op": "replace", "path": "/absent", "value": 1}],
        [{"op": "incr", "path": "/text", "value": 1}],
        [{"op": "set", "path": "/id", "value": "other"}],
        [{"op": "set", "path": "/pk", "value": "other"}],
        [{"op": "set", "path": f"/p{n}", "value": n} for n in range(11)],
    ):
        refused(400, f.items.patch_item, "stay", "p", operations)
    refused(404, f.items.patch_item, "absent", "p", [{"op": "set", "path": "/n", "value": 2}])
    assert f.items.read_item("stay", "p")["_etag"] == before["_etag"]


@case
def a_patch_condition_decides(f):
    f.items.create_item({"id": "cond", "pk": "p", "n": 1})
    operations = [{"op": "incr", "path": "/n", "value": 1}]
    assert f.items.patch_item("cond", "p", operations, filter_predicate="from c where c.n = 1")["n"] == 2
    refused(412, f.items.patch_item, "cond", "p", operations, filter_predicate="from c where c.n = 1")
    assert f.items.read_item("cond", "p")["n"] == 2


# Conditional requests

@case
def a_stale_etag_is_refused_and_a_current_one_is_not(f):
    first = f.items.create_item({"id": "etag", "pk": "p", "n": 1})
    second = f.items.upsert_item({"id": "etag", "pk": "p", "n": 2})
    stale = {"etag": first["_etag"], "match_condition": MatchConditions.IfNotModified}
    current = {"etag": second["_etag"], "match_condition": MatchConditions.IfNotModified}
    body = {"id": "etag", "pk": "p", "n": 3}
    refused(412, f.items.replace_item, "etag", body, **stale)
    refused(412, f.items.upsert_item, body, **stale)
    refused(412, f.items.patch_item, "etag", "p", [{"op": "set", "path": "/n", "value": 9}], **stale)
    refused(412, f.items.delete_item, "etag", "p", **stale)
    assert f.items.replace_item("etag", body, **current)["n"] == 3


@case
def an_unchanged_item_is_not_sent_again(f):
    item = f.items.create_item({"id": "cached", "pk": "p"})
    unless_changed = {"etag": item["_etag"], "match_condition": MatchConditions.IfModified}
    # "Not modified" is an answer without an item for this SDK, not an exception.
    assert dict(f.items.read_item("cached", "p", **unless_changed)) == {}
    f.items.upsert_item({"id": "cached", "pk": "p", "n": 1})
    assert f.items.read_item("cached", "p", **unless_changed)["n"] == 1


# Transactional batch

@case
def a_batch_does_all_of_its_operations(f):
    f.items.create_item({"id": "b-old", "pk": "batch", "n": 1})
    f.items.create_item({"id": "b-gone", "pk": "batch"})
    results = f.items.execute_item_batch([
        ("create", ({"id": "b-new", "pk": "batch"},)),
        ("upsert", ({"id": "b-up", "pk": "batch"},)),
        ("replace", ("b-old", {"id": "b-old", "pk": "batch", "n": 2})),
        ("read", ("b-old",)),
        ("patch", ("b-old", [{"op": "incr", "path": "/n", "value": 5}])),
        ("delete", ("b-gone",)),
    ], "batch")
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 200, 204]
    assert results[3]["resourceBody"]["n"] == 2, "a later operation sees an earlier one"
    assert results[4]["resourceBody"]["n"] == 7
    assert f.items.read_item("b-old", "batch")["n"] == 7
    refused(404, f.items.read_item, "b-gone", "batch")


@case
def a_failed_batch_leaves_no_trace(f):
    before = f.items.create_item({"id": "r-old", "pk": "rollback", "n": 1})
    try:
        f.items.execute_item_batch([
            ("create", ({"id": "r-new", "pk": "rollback"},)),
            ("replace", ("r-old", {"id": "r-old", "pk": "rollback", "n": 2})),
            ("create", ({"id": "r-old", "pk": "rollback"},)),
            ("delete", ("r-old",)),
        ], "rollback")
        raise AssertionError("the batch succeeded")
    except exceptions.CosmosBatchOperationError as error:
        assert error.error_index == 2
        assert [result["statusCode"] for result in error.operation_responses] == [424, 424, 409, 424]
    refused(404, f.items.read_item, "r-new", "rollback")
    assert f.items.read_item("r-old", "rollback")["_etag"] == before["_etag"]


@case
def a_batch_may_be_conditional(f):
    item = f.items.create_item({"id": "bc", "pk": "batch-if", "n": 1})
    f.items.upsert_item({"id": "bc", "pk": "batch-if", "n": 2})
    try:
        f.items.execute_item_batch(
            [("replace", ("bc", {"id": "bc", "pk": "batch-if", "n": 3}), {"if_match_etag": item["_etag"]})], "batch-if")
        raise AssertionError("the batch succeeded")
    except exceptions.CosmosBatchOperationError as error:
        assert error.operation_responses[0]["statusCode"] == 412


@case
def a_batch_has_at_most_a_hundred_operations(f):
    operations = [("upsert", ({"id": f"h{n}", "pk": "hundred"},)) for n in range(101)]
    assert len(f.items.execute_item_batch(operations[:100], "hundred")) == 100
    refused(400, f.items.execute_item_batch, operations, "hundred")


# Time to live, unique keys

@case
def items_expire_as_their_container_and_they_themselves_say(f):
    container = f.container("expiring", "/pk", default_ttl=1)
    container.create_item({"id": "default", "pk": "p"})
    container.create_item({"id": "never", "pk": "p", "ttl": -1})
    container.create_item({"id": "later", "pk": "p", "ttl": 600})
    assert container.read_item("default", "p")["id"] == "default"
    time.sleep(2.2)
    refused(404, container.read_item, "default", "p")
    assert {item["id"] for item in container.read_all_items()} == {"never", "later"}
    container.create_item({"id": "default", "pk": "p", "again": True})
    for wrong in (0, -10, "soon"):
        refused(400, container.create_item, {"id": "wrong", "pk": "p", "ttl": wrong})


@case
def an_item_ttl_has_no_effect_where_the_container_has_none(f):
    f.items.create_item({"id": "ttl", "pk": "p", "ttl": 1})
    time.sleep(2.2)
    assert f.items.read_item("ttl", "p")["ttl"] == 1


@case
def unique_keys_hold_within_a_partition_key(f):
    policy = {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/first", "/last"]}]}
    container = f.container("unique", "/pk", unique_key_policy=policy)
    container.create_item({"id": "1", "pk": "p", "email": "a", "first": "x", "last": "y"})
    refused(409, container.create_item, {"id": "2", "pk": "p", "email": "a"})
    refused(409, container.create_item, {"id": "2", "pk": "p", "email": "b", "first": "x", "last": "y"})
    container.create_item({"id": "2", "pk": "q", "email": "a", "first": "x", "last": "y"})
    container.create_item({"id": "3", "pk": "p", "email": "b", "first": "x", "last": "z"})
    refused(409, container.replace_item, "3", {"id": "3", "pk": "p", "email": "a", "first": "x", "last": "z"})
    container.delete_item("1", "p")
    container.create_item({"id": "4", "pk": "p", "email": "a", "first": "x", "last": "y"})


# Feeds, throughput, sessions, authorization

@case
def a_feed_comes_in_pages_that_can_be_resumed(f):
    container = f.container("pages", "/pk")
    for n in range(23):
        container.create_item({"id": f"i{n:02}", "pk": n % 3})
    pages = container.read_all_items(max_item_count=10).by_page()
    first = [item["id"] for item in next(pages)]
    assert len(first) == 10 and pages.continuation_token
    rest = container.read_all_items(max_item_count=10).by_page(pages.continuation_token)
    others = [[item["id"] for item in page] for page in rest]
    assert all(len(page) <= 10 for page in others)
    assert sorted(first + [name for page in others for name in page]) == [f"i{n:02}" for n in range(23)]


@case
def items_without_a_comparable_vector_come_last_by_similarity_and_first_by_distance(f):
    for distance in ["cosine", "dotproduct", "euclidean"]:
        embedding = {"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": distance}
        container = f.container(
            f"few-{distance}", "/pk", offer_throughput=30000,
            indexing_policy={"vectorIndexes": [{"path": "/v", "type": "diskANN"}]},
            vector_embedding_policy={"vectorEmbeddings": [embedding]})
        for name, vector in {"a": {"v": [1, 0, 0]}, "b": {"v": [0, 1, 0]}, "c": {"v": [1, 0]}, "d": {}}.items():
            container.create_item({"id": name, "pk": name, **vector})
        query = "SELECT TOP 4 c.id FROM c ORDER BY VectorDistance(c.v, [1, 0, 0])"
        found = [each["id"] for each in container.query_items(query, enable_cross_partition_query=True)]
        # Which of the two without a distance comes first is up to their partitions.
        first = 0 if distance == "euclidean" else 2
        assert sorted(found[first:first + 2]) == ["c", "d"], (distance, found)
        assert [name for name in found if name < "c"] == ["a", "b"], (distance, found)


@case
def throughput_is_read_and_replaced(f):
    container = f.container("offers", "/pk", offer_throughput=500)
    assert container.get_throughput().offer_throughput == 500
    container.replace_throughput(700)
    assert container.get_throughput().offer_throughput == 700
    automatic = f.container("autoscale", "/pk", offer_throughput=ThroughputProperties(
        auto_scale_max_throughput=4000, auto_scale_increment_percent=1))
    settings = automatic.get_throughput()
    assert settings.auto_scale_max_throughput == 4000 and settings.auto_scale_increment_percent == 1
    automatic.replace_throughput(ThroughputProperties(auto_scale_max_throughput=7000))
    assert automatic.get_throughput().auto_scale_max_throughput == 7000


@case
def a_database_may_own_the_throughput(f):
    database = f.client.create_database(f"python-shared-{uuid.uuid4()}", offer_throughput=600)
    try:
        assert database.get_throughput().offer_throughput == 600
        container = database.create_container("shared", PartitionKey("/pk"))
        assert container.create_item({"id": "a", "pk": "p"})["id"] == "a"
        database.replace_throughput(800)
        assert database.get_throughput().offer_throughput == 800
    finally:
        f.client.delete_database(database)


@case
def another_client_reads_what_a_session_token_promises(f):
    written = f.items.create_item({"id": "session", "pk": "p"})
    token = written.get_response_headers()["x-ms-session-token"]
    with connect(consistency_level="Session") as other:
        container = other.get_database_client(f.database.id).get_container_client("items")
        assert container.read_item("session", "p", session_token=token)["id"] == "session"


@case
def a_weaker_consistency_is_allowed_and_a_stronger_one_is_not(f):
    f.items.create_item({"id": "level", "pk": "p"})
    with connect(consistency_level="Eventual") as weaker:
        container = weaker.get_database_client(f.database.id).get_container_client("items")
        assert container.read_item("level", "p")["id"] == "level"
    with connect(consistency_level="Strong") as stronger:
        container = stronger.get_database_client(f.database.id).get_container_client("items")
        refused(400, container.read_item, "level", "p")


@case
def a_wrong_key_opens_nothing(f):
    error = refused(401, lambda: connect(key="d3Jvbmc=").get_database_client(f.database.id).read())
    assert "Unauthorized" in str(error)


access.add_to(case, connect, refused)
splits.add_to(case, connect, ENDPOINT, KEY, CA_FILE)
throttling.add_to(case, refused, ENDPOINT, KEY, CA_FILE)


def main():
    selected = [each for each in CASES if len(sys.argv) < 2 or sys.argv[1] in each.__name__]
    passed = failed = 0
    fixture = Fixture()
    try:
        for each in selected:
            started = time.monotonic()
            try:
                each(fixture)
            except Exception:
                failed += 1
                print(f"FAIL {each.__name__}\n{traceback.format_exc()}", flush=True)
            else:
                passed += 1
                print(f"ok   {each.__name__} ({time.monotonic() - started:.2f} s)", flush=True)
    finally:
        fixture.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
