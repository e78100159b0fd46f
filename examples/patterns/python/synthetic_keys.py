"""Synthetic keys in three ways: concatenated, with a random suffix, with a calculated suffix."""

import random

from azure.cosmos import PartitionKey

from common import FOUR_PARTITIONS, charge, database, picture, rows

ORDERS, SUFFIXES = 240, 8
DAY = "2026-11-18"


def fnv1a(text):
    """The hash that `orrery import` calculates suffixes with."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def calculated(order):
    return f"{DAY}-{fnv1a(order) % SUFFIXES}"


with database() as shop:
    plain, concatenated, spread, known = (
        shop.create_container(name, PartitionKey("/pk"), offer_throughput=FOUR_PARTITIONS)
        for name in ("plain", "concatenated", "random", "calculated")
    )
    dice = random.Random(1)
    for n in range(ORDERS):
        order = {"id": f"order-{n}", "day": DAY, "customer": f"c{n % 40}"}
        plain.create_item({**order, "pk": DAY})
        concatenated.create_item({**order, "pk": f"{order['customer']}-{DAY}"})
        spread.create_item({**order, "pk": f"{DAY}-{dice.randrange(SUFFIXES)}"})
        known.create_item({**order, "pk": calculated(order["id"])})
    picture("the day as the key: one hot partition", plain)
    picture("customer and day", concatenated)
    picture("day and a random suffix", spread)
    picture("day and a suffix calculated from the order", known)

    found, cost = rows(concatenated, "SELECT * FROM c", partition_key=f"c7-{DAY}")
    print(f"concatenated: a customer's day is one partition: {len(found)} orders, {cost:.2f} RU")
    query = "SELECT * FROM c WHERE c.id = 'order-77'"
    _, cost = rows(spread, query, enable_cross_partition_query=True)
    print(f"random: one order is somewhere, so all are asked: {cost:.2f} RU")
    known.read_item("order-77", calculated("order-77"))
    print(f"calculated: who knows the order knows its key: {charge(known):.2f} RU")
