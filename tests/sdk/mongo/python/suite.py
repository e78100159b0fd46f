"""PyMongo, unmodified, against a running server, over the port that all APIs share.

    COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] python suite.py [WORD]

Every function marked @case is one test, named by the sentence it proves; WORD selects those whose name holds it.
The last line is `N passed, N failed`, and the exit status says the same.
"""
import os
import sys
import time
import traceback
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import mapper
from bson import Decimal128, Int64, ObjectId
from pymongo import MongoClient, UpdateOne, InsertOne, DeleteOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure

ENDPOINT = urllib.parse.urlsplit(os.environ["COSMOS_ENDPOINT"])
KEY = os.environ["COSMOS_KEY"]
CA_FILE = os.environ.get("COSMOS_CA_FILE")
ACCOUNT = os.environ.get("COSMOS_ACCOUNT", "orrery")
DATABASE = "mongo" + uuid.uuid4().hex[:8]
CASES = []


def case(function):
    CASES.append(function)
    return function


TLS = {"tls": True, "tlsCAFile": CA_FILE} if CA_FILE else {}
CONNECTION = {"host": ENDPOINT.hostname, "port": ENDPOINT.port, "username": ACCOUNT, "password": KEY, "directConnection": True,
              "serverSelectionTimeoutMS": 10_000, **TLS}


def connect(**options):
    return MongoClient(**{**CONNECTION, **options})


mapper.register(case, {**CONNECTION, "authentication_source": "admin"})


def fails(code, work):
    try:
        work()
    except OperationFailure as error:
        assert error.code == code, f"{error.code}, not {code}: {error}"
        return
    raise AssertionError(f"no error, {code} was expected")


@case
def both_mechanisms_prove_a_key_and_a_wrong_one_is_refused(client, db):
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1"]:
        with connect(authMechanism=mechanism) as other:
            assert other.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": ACCOUNT, "db": "admin"}]
    with connect(password="d3Jvbmcgd3Jvbmcgd3Jvbmc=") as stranger:
        fails(18, lambda: stranger[DATABASE].c.find_one())


@case
def messages_may_be_packed(client, db):
    for name in ["snappy", "zlib", "zstd"]:
        with connect(compressors=name) as packed:
            packed[DATABASE].packed.insert_one({"_id": name, "text": "x" * 10_000})
            assert len(packed[DATABASE].packed.find_one({"_id": name})["text"]) == 10_000


@case
def documents_come_back_as_they_were(client, db):
    document = {"_id": ObjectId(), "b": True, "i": 1, "l": Int64(2**40), "d": 0.5, "m": Decimal128("1.50"), "n": None,
                "t": datetime(2024, 2, 29, 12, tzinfo=timezone.utc), "a": [1, "x", {"y": [b"\x00\x01"]}], "id": "its own"}
    db.types.insert_one(document)
    found = db.types.with_options(codec_options=db.codec_options.with_options(tz_aware=True)).find_one()
    assert found == document, found
    assert list(found) == list(document)


@case
def equal_ids_are_one_document(client, db):
    db.ids.insert_one({"_id": 1})
    for same in [Int64(1), 1.0]:
        try:
            db.ids.insert_one({"_id": same})
        except DuplicateKeyError as error:
            assert error.details["keyPattern"] == {"_id": 1}
        else:
            raise AssertionError(same)
    db.ids.insert_one({"_id": "1"})
    assert db.ids.count_documents({}) == 2


@case
def writes_find_and_change_what_they_say(client, db):
    db.shop.insert_many([{"_id": n, "kind": "ab"[n % 2], "n": n, "tags": ["x", str(n)]} for n in range(50)])
    assert db.shop.count_documents({"tags": "7", "n": {"$gte": 5}}) == 1
    assert db.shop.update_many({"kind": "a"}, {"$inc": {"n": 100}}).modified_count == 25
    assert db.shop.find_one_and_update({"_id": 3}, {"$push": {"tags": "new"}}, return_document=True)["tags"][-1] == "new"
    assert db.shop.update_one({"_id": 99}, {"$set": {"n": 1}}, upsert=True).upserted_id == 99
    assert db.shop.delete_many({"n": {"$gte": 140}}).deleted_count == 5
    assert [d["_id"] for d in db.shop.find({"kind": "b"}).sort("_id", -1).limit(3)] == [49, 47, 45]
    groups = db.shop.aggregate([{"$group": {"_id": "$kind", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}])
    assert list(groups) == [{"_id": None, "n": 1}, {"_id": "a", "n": 20}, {"_id": "b", "n": 25}]


@case
def a_bulk_goes_on_or_stops(client, db):
    writes = [InsertOne({"_id": 1}), InsertOne({"_id": 1}), UpdateOne({"_id": 1}, {"$set": {"x": 1}}), DeleteOne({"_id": 1})]
    for ordered, deleted in [(True, 0), (False, 1)]:
        db.bulk.delete_many({})
        try:
            db.bulk.bulk_write(writes, ordered=ordered)
        except BulkWriteError as error:
            assert error.details["nRemoved"] == deleted and len(error.details["writeErrors"]) == 1, error.details
        else:
            raise AssertionError("no error")


@case
def cursors_go_on_over_several_batches(client, db):
    db.many.insert_many([{"_id": n} for n in range(1_000)])
    assert [d["_id"] for d in db.many.find(batch_size=37).sort("_id")] == list(range(1_000))


@case
def a_unique_index_holds(client, db):
    db.people.create_index("mail", unique=True, sparse=True)
    db.people.insert_many([{"_id": 1, "mail": "a"}, {"_id": 2}, {"_id": 3}])
    fails(11000, lambda: db.people.insert_one({"mail": "a"}))
    fails(11000, lambda: db.people.update_one({"_id": 2}, {"$set": {"mail": "a"}}))
    assert sorted(db.people.index_information()) == ["_id_", "mail_1"]


@case
def a_unique_index_is_built_over_documents_that_are_there_or_says_which_value_is_there_twice(client, db):
    db.built.insert_many([{"_id": n, "a": n % 200, "b": [n, -n]} for n in range(400)])
    fails(11000, lambda: db.built.create_index("a", unique=True))
    assert sorted(db.built.index_information()) == ["_id_"]
    db.built.insert_one({"_id": "x", "a": 1})
    db.built.create_index("b", unique=True, partialFilterExpression={"b": {"$exists": True}})
    fails(11000, lambda: db.built.insert_one({"b": [1000, -7]}))
    db.built.insert_many([{"a": 5}, {"a": 5}])


@case
def of_many_writers_of_one_value_one_succeeds(client, db):
    db.race.create_index([("a", 1), ("b", 1)], unique=True)

    def write(n):
        try:
            db.race.insert_one({"a": n % 20, "b": "x"})
            return 1
        except DuplicateKeyError as error:
            assert error.details["keyPattern"] == {"a": 1, "b": 1}, error.details
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(160))) == 20
    assert db.race.count_documents({}) == 20


