"""Partitions that split under load, as cases of suite.py; and the same by itself, as large as one likes:

    COSMOS_ENDPOINT=... COSMOS_KEY=... python splits.py [--items N] [--keys N] [--workers N] [--every S]
                                                        [--splits-by-size-min N] [--p99-ratio-max N]

`cargo xtask splits [ITEMS]` runs it with a server whose --partition-size-limit makes partitions split by their size.
Workers load items while these splits happen, and further ones on demand every few seconds. A reader, a query and a
follower of the change feed run beside them. No operation may fail, no item may be lost or doubled, and the feed must
tell each of them. Latencies of the writes are taken before the first split and from then on.
"""
import argparse
import base64
import hashlib
import hmac
import json
import logging
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from email.utils import formatdate

from azure.cosmos import CosmosClient, PartitionKey

# Partitions from which some are split on demand: fewer split by their size alone.
PARTITIONS_MIN = 4


class Splitter:
    """The server's own routes, signed as the SDK signs."""

    def __init__(self, endpoint, key, ca_file=None):
        self.endpoint, self.key = endpoint.rstrip("/"), base64.b64decode(key)
        self.context = None
        if ca_file:
            import ssl
            self.context = ssl.create_default_context(cafile=ca_file)

    def ask(self, method, body=None, route="splits", query=""):
        path = f"_orrery/{route}"
        date = formatdate(usegmt=True)
        text = f"{method.lower()}\n_orrery\n{path}\n{date.lower()}\n\n"
        mac = base64.b64encode(hmac.new(self.key, text.encode(), hashlib.sha256).digest()).decode()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={mac}", safe="")
        headers = {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.endpoint}/{path}{query}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, context=self.context) as answer:
            return json.load(answer)

    def small(self, database, container):
        """The smallest range that is worth splitting; larger ones are left to grow to their limit. None while there are few."""
        query = f"?db={urllib.parse.quote(database)}&container={urllib.parse.quote(container)}&keys=0"
        ranges = self.ask("GET", route="partitions", query=query)["partitions"]
        worth = [each for each in ranges if each["sizeBytes"] >= each["sizeLimitBytes"] / 8]
        if len(ranges) < PARTITIONS_MIN or not worth:
            return None
        return min(worth, key=lambda each: each["sizeBytes"])["range"]

    def run(self, operation, database, container, range_id=None):
        """Starts a job and waits for its end."""
        body = {"operation": operation, "database": database, "container": container, "range": range_id}
        job = self.ask("POST", body)
        while job["step"] not in ("done", "failed"):
            time.sleep(0.02)
            job = next(each for each in self.ask("GET")["jobs"] if each["job"] == job["job"])
        assert job["step"] == "done", job
        return job


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Load:
    def __init__(self, container, items, keys, workers):
        self.container, self.items, self.keys, self.workers = container, items, keys, workers
        self.done = 0
        # Workers share it; the interpreter takes one step of a range iterator at a time.
        self.numbers = iter(range(items))
        self.reads = self.queries = 0
        self.latencies = []
        self.stop = threading.Event()
        self.failures = []

    def key(self, n):
        return f"key-{n % self.keys}"

    def write_all(self):
        """What one worker does: the next item, until there is none."""
        for n in self.numbers:
            self.write(n)

    def write(self, n):
        begun = time.perf_counter()
        try:
            self.container.create_item({"id": f"item-{n}", "pk": self.key(n), "n": n, "fill": "x" * 300})
        except Exception as error:  # Every failure counts, of whatever kind.
            self.failures.append(f"create {n}: {error!r}")
        self.latencies.append((begun, time.perf_counter() - begun))
        self.done = max(self.done, n)

    def follow(self, seen):
        """Reads the change feed from its beginning until everything is there."""
        token = None
        while True:
            options = {"continuation": token} if token else {"start_time": "Beginning"}
            last = self.stop.is_set()
            try:
                pages = self.container.query_items_change_feed(max_item_count=500, **options).by_page()
                for page in pages:
                    for item in page:
                        seen.setdefault(item["id"], []).append(item["_lsn"])
                    token = self.container.client_connection.last_response_headers.get("etag", token)
            except Exception as error:
                self.failures.append(f"change feed: {error!r}")
                return
            if last:
                return
            time.sleep(0.05)

    def read(self):
        n = 0
        while not self.stop.is_set():
            n = (n * 7919 + 1) % max(1, self.done - 2 * self.workers)
            try:
                self.container.read_item(f"item-{n}", self.key(n))
                self.reads += 1
            except Exception as error:
                if getattr(error, "status_code", None) != 404 or n + 4 * self.workers < self.done - 200:
                    self.failures.append(f"read {n} of {self.done}: {error!r}")
            time.sleep(0.001)

    def query(self):
        while not self.stop.is_set():
            floor = max(0, self.done - 300)
            text = "SELECT VALUE c.n FROM c WHERE c.n < @n AND c.n >= @m"
            window = [{"name": "@n", "value": floor}, {"name": "@m", "value": max(0, floor - 100)}]
            try:
                found = list(self.container.query_items(text, parameters=window, enable_cross_partition_query=True,
                                                        max_item_count=20))
                self.queries += 1
                if len(found) != len(set(found)) or len(found) < min(100, floor) - 2 * self.workers:
                    self.failures.append(f"query below {floor}: {len(found)} rows, {len(set(found))} different")
            except Exception as error:
                self.failures.append(f"query: {error!r}")
            time.sleep(0.02)

    def split_again_and_again(self, splitter, database, splits, every_s, workers, by_size):
        """Splits on demand until the workers are done; the jobs of all reasons, by number."""
        jobs = {}
        while any(worker.is_alive() for worker in workers):
            asked = sum(job["reason"] == "demand" for job in jobs.values())
            # Where partitions split by their size as well, the largest are left to do so.
            chosen = splitter.small(database, self.container.id) if by_size else None
            if asked < splits and (chosen or not by_size):
                try:
                    splitter.run("split", database, self.container.id, chosen)
                except urllib.error.HTTPError as error:
                    # It has just been split by its size, or is about to be.
                    if error.code not in (409, 410):
                        raise
            for job in splitter.ask("GET")["jobs"]:
                if (job["database"], job["container"]) == (database, self.container.id):
                    jobs[job["job"]] = job
            time.sleep(every_s)
        return jobs

    def run(self, splitter, database, splits, every_s, by_size=False):
        """Loads everything, with splits from `every_s` on; the figures, and what the feed told."""
        seen = {}
        # Daemons: when this thread fails, nobody goes on without it.
        thread = lambda work: threading.Thread(target=work, daemon=True)
        beside = [thread(each) for each in (lambda: self.follow(seen), self.read, self.query)]
        workers = [thread(self.write_all) for _ in range(self.workers)]
        begun = time.perf_counter()
        for each in workers + beside:
            each.start()
        time.sleep(every_s)
        first = time.perf_counter()
        jobs = self.split_again_and_again(splitter, database, splits, every_s, workers, by_size)
        ended = time.perf_counter()
        self.stop.set()
        for each in beside:
            each.join()
        done = [job for job in jobs.values() if job["step"] == "done"]
        before = [took for at, took in self.latencies if at < first]
        during = [took for at, took in self.latencies if at >= first]
        milliseconds = lambda values, share: round(percentile(values, share) * 1000, 1)
        return {
            "items_per_s": round(self.items / (ended - begun)),
            "splits_on_demand": sum(job["reason"] == "demand" for job in done),
            "splits_by_size": sum(job["reason"] == "size" for job in done),
            "jobs_failed": sum(job["step"] == "failed" for job in jobs.values()),
            "paused_ms_max": max((job["pausedMs"] for job in done), default=0),
            "split_ms_max": max((job["tookMs"] for job in done), default=0),
            "p50_before_ms": milliseconds(before, 0.5),
            "p50_during_ms": milliseconds(during, 0.5),
            "p99_before_ms": milliseconds(before, 0.99),
            "p99_during_ms": milliseconds(during, 0.99),
            "max_during_ms": milliseconds(during, 1),
            "reads": self.reads,
            "queries": self.queries,
            "told_again": sum(len(lsns) - 1 for lsns in seen.values()),
        }, seen

    def check(self, seen):
        assert not self.failures, f"{len(self.failures)} failures, first {self.failures[:3]}"
        listed = [item["id"] for item in self.container.read_all_items(max_item_count=1000)]
        expected = {f"item-{n}" for n in range(self.items)}
        assert len(listed) == len(set(listed)) == self.items, f"{len(listed)} listed, {len(set(listed))} different"
        assert set(listed) == expected
        missing = expected - set(seen)
        assert not missing, f"the feed did not tell {len(missing)}, such as {sorted(missing)[:3]}"


