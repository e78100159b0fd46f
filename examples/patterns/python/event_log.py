"""An event log: streams of numbered events, appended without locks and read in order."""

from azure.cosmos import PartitionKey, exceptions

from common import FOUR_PARTITIONS, charge, database, picture, rows

STREAMS, EVENTS = 40, 6

with database() as shop:
    # The stream is the key, so a stream is one transaction scope; the number is the id, so no number is given twice.
    log = shop.create_container("log", PartitionKey("/stream"), offer_throughput=FOUR_PARTITIONS)
    for stream in range(STREAMS):
        for number in range(EVENTS):
            log.create_item({"id": f"{number:08}", "stream": f"order-{stream}", "type": "changed", "data": {"n": number}})
    print(f"an append: {charge(log):.2f} RU")
    try:
        # Somebody who has seen five events appends the sixth, and is late.
        log.create_item({"id": "00000005", "stream": "order-7", "type": "paid"})
    except exceptions.CosmosResourceExistsError:
        print("a writer that was overtaken is told so")
    batch = [("create", ({"id": f"{number:08}", "stream": "order-7", "type": "paid"},)) for number in (6, 7)]
    print("events of one transaction:", len(log.execute_item_batch(batch, partition_key="order-7")))

    found, cost = rows(log, "SELECT c.id, c.type FROM c ORDER BY c.id", partition_key="order-7")
    print(f"order-7: {len(found)} events from {found[0]['id']} to {found[-1]['id']}, {cost:.2f} RU")
    picture("the log", log)