@case
def documents_go_when_their_date_is_over(client, db):
    past, future = datetime(2001, 1, 1, tzinfo=timezone.utc), datetime(2101, 1, 1, tzinfo=timezone.utc)
    db.dated.insert_one({"_id": "before", "at": past})
    db.dated.create_index("at", expireAfterSeconds=60)
    db.dated.insert_many([{"_id": "past", "at": [future, past]}, {"_id": "future", "at": future}, {"_id": "none", "at": "x"}])
    deadline = time.monotonic() + 60
    while db.dated.count_documents({}) > 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert sorted(d["_id"] for d in db.dated.find()) == ["future", "none"]


@case
def a_transaction_reads_one_moment(client, db):
    db.moment.insert_many([{"_id": n, "n": 0} for n in range(10)])
    with client.start_session() as session, session.start_transaction():
        assert db.moment.count_documents({"n": 0}, session=session) == 10
        db.moment.update_many({"_id": {"$lt": 5}}, {"$set": {"n": 1}})
        db.moment.delete_one({"_id": 9})
        db.moment.insert_one({"_id": 10, "n": 0})
        assert db.moment.find_one({"_id": 0}, session=session)["n"] == 0
        assert sorted(d["_id"] for d in db.moment.find({"n": 0}, session=session)) == list(range(10))
        db.moment.insert_one({"_id": 11, "n": 0}, session=session)
        assert db.moment.count_documents({}, session=session) == 11
    assert db.moment.count_documents({}) == 11
    with client.start_session() as session:
        session.start_transaction()
        db.moment.find_one({"_id": 1}, session=session)
        db.moment.update_one({"_id": 1}, {"$inc": {"n": 1}})
        db.moment.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
        fails(112, session.commit_transaction)


@case
def transactions_are_all_or_nothing(client, db):
    db.accounts.insert_many([{"_id": "a", "n": 10}, {"_id": "b", "n": 0}])
    with client.start_session() as session:
        with session.start_transaction():
            db.accounts.update_one({"_id": "a"}, {"$inc": {"n": -5}}, session=session)
            db.accounts.update_one({"_id": "b"}, {"$inc": {"n": 5}}, session=session)
            assert db.accounts.find_one({"_id": "b"})["n"] == 0
            assert db.accounts.find_one({"_id": "b"}, session=session)["n"] == 5
        session.start_transaction()
        db.accounts.delete_many({}, session=session)
        session.abort_transaction()
    assert [d["n"] for d in db.accounts.find().sort("_id")] == [5, 5]


@case
def sharded_collections_are_cosmos_dbs(client, db):
    reply = client.admin.command("shardCollection", f"{DATABASE}.orders", key={"region": "hashed"})
    assert reply["_t"] == "ShardCollectionResponse"
    db.orders.insert_many([{"_id": 1, "region": "eu"}, {"_id": 1, "region": "us"}])
    fails(11000, lambda: db.orders.insert_one({"_id": 1, "region": "eu"}))
    assert db.orders.count_documents({"region": "eu"}) == 1 and db.orders.count_documents({}) == 2


@case
def a_change_stream_tells_and_is_resumed(client, db):
    db.watched.insert_one({"_id": 0})
    with db.watched.watch(max_await_time_ms=500) as stream:
        db.watched.insert_one({"_id": 1})
        db.watched.update_one({"_id": 1}, {"$set": {"x": 1}})
        db.watched.delete_one({"_id": 1})
        first = stream.next()
        token = stream.resume_token
        assert [first["operationType"], stream.next()["operationType"], stream.next()["operationType"]] == ["insert", "update", "delete"]
    with db.watched.watch(resume_after=token) as stream:
        assert stream.next()["updateDescription"]["updatedFields"] == {"x": 1}


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = 0
    with connect() as client:
        for function in CASES:
            if word not in function.__name__:
                continue
            try:
                function(client, client[DATABASE])
                passed += 1
            except Exception:
                failed += 1
                print(f"FAILED {function.__name__}")
                traceback.print_exc()
        client.drop_database(DATABASE)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
