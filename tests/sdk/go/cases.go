package main

// The cases, each named by the sentence it proves. This SDK has no bulk, no `move` patch and no feed of items other
// than a query; what it has is here.

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

type item = azcosmos.ItemResponse

var key = azcosmos.NewPartitionKeyString

// loud asks for the written item in the answer; without it this SDK asks for an empty one.
var loud = &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}

// namedCase is a case with the sentence it proves.
type namedCase struct {
	name string
	body func(*fixture)
}

var cases = []namedCase{
	{"a database is created, read and deleted", func(f *fixture) {
		id := name("go-extra")
		created := must(f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))
		equal(created.RawResponse.StatusCode, 201)
		database := must(f.client.NewDatabase(id))
		read := must(database.Read(background, nil))
		equal(read.DatabaseProperties.SelfLink, "dbs/"+read.DatabaseProperties.ResourceID+"/")
		equal(*read.DatabaseProperties.ETag, read.ETag)
		refused[azcosmos.DatabaseResponse](409)(f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))
		equal(must(database.Delete(background, nil)).RawResponse.StatusCode, 204)
		refused[azcosmos.DatabaseResponse](404)(database.Read(background, nil))
	}},
	{"a container comes back with the policies the service fills in", func(f *fixture) {
		container := f.container(definition("defaults", "/pk"), nil)
		properties := must(container.Read(background, nil)).ContainerProperties
		equal(properties.PartitionKeyDefinition.Version, 2)
		check(strings.EqualFold(string(properties.IndexingPolicy.IndexingMode), string(azcosmos.IndexingModeConsistent)),
			"the indexing mode is %s", properties.IndexingPolicy.IndexingMode)
		equal(properties.IndexingPolicy.ExcludedPaths[0].Path, `/"_etag"/?`)
		equal(properties.ConflictResolutionPolicy.Mode, azcosmos.ConflictResolutionModeLastWriteWins)
		refused[azcosmos.ContainerResponse](409)(f.database.CreateContainer(background, definition("defaults", "/pk"), nil))
	}},
	{"a container is replaced and deleted, but keeps its partition key", func(f *fixture) {
		container := f.container(definition("replaced", "/pk"), nil)
		properties := *must(container.Read(background, nil)).ContainerProperties
		ttl := int32(60)
		properties.DefaultTimeToLive = &ttl
		replaced := must(container.Replace(background, properties, nil)).ContainerProperties
		equal(*replaced.DefaultTimeToLive, ttl)
		properties.PartitionKeyDefinition.Paths = []string{"/other"}
		refused[azcosmos.ContainerResponse](400)(container.Replace(background, properties, nil))
		equal(must(container.Delete(background, nil)).RawResponse.StatusCode, 204)
		refused[azcosmos.ContainerResponse](404)(container.Read(background, nil))
	}},
	{"thirty thousand units make three partitions", func(f *fixture) {
		throughput := azcosmos.NewManualThroughputProperties(30000)
		container := f.container(definition("wide", "/pk"), &throughput)
		ranges := must(container.ReadFeedRanges(background, nil))
		equal(len(ranges), 3)
		equal(ranges[0].MinInclusive, "")
		equal(ranges[2].MaxExclusive, "FF")
		var identities []azcosmos.ItemIdentity
		for n := range 30 {
			id := fmt.Sprint("i", n)
			must(container.CreateItem(background, key(id), encode(object{"id": id, "pk": id}), nil))
			identities = append(identities, azcosmos.ItemIdentity{ID: id, PartitionKey: key(id)})
		}
		for _, each := range identities {
			equal(decode(must(container.ReadItem(background, each.PartitionKey, each.ID, nil)).Value)["id"], any(each.ID))
		}
	}},
	{"an item is created, read, replaced and deleted", func(f *fixture) {
		created := must(f.items.CreateItem(background, key("p"), encode(object{"id": "life", "pk": "p", "n": 1}), loud))
		equal(created.RawResponse.StatusCode, 201)
		equal(decode(created.Value)["_etag"], any(string(created.ETag)))
		check(created.RequestCharge > 0, "a write costs something")
		read := must(f.items.ReadItem(background, key("p"), "life", nil))
		equal(decode(read.Value), decode(created.Value))
		replaced := must(f.items.ReplaceItem(background, key("p"), "life", encode(object{"id": "life", "pk": "p", "n": 2}), loud))
		equal(plain(decode(replaced.Value)), object{"id": "life", "pk": "p", "n": 2.0})
		equal(must(f.items.DeleteItem(background, key("p"), "life", nil)).RawResponse.StatusCode, 204)
		refused[item](404)(f.items.ReadItem(background, key("p"), "life", nil))
		refused[item](404)(f.items.DeleteItem(background, key("p"), "life", nil))
		refused[item](404)(f.items.ReplaceItem(background, key("p"), "life", encode(object{"id": "life", "pk": "p"}), nil))
	}},
	{"upsert inserts with 201 and replaces with 200", func(f *fixture) {
		first := must(f.items.UpsertItem(background, key("p"), encode(object{"id": "up", "pk": "p"}), loud))
		equal(first.RawResponse.StatusCode, 201)
		second := must(f.items.UpsertItem(background, key("p"), encode(object{"id": "up", "pk": "p", "n": 2}), loud))
		equal(second.RawResponse.StatusCode, 200)
		equal(decode(first.Value)["_rid"], decode(second.Value)["_rid"])
	}},
	{"the answer to a write is empty when the client wants none", func(f *fixture) {
		quiet := must(f.items.CreateItem(background, key("p"), encode(object{"id": "quiet", "pk": "p"}), &azcosmos.ItemOptions{}))
		equal(quiet.RawResponse.StatusCode, 201)
		equal(len(quiet.Value), 0)
		check(quiet.ETag != "", "the etag is still there")
	}},
	{"whole numbers are exact and properties keep their order", func(f *fixture) {
		text := `{"id":"exact","zulu":9007199254740993,"alpha":-9223372036854775808,"pk":"p","m":{"b":1.5,"a":[true,null,"ü€😀"]}`
		must(f.items.CreateItem(background, key("p"), []byte(text+"}"), nil))
		read := string(must(f.items.ReadItem(background, key("p"), "exact", nil)).Value)
		check(strings.HasPrefix(read, text+","), "the text came back as %s", read)
	}},
	{"null and empty partition keys are two places", func(f *fixture) {
		must(f.items.CreateItem(background, azcosmos.NullPartitionKey, encode(object{"id": "k", "pk": nil}), nil))
		must(f.items.CreateItem(background, key(""), encode(object{"id": "k", "pk": ""}), nil))
		equal(decode(must(f.items.ReadItem(background, azcosmos.NullPartitionKey, "k", nil)).Value)["pk"], nil)
		equal(decode(must(f.items.ReadItem(background, key(""), "k", nil)).Value)["pk"], any(""))
	}},
	{"numbers and booleans are partition keys", func(f *fixture) {
		for value, key := range map[any]azcosmos.PartitionKey{
			-1.5: azcosmos.NewPartitionKeyNumber(-1.5), 0.0: azcosmos.NewPartitionKeyNumber(0),
			true: azcosmos.NewPartitionKeyBool(true), false: azcosmos.NewPartitionKeyBool(false),
		} {
			must(f.items.CreateItem(background, key, encode(object{"id": "typed", "pk": value}), nil))
			equal(decode(must(f.items.ReadItem(background, key, "typed", nil)).Value)["pk"], value)
		}
	}},
	{"a key that is not the item's is refused", func(f *fixture) {
		refused[item](400)(f.items.CreateItem(background, key("other"), encode(object{"id": "wrong", "pk": "p"}), nil))
		refused[item](400)(f.items.CreateItem(background, key("p"), encode(object{"pk": "p"}), nil))
		refused[item](400)(f.items.CreateItem(background, key("p"), []byte(`{"id":"broken"`), nil))
		refused[item](409)(f.items.CreateItem(background, key("p"), encode(object{"id": "exact", "pk": "p"}), nil))
	}},
	{"an item of more than two megabytes is refused", func(f *fixture) {
		huge := object{"id": "huge", "pk": "p", "text": strings.Repeat("x", 2*1024*1024)}
		refused[item](413)(f.items.CreateItem(background, key("p"), encode(huge), nil))
	}},
	{"ids may hold blanks, percent signs and any script", func(f *fixture) {
		for _, id := range []string{"a b", "100%", "a%20b", "a+b", "Ünïcødé", "日本", strings.Repeat("x", 255)} {
			must(f.items.CreateItem(background, key("ids"), encode(object{"id": id, "pk": "ids"}), nil))
			equal(decode(must(f.items.ReadItem(background, key("ids"), id, nil)).Value)["id"], any(id))
			must(f.items.DeleteItem(background, key("ids"), id, nil))
		}
	}},
	{"a hierarchical key has up to three levels", func(f *fixture) {
		container := f.container(definition("levels", "/tenant", "/user", "/session"), nil)
		full := azcosmos.NewPartitionKey().AppendString("a").AppendNumber(1).AppendNull()
		must(container.CreateItem(background, full, encode(object{"id": "x", "tenant": "a", "user": 1, "session": nil}), nil))
		must(container.ReadItem(background, full, "x", nil))
		other := azcosmos.NewPartitionKey().AppendString("a").AppendNumber(2).AppendNull()
		refused[item](404)(container.ReadItem(background, other, "x", nil))
		refused[azcosmos.ContainerResponse](400)(f.database.CreateContainer(background, definition("deep", "/a", "/b", "/c", "/d"), nil))
	}},
	{"patch operations do what they say, and a condition decides", func(f *fixture) {
		start := object{"id": "patch", "pk": "p", "n": 1, "gone": 1, "list": []int{1, 3}, "keep": object{"a": 1}}
		must(f.items.CreateItem(background, key("p"), encode(start), nil))
		patch := azcosmos.PatchOperations{}
		patch.SetCondition("from c where c.n = 1")
		patch.AppendAdd("/added", object{"x": 1})
		patch.AppendAdd("/list/1", 2)
		patch.AppendAdd("/list/-", 4)
		patch.AppendSet("/keep/b", false)
		patch.AppendReplace("/list/0", "one")
		patch.AppendRemove("/gone")
		patch.AppendIncrement("/n", 41)
		patched := decode(must(f.items.PatchItem(background, key("p"), "patch", patch, loud)).Value)
		equal(plain(patched), object{
			"id": "patch", "pk": "p", "n": 42.0, "list": []any{"one", 2.0, 3.0, 4.0},
			"keep": object{"a": 1.0, "b": false}, "added": object{"x": 1.0},
		})
		refused[item](412)(f.items.PatchItem(background, key("p"), "patch", patch, nil))
		absent := azcosmos.PatchOperations{}
		absent.AppendSet("/n", 1)
		absent.AppendRemove("/absent")
		refused[item](400)(f.items.PatchItem(background, key("p"), "patch", absent, nil))
		refused[item](404)(f.items.PatchItem(background, key("p"), "nowhere", patch, nil))
		equal(decode(must(f.items.ReadItem(background, key("p"), "patch", nil)).Value)["n"], any(42.0))
	}},
	{"a stale etag is refused and a current one is not", func(f *fixture) {
		first := must(f.items.CreateItem(background, key("p"), encode(object{"id": "etag", "pk": "p"}), nil)).ETag
		second := must(f.items.UpsertItem(background, key("p"), encode(object{"id": "etag", "pk": "p", "n": 2}), nil)).ETag
		with := func(tag azcore.ETag) *azcosmos.ItemOptions { return &azcosmos.ItemOptions{IfMatchEtag: &tag} }
		body := encode(object{"id": "etag", "pk": "p", "n": 3})
		refused[item](412)(f.items.ReplaceItem(background, key("p"), "etag", body, with(first)))
		refused[item](412)(f.items.UpsertItem(background, key("p"), body, with(first)))
		refused[item](412)(f.items.DeleteItem(background, key("p"), "etag", with(first)))
		must(f.items.ReplaceItem(background, key("p"), "etag", body, with(second)))
		any := azcore.ETagAny
		refused[item](412)(f.items.DeleteItem(background, key("p"), "etag", with(second)))
		must(f.items.DeleteItem(background, key("p"), "etag", with(any)))
	}},
	{"an unchanged database is not sent again", func(f *fixture) {
		tag := must(f.database.Read(background, nil)).ETag
		again := must(f.database.Read(background, &azcosmos.ReadDatabaseOptions{IfNoneMatchEtag: &tag}))
		equal(again.RawResponse.StatusCode, 304)
	}},
	{"a batch does all of its operations", func(f *fixture) {
		must(f.items.CreateItem(background, key("batch"), encode(object{"id": "old", "pk": "batch", "n": 1}), nil))
		must(f.items.CreateItem(background, key("batch"), encode(object{"id": "gone", "pk": "batch"}), nil))
		batch := f.items.NewTransactionalBatch(key("batch"))
		batch.CreateItem(encode(object{"id": "new", "pk": "batch"}), nil)
		batch.UpsertItem(encode(object{"id": "up", "pk": "batch"}), nil)
		batch.ReplaceItem("old", encode(object{"id": "old", "pk": "batch", "n": 2}), nil)
		batch.ReadItem("old", nil)
		patch := azcosmos.PatchOperations{}
		patch.AppendIncrement("/n", 5)
		batch.PatchItem("old", patch, nil)
		batch.DeleteItem("gone", nil)
		answer := must(f.items.ExecuteTransactionalBatch(background, batch, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}))
		check(answer.Success, "the batch failed")
		equal(statuses(answer), []int32{201, 201, 200, 200, 200, 204})
		equal(decode(answer.OperationResults[3].ResourceBody)["n"], any(2.0))
		equal(decode(answer.OperationResults[4].ResourceBody)["n"], any(7.0))
	}},
	{"a failed batch leaves no trace", func(f *fixture) {
		must(f.items.CreateItem(background, key("rollback"), encode(object{"id": "old", "pk": "rollback"}), nil))
		batch := f.items.NewTransactionalBatch(key("rollback"))
		batch.CreateItem(encode(object{"id": "new", "pk": "rollback"}), nil)
		batch.CreateItem(encode(object{"id": "old", "pk": "rollback"}), nil)
		batch.DeleteItem("old", nil)
		answer := must(f.items.ExecuteTransactionalBatch(background, batch, nil))
		check(!answer.Success, "the batch succeeded")
		equal(statuses(answer), []int32{424, 409, 424})
		refused[item](404)(f.items.ReadItem(background, key("rollback"), "new", nil))
		must(f.items.ReadItem(background, key("rollback"), "old", nil))
	}},
	{"items expire as their container and they themselves say", func(f *fixture) {
		ttl := int32(1)
		properties := definition("expiring", "/pk")
		properties.DefaultTimeToLive = &ttl
		container := f.container(properties, nil)
		must(container.CreateItem(background, key("p"), encode(object{"id": "default", "pk": "p"}), nil))
		must(container.CreateItem(background, key("p"), encode(object{"id": "never", "pk": "p", "ttl": -1}), nil))
		time.Sleep(2200 * time.Millisecond)
		refused[item](404)(container.ReadItem(background, key("p"), "default", nil))
		must(container.ReadItem(background, key("p"), "never", nil))
		refused[item](400)(container.CreateItem(background, key("p"), encode(object{"id": "wrong", "pk": "p", "ttl": 0}), nil))
	}},
	{"unique keys hold within a partition key", func(f *fixture) {
		properties := definition("unique", "/pk")
		properties.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}}
		container := f.container(properties, nil)
		must(container.CreateItem(background, key("p"), encode(object{"id": "1", "pk": "p", "email": "a"}), nil))
		refused[item](409)(container.CreateItem(background, key("p"), encode(object{"id": "2", "pk": "p", "email": "a"}), nil))
		must(container.CreateItem(background, key("q"), encode(object{"id": "2", "pk": "q", "email": "a"}), nil))
	}},
	{"throughput is read and replaced", func(f *fixture) {
		manual := azcosmos.NewManualThroughputProperties(500)
		container := f.container(definition("offers", "/pk"), &manual)
		read := must(container.ReadThroughput(background, nil))
		units, isManual := read.ThroughputProperties.ManualThroughput()
		check(isManual && units == 500, "read %d", units)
		must(container.ReplaceThroughput(background, azcosmos.NewManualThroughputProperties(700), nil))
		units, _ = must(container.ReadThroughput(background, nil)).ThroughputProperties.ManualThroughput()
		equal(units, int32(700))
		automatic := azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(4000, 1)
		scaled := f.container(definition("autoscale", "/pk"), &automatic)
		most, _ := must(scaled.ReadThroughput(background, nil)).ThroughputProperties.AutoscaleMaxThroughput()
		equal(most, int32(4000))
		refused[azcosmos.ThroughputResponse](404)(f.database.ReadThroughput(background, nil))
	}},
	{"another client reads what a session token promises", func(f *fixture) {
		written := must(f.items.CreateItem(background, key("p"), encode(object{"id": "session", "pk": "p"}), nil))
		other := connect(os.Getenv("COSMOS_KEY"), azcosmos.ClientOptions{})
		container := must(other.NewContainer(f.database.ID(), "items"))
		session := azcosmos.ConsistencyLevelSession
		must(container.ReadItem(background, key("p"), "session", &azcosmos.ItemOptions{SessionToken: written.SessionToken, ConsistencyLevel: &session}))
		strong := azcosmos.ConsistencyLevelStrong
		refused[item](400)(container.ReadItem(background, key("p"), "session", &azcosmos.ItemOptions{ConsistencyLevel: &strong}))
	}},
	{"a wrong key opens nothing", func(f *fixture) {
		other := connect("d3Jvbmc=", azcosmos.ClientOptions{})
		refused[azcosmos.DatabaseResponse](401)(must(other.NewDatabase(f.database.ID())).Read(background, nil))
	}},
	{"changes can be read from a moment on", func(f *fixture) {
		container := f.container(definition("changes", "/pk"), nil)
		must(container.CreateItem(background, key("p"), encode(object{"id": "before", "pk": "p"}), nil))
		time.Sleep(2100 * time.Millisecond)
		moment := time.Now().Add(-time.Second)
		must(container.CreateItem(background, key("p"), encode(object{"id": "after", "pk": "p"}), nil))
		seen := []any{}
		whole := must(container.ReadFeedRanges(background, nil))[0]
		options := azcosmos.ChangeFeedOptions{StartFrom: &moment, FeedRange: &whole}
		for _, each := range must(container.ReadChangeFeed(background, &options)).Items {
			seen = append(seen, decode(each)["id"])
		}
		equal(fmt.Sprint(seen), "[after]")
	}},
}

func statuses(answer azcosmos.TransactionalBatchResponse) []int32 {
	var codes []int32
	for _, each := range answer.OperationResults {
		codes = append(codes, each.StatusCode)
	}
	return codes
}
