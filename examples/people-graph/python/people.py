"""People who know each other, with gremlinpython: see ../README.md."""
import base64
import hashlib
import hmac
import json
import os
import urllib.error
import urllib.parse
import urllib.request
import uuid
from email.utils import formatdate

from gremlin_python.driver import client, serializer

KEY = os.environ.get("COSMOS_KEY", "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")
REST = os.environ.get("COSMOS_ENDPOINT", "http://localhost:8081/").rstrip("/")
GRAPHS = os.environ.get("GREMLIN_ENDPOINT", "ws://localhost:8901/")
DATABASE = os.environ.get("COSMOS_DATABASE", "social-" + uuid.uuid4().hex[:8])


def rest(method, path, kind, link, body=None):
    """A request of the NoSQL API, signed."""
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n".encode()
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text, hashlib.sha256).digest()).decode()
    headers = {"authorization": urllib.parse.quote(f"type=master&ver=1.0&sig={signature}", safe=""), "x-ms-date": date,
               "x-ms-version": "2018-12-31", "content-type": "application/json"}
    data = json.dumps(body).encode() if body else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(urllib.request.Request(REST + path, method=method, data=data, headers=headers)).read()


rest("POST", "/dbs", "dbs", "", {"id": DATABASE})
rest("POST", f"/dbs/{DATABASE}/colls", "colls", f"dbs/{DATABASE}",
     {"id": "people", "partitionKey": {"paths": ["/town"], "kind": "Hash", "version": 2}})

graph = client.Client(GRAPHS, "g", username=f"/dbs/{DATABASE}/colls/people", password=KEY,
                      message_serializer=serializer.GraphSONSerializersV2d0())


def run(script, **bindings):
    return graph.submit(script, bindings).all().result()


for name, town, age in [("ann", "oslo", 30), ("bob", "oslo", 25), ("cid", "rome", 28), ("dot", "rome", 29)]:
    run("g.addV('person').property('id', name).property('town', town).property('age', age)", name=name, town=town, age=age)
for one, other in [("ann", "bob"), ("ann", "cid"), ("bob", "cid"), ("cid", "dot")]:
    run("g.V(one).addE('knows').to(g.V(other))", one=one, other=other)
print(f"{run('g.V().count()')[0]} people, {run('g.E().count()')[0]} edges")
print("ann lives in", run("g.V(['oslo', 'ann']).values('town')")[0])
print("ann knows:", ", ".join(sorted(run("g.V(['oslo', 'ann']).out('knows').id()"))))
print("ann knows at two hops:", ", ".join(sorted(run("g.V(['oslo', 'ann']).out('knows').out('knows').dedup().id()"))))
print("cid is known by:", ", ".join(sorted(run("g.V(['rome', 'cid']).in('knows').id()"))))
print("older than 28, by age:", ", ".join(run("g.V().has('age', gt(28)).order().by('age').id()")))
print("bob is now", run("g.V(['oslo', 'bob']).property('age', 26).values('age')")[0])
run("g.V(['rome', 'cid']).drop()")
print(f"without cid: {run('g.V().count()')[0]} people, {run('g.E().count()')[0]} edges")
graph.close()
rest("DELETE", f"/dbs/{DATABASE}", "dbs", f"dbs/{DATABASE}")
