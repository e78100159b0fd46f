"""The Table client for Python of 2018 to 2021 (azure-cosmosdb-table), unmodified, against a running server.

    COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] python suite.py

Every function marked @case is one test, named by the sentence it proves. Each runs twice: addressed to 127.0.0.1 the server speaks
the dialect of storage, to localhost that of Cosmos DB. The last line is `N passed, N failed`.
"""
import logging
import os
import sys
import traceback
import uuid
from datetime import datetime, timedelta, timezone

import requests
from azure.common import AzureConflictHttpError, AzureHttpError, AzureMissingResourceHttpError
from azure.cosmosdb.table.common.retry import no_retry
from azure.cosmosdb.table.models import EdmType, Entity, EntityProperty, TablePermissions
from azure.cosmosdb.table.tablebatch import TableBatch
from azure.cosmosdb.table.tableservice import TableService

# It logs every refusal, and refusals are wanted here.
logging.disable(logging.CRITICAL)
ENDPOINT = os.environ["COSMOS_ENDPOINT"].rstrip("/")
KEY = os.environ["COSMOS_KEY"]
CASES = []


def case(function):
    CASES.append(function)
    return function


def connect(host, credential=f"AccountKey={KEY}"):
    endpoint = ENDPOINT.replace("127.0.0.1", host)
    session = requests.Session()
    session.trust_env = False
    session.verify = os.environ.get("COSMOS_CA_FILE", True)
    scheme = endpoint.split(":")[0]
    service = TableService(
        connection_string=f"DefaultEndpointsProtocol={scheme};AccountName=orrery;{credential};"
        f"TableEndpoint={endpoint}/orrery",
        request_session=session,
    )
    # It takes the 202 around a batch that failed for an answer that broke off, and would ask again for a minute.
    service.retry = no_retry
    return service


def refused(kind, action, *args, **kwargs):
    try:
        outcome = action(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, but it succeeded with {outcome!r}")


@case
def a_table_is_created_once_and_listed(service, table):
    assert not service.create_table(table) and service.exists(table)
    refused(AzureConflictHttpError, service.create_table, table, fail_on_exist=True)
    assert table in [found.name for found in service.list_tables()]


@case
def every_type_comes_back_as_it_was(service, table):
    guid, time = str(uuid.uuid4()), datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    service.insert_entity(table, {
        "PartitionKey": "types", "RowKey": "1", "text": "it's ü", "flag": True, "large": 1 << 60, "half": 2.5, "time": time,
        "small": EntityProperty(EdmType.INT32, -5), "guid": EntityProperty(EdmType.GUID, guid),
        "bytes": EntityProperty(EdmType.BINARY, b"\0\xff"),
    })
    found = service.get_entity(table, "types", "1")
    assert (found.text, found.flag, found.large, found.half) == ("it's ü", True, 1 << 60, 2.5)
    assert found.time == time and found.guid.value == guid and found.bytes.value == b"\0\xff"
    # Plain numbers come as they are, or with their type beside them, as the client thinks fit.
    assert getattr(found.small, "value", found.small) == -5


@case
def entities_are_changed_in_every_way(service, table):
    entity = Entity(PartitionKey="ways", RowKey="1", a=1, b=1)
    etag = service.insert_entity(table, entity)
    refused(AzureConflictHttpError, service.insert_entity, table, entity)
    service.merge_entity(table, {"PartitionKey": "ways", "RowKey": "1", "b": 2})
    refused(AzureHttpError, service.update_entity, table, entity, if_match=etag)
    found = service.get_entity(table, "ways", "1")
    assert (found.a, found.b) == (1, 2)
    service.update_entity(table, {"PartitionKey": "ways", "RowKey": "1", "c": 3}, if_match=found.etag)
    assert "a" not in service.get_entity(table, "ways", "1")
    service.insert_or_merge_entity(table, {"PartitionKey": "ways", "RowKey": "2", "a": 1})
    service.insert_or_replace_entity(table, {"PartitionKey": "ways", "RowKey": "2", "b": 1})
    assert "a" not in service.get_entity(table, "ways", "2")
    service.delete_entity(table, "ways", "2")
    refused(AzureMissingResourceHttpError, service.get_entity, table, "ways", "2")


@case
def queries_find_page_and_select(service, table):
    batch = TableBatch()
    for n in range(100):
        batch.insert_entity({"PartitionKey": "query", "RowKey": f"{n:03}", "n": n, "even": n % 2 == 0})
    service.commit_batch(table, batch)
    filter = "PartitionKey eq 'query' and even eq true and n ge 90"
    found = list(service.query_entities(table, filter=filter, select="RowKey,n"))
    assert [(one.RowKey, one.n) for one in found] == [(f"{n:03}", n) for n in range(90, 100, 2)]
    page = service.query_entities(table, filter="PartitionKey eq 'query'", num_results=40)
    assert [one.n for one in page] == list(range(40)) and page.next_marker
    page = service.query_entities(table, filter="PartitionKey eq 'query'", marker=page.next_marker)
    assert [one.n for one in page] == list(range(40, 100))


@case
def a_batch_is_all_or_nothing(service, table):
    service.insert_entity(table, {"PartitionKey": "batch", "RowKey": "there"})
    batch = TableBatch()
    batch.insert_entity({"PartitionKey": "batch", "RowKey": "new"})
    batch.insert_entity({"PartitionKey": "batch", "RowKey": "there"})
    refused(AzureHttpError, service.commit_batch, table, batch)
    refused(AzureMissingResourceHttpError, service.get_entity, table, "batch", "new")
    batch = TableBatch()
    batch.insert_or_replace_entity({"PartitionKey": "batch", "RowKey": "new"})
    batch.merge_entity({"PartitionKey": "batch", "RowKey": "there", "n": 1})
    assert len(service.commit_batch(table, batch)) == 2
    assert service.get_entity(table, "batch", "there").n == 1


@case
def a_signature_opens_what_it_says(service, table):
    service.insert_entity(table, {"PartitionKey": "sas", "RowKey": "1"})
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    token = service.generate_table_shared_access_signature(table, TablePermissions.QUERY, expiry)
    guest = connect(service.host_for_test, f"SharedAccessSignature={token}")
    assert guest.get_entity(table, "sas", "1").RowKey == "1"
    refused(AzureHttpError, guest.delete_entity, table, "sas", "1")


def main():
    passed = failed = 0
    for host in ["127.0.0.1", "localhost"]:
        service = connect(host)
        service.host_for_test = host
        table = f"old{uuid.uuid4().hex}"
        service.create_table(table)
        for function in CASES:
            try:
                function(service, table)
                passed += 1
                print(f"ok   {host} {function.__name__}")
            except Exception:
                failed += 1
                print(f"FAIL {host} {function.__name__}\n{traceback.format_exc()}")
        service.delete_table(table)
    print(f"{passed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
