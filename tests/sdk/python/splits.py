"""Partitions that split under load, as cases of suite.py; and the same by itself, longer:

    COSMOS_ENDPOINT=... COSMOS_KEY=... python splits.py [--items N] [--keys N] [--workers N] [--splits N] [--every S]

Workers load items while partitions are split again and again (and, when the server was started with a small
--partition-size-limit, by their size as well). A reader, a query and a follower of the change feed run beside them. No
operation may fail, no item may be lost or doubled, and the feed must tell each of them. Latencies of the writes are
taken before the first split and while partitions split.
"""
import argparse
import base64
import hashlib
import hmac
import json
import os
import threading
import time
import urllib.parse
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

from azure.cosmos import CosmosClient, PartitionKey

PATH = "_orrery/splits"


class Splitter:
    """The server's own route for splits, signed as the SDK signs."""

    def __init__(self, endpoint, key, ca_file=None):
        self.endpoint, self.key = endpoint.rstrip("/"), base64.b64decode(key)
        self.context = None
        if ca_file:
            import ssl
            self.context = ssl.create_default_context(cafile=ca_file)

    def ask(self, method, body=None):
        date = formatdate(usegmt=True)
        text = f"{method.lower()}\n_orrery\n{PATH}\n{date.lower()}\n\n"
        mac = base64.b64encode(hmac.new(self.key, text.encode(), hashlib.sha256).digest()).decode()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={mac}", safe="")
        headers = {"authorization": token, "x-ms-date": date, "x-ms-version": "2020-07-15"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.endpoint}/{PATH}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, context=self.context) as answer:
            return json.load(answer)

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
        self.latencies = []
        self.stop = threading.Event()
        self.failures = []

    def key(self, n):
        return f"key-{n % self.keys}"

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
                if len(found) != len(set(found)) or len(found) < min(100, floor) - 2 * self.workers:
                    self.failures.append(f"query below {floor}: {len(found)} rows, {len(set(found))} different")
            except Exception as error:
                self.failures.append(f"query: {error!r}")
            time.sleep(0.02)

    def run(self, splitter, database, splits, every_s):
        seen, jobs = {}, []
        beside = [threading.Thread(target=each) for each in (lambda: self.follow(seen), self.read, self.query)]
        begun = time.perf_counter()
        with ThreadPoolExecutor(self.workers) as pool:
            writes = [pool.submit(self.write, n) for n in range(self.items)]
            for thread in beside:
                thread.start()
            time.sleep(every_s)
            first = time.perf_counter()
            while len(jobs) < splits and not all(write.done() for write in writes):
                jobs.append((time.perf_counter(), splitter.run("split", database, self.container.id), time.perf_counter()))
                time.sleep(every_s)
        ended = time.perf_counter()
        self.stop.set()
        for thread in beside:
            thread.join()
        before = [took for at, took in self.latencies if at < first]
        during = [took for at, took in self.latencies if at >= first]
        return {
            "items_per_s": self.items / (ended - begun),
            "splits_on_demand": len(jobs),
            "paused_ms_max": max((job["pausedMs"] for _, job, _ in jobs), default=0),
            "split_ms_max": max((job["tookMs"] for _, job, _ in jobs), default=0),
            "p99_before_ms": percentile(before, 0.99) * 1000,
            "p99_during_ms": percentile(during, 0.99) * 1000,
            "p50_before_ms": percentile(before, 0.5) * 1000,
            "p50_during_ms": percentile(during, 0.5) * 1000,
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
    parser.add_argument("--splits", type=int, default=1_000)
    parser.add_argument("--every", type=float, default=3.0)
    options = parser.parse_args()
    endpoint, key = os.environ["COSMOS_ENDPOINT"], os.environ["COSMOS_KEY"]
    client = CosmosClient(endpoint, key)
    database = client.create_database(f"splits-{uuid.uuid4()}")
    try:
        container = database.create_container("load", PartitionKey("/pk"))
        load = Load(container, options.items, options.keys, options.workers)
        splitter = Splitter(endpoint, key)
        figures, seen = load.run(splitter, database.id, options.splits, options.every)
        jobs = [job for job in splitter.ask("GET")["jobs"] if job["database"] == database.id]
        figures["splits_by_size"] = sum(job["reason"] == "size" and job["step"] == "done" for job in jobs)
        figures["ranges"] = len(list(container.read_feed_ranges()))
        print(json.dumps(figures, indent=2))
        load.check(seen)
        print("nothing lost, nothing doubled, nothing failed")
    finally:
        client.delete_database(database.id)


if __name__ == "__main__":
    main()
