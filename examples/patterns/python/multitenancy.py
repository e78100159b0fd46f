"""Tenants: one large, many small. A key for each, a container for each, or both."""

from azure.cosmos import PartitionKey

from common import FOUR_PARTITIONS, database, picture, rows

LARGE, SMALL = 120, 8
TENANTS = ["large"] + [f"small-{n}" for n in range(20)]


def documents(tenant):
    for n in range(LARGE if tenant == "large" else SMALL):
        yield {"id": f"{tenant}-{n}", "tenant": tenant, "user": f"user-{n % 30}", "n": n}


with database() as shop:
    # 1. A key for each tenant: cheap, thousands of tenants, but a large one is one logical partition.
    keyed = shop.create_container("keyed", PartitionKey("/tenant"), offer_throughput=FOUR_PARTITIONS)
    # 2. The same with users below: a tenant may be larger than a logical partition, and is still asked for as one.
    key = PartitionKey(["/tenant", "/user"], kind="MultiHash")
    levels = shop.create_container("levels", key, offer_throughput=FOUR_PARTITIONS)
    # 3. The hybrid: a large tenant has a container, with throughput and deletion of its own; the others share one.
    shared = shop.create_container("shared", PartitionKey("/tenant"), offer_throughput=FOUR_PARTITIONS)
    own = shop.create_container("large", PartitionKey("/user"), offer_throughput=FOUR_PARTITIONS)
    for tenant in TENANTS:
        for document in documents(tenant):
            keyed.create_item(document)
            levels.create_item(document)
            (own if tenant == "large" else shared).create_item(document)
    picture("a key for each: the large tenant is one partition", keyed)
    picture("hybrid, the small ones", shared)
    picture("hybrid, the large one by user", own)
    for name, container in (("key", keyed), ("hierarchical key", levels)):
        found, cost = rows(container, "SELECT * FROM c WHERE c.tenant = 'small-3'", enable_cross_partition_query=True)
        print(f"all of a small tenant, by {name}: {len(found)} documents, {cost:.2f} RU")
    found, cost = rows(own, "SELECT * FROM c", partition_key="user-3")
    print(f"a user of the large tenant: {len(found)} documents, {cost:.2f} RU")
