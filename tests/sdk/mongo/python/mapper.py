"""MongoEngine, unmodified: documents as classes, with references, embedded documents, unique fields and signals.

`case` and `connection` are those of the suite."""
from datetime import datetime

import mongoengine as me

ALIAS = "mapper"


class Address(me.EmbeddedDocument):
    street = me.StringField(required=True)
    zip = me.StringField(max_length=5)


class Customer(me.Document):
    name = me.StringField(required=True)
    mail = me.EmailField(unique=True)
    addresses = me.EmbeddedDocumentListField(Address)
    joined = me.DateTimeField()
    points = me.IntField(default=0)
    meta = {"db_alias": ALIAS, "indexes": ["name", ("points", "-joined")], "ordering": ["-points"]}


class Order(me.Document):
    customer = me.ReferenceField(Customer)
    lines = me.ListField(me.DictField())
    total = me.DecimalField(precision=2)
    meta = {"db_alias": ALIAS}


def register(case, connection):
    @case
    def mongoengine_maps_classes_to_documents(client, db):
        me.connect(db.name, alias=ALIAS, **connection)
        try:
            ada = Customer(name="Ada", mail="ada@example.org", joined=datetime(2024, 2, 29), points=3,
                           addresses=[Address(street="Main", zip="12345"), Address(street="Side", zip="54321")]).save()
            Customer.objects.insert([Customer(name=f"c{n}", mail=f"c{n}@example.org", points=n) for n in range(30)])
            assert [one.points for one in Customer.objects[:3]] == [29, 28, 27], "the order of the class"
            assert [one.name for one in Customer.objects(points__lt=5).order_by("points").limit(2)] == ["c0", "c1"]
            assert Customer.objects(addresses__zip="54321").count() == 1
            Customer.objects(id=ada.id, addresses__street="Side").update_one(set__addresses__S__zip="00000", inc__points=1)
            ada.reload()
            assert (ada.addresses[1].zip, ada.points) == ("00000", 4)
            order = Order(customer=ada, lines=[{"sku": "a", "n": 2}], total="12.50").save()
            found = Order.objects(id=order.id).first()
            assert (found.customer.name, str(found.total)) == ("Ada", "12.50")
            assert Customer.objects.average("points") == (sum(range(30)) + 4) / 31
            assert Customer.objects.sum("points") == sum(range(30)) + 4
            try:
                Customer(name="Other", mail="ada@example.org").save()
                raise AssertionError("a mail address twice")
            except me.errors.NotUniqueError:
                pass
            assert Customer.objects(name__istartswith="C2").count() == 11
            assert Customer.objects(points__gte=20).delete() == 10
            assert Customer.objects.count() == 21
        finally:
            me.disconnect(alias=ALIAS)
