"""Time series: readings of devices, under the day and under the device."""

from azure.cosmos import PartitionKey

from common import FOUR_PARTITIONS, charge, database, picture, rows

DEVICES, HOURS = 24, 12

with database() as shop:
    # Old readings expire by themselves; expiring costs nothing while there is throughput to spare.
    options = {"offer_throughput": FOUR_PARTITIONS, "default_ttl": 90 * 24 * 3600}
    by_day = shop.create_container("by-day", PartitionKey("/day"), **options)
    by_device = shop.create_container("by-device", PartitionKey("/device"), **options)
    for hour in range(HOURS):
        for device in range(DEVICES):
            reading = {
                "id": f"{device}-{hour:02}",
                "device": f"device-{device}",
                "day": "2026-11-18",
                "hour": hour,
                "celsius": 20 + device % 5,
            }
            by_day.create_item(reading)
            by_device.create_item(reading)
    picture("by day: everything that is written today is in one partition", by_day)
    picture("by device: writes are spread", by_device)

    query = "SELECT * FROM c WHERE c.device = 'device-3' AND c.hour >= 8"
    found, good = rows(by_device, query, partition_key="device-3")
    _, bad = rows(by_day, query, partition_key="2026-11-18")
    print(f"one device, four hours: {len(found)} readings; by device {good:.2f} RU, by day {bad:.2f} RU")
    by_device.read_item("3-08", "device-3")
    print(f"one reading: {charge(by_device):.2f} RU")
