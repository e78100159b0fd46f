"""Requests that are refused for their rate, and what the SDK makes of it, as the cases of suite.py.

The server is made to refuse by its fault rules, so that the cases take no time and need no throughput of their own.
"""
import base64
import hashlib
import hmac
import json
import ssl
import urllib.parse
import urllib.request
from email.utils import formatdate


def add_to(case, refused, endpoint, key, ca_file):
    def faults(method, body=None):
        date = formatdate(usegmt=True)
        text = f"{method.lower()}\n_orrery\n_orrery/faults\n{date.lower()}\n\n"
        signature = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
        token = urllib.parse.quote(f"type=master&ver=1.0&sig={base64.b64encode(signature).decode()}", safe="")
        request = urllib.request.Request(endpoint.rstrip("/") + "/_orrery/faults", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"authorization": token, "x-ms-date": date})
        context = ssl.create_default_context(cafile=ca_file) if ca_file else None
        with urllib.request.urlopen(request, context=context) as answer:
            return json.loads(answer.read() or b"{}")

    def with_rules(rules, action):
        """Runs an action under fault rules and returns how often each fired."""
        faults("PUT", {"seed": 1, "rules": rules})
        try:
            action()
            return [rule["fired"] for rule in faults("GET")["rules"]]
        finally:
            faults("DELETE")

    @case
    def a_throttled_write_is_tried_again_until_it_succeeds(f):
        rule = {"container": "items", "operations": ["create_item"], "answer": 429, "retryAfterMs": 20, "count": 3}
        fired = with_rules([rule], lambda: f.items.create_item({"id": "throttled", "pk": "p"}))
        assert fired == [3], fired
        assert f.items.read_item("throttled", "p")["id"] == "throttled"

    @case
    def throttled_reads_and_queries_are_tried_again(f):
        f.items.upsert_item({"id": "read-again", "pk": "again"})
        query = "SELECT VALUE c.id FROM c WHERE c.pk = 'again'"
        rules = [{"container": "items", "operations": [name], "answer": 429, "retryAfterMs": 5, "count": 2}
                 for name in ("read_item", "query_items")]

        def run():
            assert f.items.read_item("read-again", "again")["pk"] == "again"
            assert list(f.items.query_items(query, partition_key="again")) == ["read-again"]

        assert with_rules(rules, run) == [2, 2]

    @case
    def an_endless_refusal_reaches_the_caller_as_429(f):
        rule = {"container": "items", "operations": ["create_item"], "answer": 429, "retryAfterMs": 1}

        def run():
            error = refused(429, f.items.create_item, {"id": "never", "pk": "p"})
            assert error.sub_status == 3200 and "Request rate is large" in error.message

        assert with_rules([rule], run) == [10]

    @case
    def an_offer_tells_its_minimum_and_follows_autoscale(f):
        container = f.container("scaled", "/pk", offer_throughput=400)
        assert container.replace_throughput(1000).offer_throughput == 1000
        refused(400, container.replace_throughput, 300)
        refused(400, container.replace_throughput, 450)
        assert container.get_throughput().offer_throughput == 1000
