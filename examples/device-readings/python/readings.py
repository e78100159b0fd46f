"""Device readings with the Python SDK: writing, reading by key, and queries over two physical partitions."""

import os
import uuid

from azure.cosmos import CosmosClient, PartitionKey, exceptions

ENDPOINT = os.environ.get("COSMOS_ENDPOINT", "http://127.0.0.1:8081")
KEY = os.environ.get(
    "COSMOS_KEY", "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
)
DEVICES = 20
READINGS = 5

client = CosmosClient(ENDPOINT, KEY)
database = client.create_database(f"readings-{uuid.uuid4()}")
try:
    # 20,000 RU/s are more than one physical partition serves, so there are two.
    readings = database.create_container("readings", PartitionKey("/deviceId"), offer_throughput=20000)
    print("partitions:", len(list(readings.read_feed_ranges())))

    for device in range(DEVICES):
        for n in range(READINGS):
            readings.create_item({
                "id": f"{device}-{n}",
                "deviceId": f"device-{device}",
                "metricType": "Temperature" if n % 2 == 0 else "Humidity",
                "metricValue": device * 10 + n,
            })

    # A key and an id lead straight to the item.
    one = readings.read_item("3-2", "device-3")
    print("read:", one["metricValue"])
    one["metricValue"] = 99
    print("replaced:", readings.replace_item("3-2", one)["metricValue"])
    readings.delete_item("3-2", "device-3")
    try:
        readings.read_item("3-2", "device-3")
    except exceptions.CosmosResourceNotFoundError:
        print("deleted")

    # The filter fixes the partition key: one partition answers.
    of_device = readings.query_items(
        "SELECT VALUE c.metricValue FROM c WHERE c.deviceId = @device ORDER BY c.metricValue",
        parameters=[{"name": "@device", "value": "device-7"}],
        partition_key="device-7",
    )
    print("device-7:", list(of_device))

    # Over all partitions, merged by the SDK.
    hot = readings.query_items(
        'SELECT c.deviceId, c.metricValue FROM c WHERE c.metricType = "Temperature" AND c.metricValue > 100 '
        "ORDER BY c.metricValue DESC",
        enable_cross_partition_query=True,
    )
    hot = list(hot)
    print("hot:", len(hot), "hottest:", hot[0]["deviceId"], hot[0]["metricValue"])

    for aggregate in ["COUNT(1)", "MIN(c.metricValue)", "MAX(c.metricValue)", "SUM(c.metricValue)", "AVG(c.metricValue)"]:
        total = readings.query_items(f"SELECT VALUE {aggregate} FROM c", enable_cross_partition_query=True)
        print(f"{aggregate.split('(')[0]}: {next(iter(total)):.2f}")
finally:
    client.delete_database(database)
print("done")
