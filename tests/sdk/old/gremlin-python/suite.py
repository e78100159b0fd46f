"""gremlinpython 3.4.13, which the service recommends, unmodified, against a running server: scripts and bytecode.

    COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] python suite.py [WORD]

Its tornado 5 looks for a class where Python before 3.10 had it; two lines put it back there. The driver is as it comes.

Every function marked @case is one test, named by the sentence it proves; WORD selects those whose name holds it.
The last line is `N passed, N failed`, and the exit status says the same.
"""
import base64
import collections
import collections.abc
import hashlib
import hmac
import json
import os
import ssl
import sys
import traceback
import urllib.parse
import urllib.request
import uuid
from email.utils import formatdate

collections.MutableMapping = collections.abc.MutableMapping

from gremlin_python.driver import client, serializer
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import P, T
from tornado import httpclient

ENDPOINT = os.environ["COSMOS_ENDPOINT"].rstrip("/")
KEY = os.environ["COSMOS_KEY"]
CA_FILE = os.environ.get("COSMOS_CA_FILE")
SOCKET = ENDPOINT.replace("http", "ws", 1) + "/gremlin"
DATABASE = "gremlin" + uuid.uuid4().hex[:8]
CASES = []
# Its GraphBinary cannot write a request at all.
SERIALIZERS = {"graphson2": serializer.GraphSONSerializersV2d0, "graphson3": serializer.GraphSONSerializersV3d0}


def case(function):
    CASES.append(function)
    return function


def socket():
    return httpclient.HTTPRequest(SOCKET, ca_certs=CA_FILE) if CA_FILE else SOCKET


def rest(method, path, kind, link, body=None, headers=None):
    """A request of the NoSQL API, which makes the containers that graphs are."""
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    request = urllib.request.Request(ENDPOINT + path, method=method, data=json.dumps(body).encode() if body else None)
    for name, value in {"authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe=""),
                        "x-ms-date": date, "x-ms-version": "2018-12-31", "content-type": "application/json",
                        **(headers or {})}.items():
        request.add_header(name, value)
    context = ssl.create_default_context(cafile=CA_FILE) if CA_FILE else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request) as answer:
        return json.loads(answer.read() or b"null")


def make_graph(name):
    body = {"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
    rest("POST", f"/dbs/{DATABASE}/colls", "colls", f"dbs/{DATABASE}", body)
    return name


def connect(graph, form):
    return client.Client(socket(), "g", username=f"/dbs/{DATABASE}/colls/{graph}", password=KEY,
                         message_serializer=SERIALIZERS[form]())


def run(connection, script, bindings=None):
    return connection.submit(script, bindings or {}).all().result()


def people(connection):
    run(connection, "g.addV('person').property('id','ann').property('pk','a').property('name','Ann').property('age',30)")
    run(connection, "g.addV('person').property('id','bob').property('pk','b').property('name','Bob').property('age',25)")
    run(connection, "g.V(['a','ann']).addE('knows').to(g.V(['b','bob'])).property('since',2001)")


@case
def scripts_write_and_read(graph, form):
    connection = connect(graph, form)
    people(connection)
    assert run(connection, "g.V().count()") == [2]
    assert run(connection, "g.V('ann').out('knows').values('name')") == ["Bob"]
    assert run(connection, "g.V().has('age', gt(x)).values('name')", {"x": 26}) == ["Ann"]
    assert sorted(run(connection, "g.V().values('name')")) == ["Ann", "Bob"]
    connection.close()


@case
def many_results_come_in_frames(graph, form):
    connection = connect(graph, form)
    found = run(connection, "g.inject(%s)" % ",".join(map(str, range(500))))
    assert found == list(range(500))
    connection.close()


@case
def errors_say_what_is_wrong(graph, form):
    connection = connect(graph, form)
    for script, word in [("g.V().noSuchStep()", "GraphCompileException"),
                         ("g.addV('p')", "partition key")]:
        try:
            run(connection, script)
        except GremlinServerError as error:
            assert word in str(error), error
        else:
            raise AssertionError(script)
    connection.close()


@case
def a_status_says_what_a_request_cost(graph, form):
    connection = connect(graph, form)
    result = connection.submit("g.V().count()")
    result.all().result()
    assert result.status_attributes["x-ms-status-code"] == 200
    assert result.status_attributes["x-ms-total-request-charge"] > 0
    connection.close()


@case
def bytecode_walks_the_graph(graph, form):
    remote = DriverRemoteConnection(socket(), "g", username=f"/dbs/{DATABASE}/colls/{graph}", password=KEY,
                                    message_serializer=SERIALIZERS[form]())
    g = traversal().withRemote(remote)
    g.addV("person").property(T.id, "ann").property("pk", "a").property("name", "Ann").property("age", 30).iterate()
    g.addV("person").property(T.id, "bob").property("pk", "b").property("name", "Bob").property("age", 25).iterate()
    g.V("ann").addE("knows").to(__.V("bob")).property("since", 2001).iterate()
    assert g.V().count().next() == 2
    assert g.V().has("age", P.gt(26)).values("name").toList() == ["Ann"]
    assert g.V("ann").out("knows").values("name").toList() == ["Bob"]
    vertex = g.V("bob").next()
    assert (vertex.id, vertex.label) == ("bob", "person")
    remote.close()


def main(word):
    rest("POST", "/dbs", "dbs", "", {"id": DATABASE})
    passed = failed = 0
    for function in CASES:
        for form in SERIALIZERS:
            name = f"{function.__name__} ({form})"
            if word and word not in name:
                continue
            try:
                function(make_graph(uuid.uuid4().hex), form)
                passed += 1
            except Exception:
                failed += 1
                print(f"FAILED {name}")
                traceback.print_exc()
    rest("DELETE", f"/dbs/{DATABASE}", "dbs", f"dbs/{DATABASE}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
