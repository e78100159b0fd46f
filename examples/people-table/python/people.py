"""People in a table with the Python SDK: last name and first name are the keys."""

import os
import uuid

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import TableServiceClient, TableTransactionError, UpdateMode

CONNECTION = os.environ.get("TABLES_COSMOS_CONNECTION_STRING") or (
    "DefaultEndpointsProtocol=http;AccountName=orrery;"
    "AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==;"
    "TableEndpoint=http://localhost:8902/orrery;"
)
PEOPLE = [
    ("Smith", "Jeff", 47, "425-555-0104"),
    ("Smith", "Ben", 31, "425-555-0101"),
    ("Smith", "Anna", 28, "425-555-0102"),
    ("Harp", "Walter", 52, "425-555-0103"),
    ("Jones", "Alice", 35, "425-555-0105"),
]


def person(last, first, age, phone):
    return {"PartitionKey": last, "RowKey": first, "Age": age, "PhoneNumber": phone}


def names(entities):
    return ", ".join(entity["RowKey"] for entity in entities)


service = TableServiceClient.from_connection_string(CONNECTION)
table = service.create_table(f"people{uuid.uuid4().hex}")
try:
    for one in PEOPLE:
        table.create_entity(person(*one))
    print("inserted:", len(PEOPLE))

    # Both keys lead straight to the entity.
    ben = table.get_entity("Smith", "Ben")
    print("read:", ben["RowKey"], ben["PartitionKey"], ben["PhoneNumber"])
    change = {"PartitionKey": "Smith", "RowKey": "Ben", "PhoneNumber": "425-555-0199", "Email": "ben@contoso.example"}
    table.update_entity(change, mode=UpdateMode.MERGE)
    merged = table.get_entity("Smith", "Ben")
    print("merged:", merged["RowKey"], merged["PartitionKey"], merged["PhoneNumber"], merged["Email"])

    # What was read before the merge is no longer what is there.
    try:
        etag = ben.metadata["etag"]
        table.update_entity(ben, mode=UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified)
    except ResourceModifiedError as error:
        print("changed meanwhile:", error.status_code)

    # The filter fixes the partition: one partition answers, in the order of first names.
    print("Smith:", names(table.query_entities("PartitionKey eq 'Smith'")))
    print("Smith, by first name from B on:", names(table.query_entities("PartitionKey eq 'Smith' and RowKey ge 'B'")))

    # Over all of them, by an index.
    older = table.query_entities("Age gt @age", parameters={"age": 40})
    print("older than 40:", ", ".join(f"{one['PartitionKey']} {one['RowKey']} {one['Age']}" for one in older))

    together = [
        ("create", person("Jones", "Bob", 22, "425-555-0106")),
        ("create", person("Jones", "Carol", 23, "425-555-0107")),
        ("upsert", person("Jones", "Alice", 36, "425-555-0105")),
    ]
    print("together:", len(table.submit_transaction(together)))
    try:
        table.submit_transaction([
            ("create", person("Jones", "Dave", 24, "425-555-0108")),
            ("create", person("Jones", "Bob", 99, "425-555-0109")),
        ])
    except TableTransactionError:
        print("a batch that fails: refused")
    print("of Jones:", names(table.query_entities("PartitionKey eq 'Jones'")))

    table.delete_entity("Harp", "Walter")
    try:
        table.get_entity("Harp", "Walter")
    except ResourceNotFoundError as error:
        print("deleted:", error.status_code)
finally:
    service.delete_table(table.table_name)
print("done")
