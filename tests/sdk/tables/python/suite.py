"""The official Table SDK for Python (azure-data-tables), unmodified, against a running server.

    COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] python suite.py [WORD]

Every function marked @case is one test, named by the sentence it proves; WORD selects those whose name holds it. Each
runs twice: the SDK speaks the dialect of storage to 127.0.0.1 and that of Cosmos DB to localhost.
The last line is `N passed, N failed`, and the exit status says the same.
"""
import os
import sys
import traceback
import uuid
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import (
    EdmType, EntityProperty, TableSasPermissions, TableServiceClient, TableTransactionError, UpdateMode, generate_table_sas,
)

ENDPOINT = os.environ["COSMOS_ENDPOINT"].rstrip("/")
ACCOUNT = os.environ.get("COSMOS_ACCOUNT", "orrery")
CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, os.environ["COSMOS_KEY"])
CA_FILE = os.environ.get("COSMOS_CA_FILE")
CASES = []


def case(function):
    CASES.append(function)
    return function


def connect(host, credential=CREDENTIAL):
    options = {"connection_verify": CA_FILE} if CA_FILE else {}
    return TableServiceClient(f"{ENDPOINT.replace('127.0.0.1', host)}/{ACCOUNT}", credential=credential, **options)


def refused(kind, action, *args, **kwargs):
    try:
        outcome = action(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, but it succeeded with {outcome!r}")


@case
def a_table_is_created_listed_and_deleted(service, table):
    name = f"extra{uuid.uuid4().hex}"
    service.create_table(name)
    refused(ResourceExistsError, service.create_table, name)
    assert [found.name for found in service.query_tables(f"TableName eq '{name}'")] == [name]
    service.delete_table(name)
    assert name not in [found.name for found in service.list_tables()]


@case
def every_type_comes_back_as_it_was(service, table):
    entity = {
        "PartitionKey": "types", "RowKey": "1", "text": "it's ü", "flag": True, "small": -5, "half": 2.5,
        "large": EntityProperty(2**60, EdmType.INT64), "bytes": b"\x00\xff", "guid": uuid.uuid4(),
        "time": datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc), "nan": float("inf"),
    }
    table.create_entity(entity)
    found = table.get_entity("types", "1")
    for name, value in entity.items():
        assert found[name] == value, (name, found[name], value)


@case
def an_entity_is_changed_only_in_the_version_that_was_read(service, table):
    table.create_entity({"PartitionKey": "etag", "RowKey": "1", "n": 1})
    read = table.get_entity("etag", "1")
    table.update_entity({"PartitionKey": "etag", "RowKey": "1", "n": 2}, mode=UpdateMode.REPLACE)
    stale = {"etag": read.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    refused(ResourceModifiedError, table.update_entity, dict(read), **stale)
    refused(ResourceModifiedError, table.delete_entity, "etag", "1", **stale)
    assert table.get_entity("etag", "1")["n"] == 2


@case
def a_merge_keeps_what_it_does_not_name(service, table):
    key = {"PartitionKey": "merge", "RowKey": "1"}
    table.upsert_entity({**key, "a": 1, "b": 1}, mode=UpdateMode.MERGE)
    table.upsert_entity({**key, "b": 2}, mode=UpdateMode.MERGE)
    assert (table.get_entity("merge", "1")["a"], table.get_entity("merge", "1")["b"]) == (1, 2)
    table.upsert_entity({**key, "c": 3}, mode=UpdateMode.REPLACE)
    assert "a" not in table.get_entity("merge", "1")


@case
def queries_find_page_and_select(service, table):
    table.submit_transaction([
        ("create", {"PartitionKey": "query", "RowKey": f"{n:03}", "n": n, "even": n % 2 == 0}) for n in range(100)
    ])
    found = table.query_entities("PartitionKey eq @p and n ge @low and even", parameters={"p": "query", "low": 90})
    assert [entity["n"] for entity in found] == [90, 92, 94, 96, 98]
    pages = list(table.query_entities("PartitionKey eq 'query'", results_per_page=30, select=["n"]).by_page())
    sizes = [[entity["n"] for entity in page] for page in pages]
    assert [len(page) for page in sizes] == [30, 30, 30, 10] and sum(sizes, []) == list(range(100))


@case
def a_transaction_is_all_or_nothing(service, table):
    entity = {"PartitionKey": "batch", "RowKey": "1"}
    table.create_entity(entity)
    changes = [("upsert", {"PartitionKey": "batch", "RowKey": "2"}), ("create", entity)]
    error = refused(TableTransactionError, table.submit_transaction, changes)
    assert (error.index, error.error_code) == (1, "EntityAlreadyExists")
    refused(ResourceNotFoundError, table.get_entity, "batch", "2")


@case
def keys_may_hold_what_addresses_may_not(service, table):
    for key in ["O'Brien", "a b", "100%", "a+b=c&d", "ü💡", "(x)", "a''b", "c:d;e,f"]:
        table.upsert_entity({"PartitionKey": key, "RowKey": key, "n": 1})
        assert table.get_entity(key, key)["PartitionKey"] == key
        assert len(list(table.query_entities("PartitionKey eq @k", parameters={"k": key}))) == 1


@case
def a_signature_opens_what_it_says(service, table):
    table.upsert_entity({"PartitionKey": "sas", "RowKey": "1"})
    token = generate_table_sas(
        CREDENTIAL, table.table_name, permission=TableSasPermissions(read=True),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1), start_pk="sas", end_pk="sas",
    )
    guest = connect(service.url.split("//")[1].split(":")[0], AzureSasCredential(token)).get_table_client(table.table_name)
    assert guest.get_entity("sas", "1")["RowKey"] == "1"
    assert {entity["PartitionKey"] for entity in guest.list_entities()} == {"sas"}
    refused(HttpResponseError, guest.get_entity, "types", "1")
    refused(HttpResponseError, guest.upsert_entity, {"PartitionKey": "sas", "RowKey": "2"})


@case
def a_wrong_key_opens_nothing(service, table):
    host = service.url.split("//")[1].split(":")[0]
    wrong = connect(host, AzureNamedKeyCredential(ACCOUNT, "d3Jvbmc="))
    refused(HttpResponseError, lambda: list(wrong.list_tables()))


def main():
    selected = [each for each in CASES if len(sys.argv) < 2 or sys.argv[1] in each.__name__]
    passed = failed = 0
    for host in ["127.0.0.1", "localhost"]:
        service = connect(host)
        table = service.create_table(f"python{uuid.uuid4().hex}")
        try:
            for each in selected:
                try:
                    each(service, table)
                except Exception:
                    failed += 1
                    print(f"FAIL {each.__name__} ({host})\n{traceback.format_exc()}", flush=True)
                else:
                    passed += 1
                    print(f"ok   {each.__name__} ({host})", flush=True)
        finally:
            table.delete_table()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