def add_to(case, connect, endpoint, key, ca_file):
    splitter = Splitter(endpoint, key, ca_file)

    @case
    def partitions_split_under_load_and_nobody_notices(f):
        container = f.container("splits-load", "/pk")
        load = Load(container, items=1200, keys=60, workers=8)
        figures, seen = load.run(splitter, f.database.id, splits=6, every_s=0.1)
        load.check(seen)
        assert figures["splits_on_demand"] >= 3, figures

    @case
    def positions_and_sessions_outlive_splits_and_merges(f):
        container = f.container("splits-positions", "/pk")
        for n in range(60):
            container.create_item({"id": str(n), "pk": f"k{n}", "n": n})
        feed = container.query_items_change_feed(start_time="Beginning", max_item_count=10).by_page()
        first = [item["id"] for item in next(feed)]
        token = container.client_connection.last_response_headers["etag"]
        # Sorted results the SDK merges itself, and begins anew when a partition goes away in the middle; so here a stream.
        query = lambda: container.query_items("SELECT c.id FROM c WHERE c.n >= 0", enable_cross_partition_query=True,
                                              max_item_count=7)
        pages = query().by_page()
        rows = [row["id"] for row in next(pages)]
        position = pages.continuation_token
        splitter.run("split", f.database.id, container.id)
        splitter.run("split", f.database.id, container.id)
        assert container.read_item("5", "k5")["n"] == 5
        rows += [row["id"] for page in query().by_page(position) for row in page]
        assert sorted(rows, key=int) == [str(n) for n in range(60)], rows
        rest = [item["id"] for item in container.query_items_change_feed(continuation=token)]
        assert sorted(first + rest, key=int) == [str(n) for n in range(60)], (first, rest)
        splitter.run("merge", f.database.id, container.id)
        assert len(list(container.read_all_items())) == 60
        assert [item["id"] for item in container.query_items("SELECT * FROM c", partition_key="k7")] == ["7"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--splits", type=int, default=1_000, help="on demand, at most")
    parser.add_argument("--every", type=float, default=3.0, help="seconds between splits on demand")
    parser.add_argument("--splits-by-size-min", type=int, default=0)
    parser.add_argument("--p99-ratio-max", type=float, help="of writes, while partitions split and before")
    options = parser.parse_args()
    endpoint, key = os.environ["COSMOS_ENDPOINT"], os.environ["COSMOS_KEY"]
    # There are more workers than connections that the SDK keeps; it says so for each one it gives back.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    client = CosmosClient(endpoint, key)
    database = client.create_database(f"splits-{uuid.uuid4()}")
    try:
        container = database.create_container("load", PartitionKey("/pk"))
        load = Load(container, options.items, options.keys, options.workers)
        splitter = Splitter(endpoint, key)
        by_size = options.splits_by_size_min > 0
        figures, seen = load.run(splitter, database.id, options.splits, options.every, by_size)
        figures["partitions"] = len(list(container.read_feed_ranges()))
        print(json.dumps(figures, indent=2))
        load.check(seen)
        assert figures["jobs_failed"] == 0, "a split failed"
        assert figures["splits_by_size"] >= options.splits_by_size_min, "too few splits by size"
        ratio = figures["p99_during_ms"] / max(figures["p99_before_ms"], 0.1)
        if options.p99_ratio_max:
            assert ratio <= options.p99_ratio_max, f"p99 of writes is {ratio:.1f} times what it was before"
        by_size, on_demand = figures["splits_by_size"], figures["splits_on_demand"]
        print(f"{options.items} items, {by_size} splits by size, {on_demand} on demand, p99 {ratio:.2f} times that before, "
              "nothing lost, nothing doubled, nothing failed")
    finally:
        client.delete_database(database.id)


if __name__ == "__main__":
    main()
