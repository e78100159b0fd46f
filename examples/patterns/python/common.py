"""What the patterns share: a database of their own, charges, and a picture of the physical partitions."""

import contextlib
import os
import uuid

from azure.cosmos import CosmosClient

ENDPOINT = os.environ.get("COSMOS_ENDPOINT", "http://127.0.0.1:8081")
KEY = os.environ.get(
    "COSMOS_KEY", "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)
# 40,000 RU/s are four physical partitions of 10,000 each.
FOUR_PARTITIONS = 40000
BAR = 30


@contextlib.contextmanager
def database():
    """A database that is gone when the program ends."""
    client = CosmosClient(ENDPOINT, KEY)
    made = client.create_database(f"patterns-{uuid.uuid4()}")
    try:
        yield made
    finally:
        client.delete_database(made.id)


def charge(container):
    """What the last request cost."""
    return float(container.client_connection.last_response_headers["x-ms-request-charge"])


def rows(container, query, **options):
    """The rows of a query, and what all its pages cost."""
    total = 0.0
    found = []
    for page in container.query_items(query, **options).by_page():
        found.extend(page)
        total += charge(container)
    return found, total


def picture(title, container):
    """Items in each physical partition, as bars."""
    counts = [
        sum(1 for _ in container.query_items("SELECT VALUE c.id FROM c", feed_range=feed_range))
        for feed_range in container.read_feed_ranges()
    ]
    print(title)
    for count in counts:
        print(f"  {'#' * (BAR * count // max(counts)):{BAR}} {count}")
