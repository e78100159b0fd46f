"""Device readings with the Python clients of 2015 to 2019: azure-cosmos 3 and, before it, pydocumentdb.

Both have the same methods under two sets of names: containers of items, or collections of documents."""

import io
import os
import sys
import traceback
import uuid

try:
    from azure.cosmos import cosmos_client
    from azure.cosmos.errors import HTTPFailure

    Client, COLLECTION, DOCUMENT = cosmos_client.CosmosClient, "Container", "Item"
except ImportError:
    from pydocumentdb import document_client
    from pydocumentdb.errors import HTTPFailure

    Client, COLLECTION, DOCUMENT = document_client.DocumentClient, "Collection", "Document"

client = Client(os.environ["COSMOS_ENDPOINT"], {"masterKey": os.environ["COSMOS_KEY"]})


def call(method, *arguments):
    """`call("CreateDocument", …)` under the name that this client has for it."""
    return getattr(client, method.replace("Collection", COLLECTION).replace("Document", DOCUMENT))(*arguments)


def status_of(*arguments):
    try:
        call(*arguments)
    except HTTPFailure as failure:
        return failure.status_code
    return 200


DATABASE = "readings-" + str(uuid.uuid4())
LINK = "dbs/" + DATABASE
FIXED, KEYED = LINK + "/colls/fixed", LINK + "/colls/keyed"
ACROSS = {"enableCrossPartitionQuery": True}


def reading(device, n):
    kind = "Temperature" if n % 2 == 0 else "Humidity"
    return {"id": f"{device}-{n}", "deviceId": f"device-{device}", "metricType": kind, "metricValue": device * 10 + n}


def a_collection_without_a_key_has_none():
    created = call("CreateCollection", LINK, {"id": "fixed"}, {"offerType": "S1"})
    assert "partitionKey" not in created, created
    assert "partitionKey" not in call("ReadCollection", created["_self"])
    assert ["fixed"] == [found["id"] for found in call("QueryCollections", LINK, "SELECT * FROM c WHERE c.id = 'fixed'")]
    offer = list(client.QueryOffers(f"SELECT * FROM o WHERE o.resource = '{created['_self']}'"))[0]
    assert offer["offerType"] == "S1", offer


def its_documents_need_no_key():
    for n in range(10):
        call("CreateDocument", FIXED, reading(1, n))
    one = call("ReadDocument", FIXED + "/docs/1-2")
    one["metricValue"] = 99
    assert call("ReplaceDocument", one["_self"], one)["metricValue"] == 99
    assert call("UpsertDocument", FIXED, one)["metricValue"] == 99
    assert len(list(call("ReadDocuments", FIXED, {"maxItemCount": 3}))) == 10
    hot = call("QueryDocuments", FIXED, "SELECT VALUE c.metricValue FROM c WHERE c.metricValue > 17 ORDER BY c.metricValue DESC")
    assert list(hot) == [99, 19, 18]
    assert list(call("QueryDocuments", FIXED, "SELECT VALUE COUNT(1) FROM c")) == [10]
    call("DeleteDocument", FIXED + "/docs/1-2")
    assert status_of("ReadDocument", FIXED + "/docs/1-2") == 404


def its_procedures_need_no_key():
    body = "function (n) { getContext().getResponse().setBody('read ' + n); }"
    procedure = client.CreateStoredProcedure(FIXED, {"id": "greet", "body": body})
    assert client.ExecuteStoredProcedure(procedure["_self"], [7]) == "read 7"


def a_partitioned_collection_routes_by_its_key():
    key = {"paths": ["/deviceId"], "kind": "Hash"}
    created = call("CreateCollection", LINK, {"id": "keyed", "partitionKey": key}, {"offerThroughput": 20000})
    assert created["partitionKey"]["paths"] == ["/deviceId"]
    for device in range(20):
        for n in range(5):
            call("CreateDocument", KEYED, reading(device, n))
    one = call("ReadDocument", KEYED + "/docs/3-2", {"partitionKey": "device-3"})
    one["metricValue"] = 99
    assert call("ReplaceDocument", KEYED + "/docs/3-2", one, {"partitionKey": "device-3"})["metricValue"] == 99
    call("DeleteDocument", KEYED + "/docs/3-2", {"partitionKey": "device-3"})
    assert status_of("ReadDocument", KEYED + "/docs/3-2", {"partitionKey": "device-3"}) == 404
    query = "SELECT VALUE c.metricValue FROM c ORDER BY c.metricValue"
    assert list(call("QueryDocuments", KEYED, query, {"partitionKey": "device-7"})) == [70, 71, 72, 73, 74]


def queries_go_over_both_partitions():
    hot = 'SELECT c.deviceId, c.metricValue FROM c WHERE c.metricType = "Temperature" AND c.metricValue > 100 '
    found = list(call("QueryDocuments", KEYED, hot + "ORDER BY c.metricValue DESC", ACROSS))
    assert (len(found), found[0]["deviceId"], found[0]["metricValue"]) == (29, "device-19", 194), found
    total = list(call("QueryDocuments", KEYED, "SELECT VALUE SUM(c.metricValue) FROM c", ACROSS))
    assert total == [9668], total
    assert len(list(call("ReadDocuments", KEYED, {"maxItemCount": 20}))) == 99


def a_procedure_runs_under_a_key():
    body = """function () {
        var items = getContext().getCollection();
        items.queryDocuments(items.getSelfLink(), 'SELECT * FROM c', function (error, found) {
            if (error) throw error;
            getContext().getResponse().setBody(found.length);
        });
    }"""
    procedure = client.CreateStoredProcedure(KEYED, {"id": "count", "body": body})
    assert client.ExecuteStoredProcedure(procedure["_self"], None, {"partitionKey": "device-7"}) == 5


def attachments_are_kept_with_their_document():
    document = FIXED + "/docs/1-4"
    made = client.CreateAttachment(document, {"id": "manual", "contentType": "text/html", "media": "http://example.com/m"})
    assert client.ReadAttachment(made["_self"])["media"] == "http://example.com/m"
    made["media"] = "http://example.com/n"
    assert client.ReplaceAttachment(made["_self"], made)["media"] == "http://example.com/n"
    photo = client.CreateAttachmentAndUploadMedia(document, io.StringIO("first"), {"slug": "photo", "contentType": "text/plain"})
    assert (photo["id"], photo["contentType"]) == ("photo", "text/plain")
    assert client.ReadMedia(photo["media"]) == "first"
    client.UpdateMedia(photo["media"], io.StringIO("second"), {"slug": "photo", "contentType": "text/plain"})
    assert client.ReadMedia(photo["media"]) == "second"
    assert sorted(found["id"] for found in client.ReadAttachments(document)) == ["manual", "photo"]
    asked = "SELECT * FROM a WHERE a.contentType = 'text/plain'"
    assert [found["id"] for found in client.QueryAttachments(document, asked)] == ["photo"]
    call("UpsertDocument", FIXED, reading(1, 4))
    assert client.ReadMedia(photo["media"]) == "second"
    client.DeleteAttachment(made["_self"])
    assert status_of("ReadAttachment", made["_self"]) == 404
    call("DeleteDocument", document)
    assert status_of("ReadMedia", photo["media"]) == 404


STEPS = [
    a_collection_without_a_key_has_none,
    its_documents_need_no_key,
    its_procedures_need_no_key,
    a_partitioned_collection_routes_by_its_key,
    queries_go_over_both_partitions,
    a_procedure_runs_under_a_key,
    attachments_are_kept_with_their_document,
]


def main():
    passed = failed = 0
    client.CreateDatabase({"id": DATABASE})
    for step in STEPS:
        try:
            step()
            passed += 1
        except Exception:
            failed += 1
            print(f"FAILED {step.__name__}\n{traceback.format_exc()}")
    client.DeleteDatabase(LINK)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
