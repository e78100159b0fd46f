// MongoDB's driver for Go, unmodified, against a running server.
//
//	COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] go run . [WORD]
//
// A shop: people, products, orders. Every case is named by the sentence it proves; WORD selects those whose name holds it. The
// last line is `N passed, N failed`, and so says the exit status.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// failure is what a check panics with; the runner turns it into a failed case.
type failure struct{ text string }

func check(holds bool, format string, arguments ...any) {
	if !holds {
		panic(failure{fmt.Sprintf(format, arguments...)})
	}
}

func equal(got, wanted any) {
	check(reflect.DeepEqual(got, wanted), "got %#v, wanted %#v", got, wanted)
}

// must passes the value on and fails the case on an error.
func must[T any](value T, err error) T {
	check(err == nil, "%v", err)
	return value
}

type order struct {
	ID       bson.ObjectID `bson:"_id,omitempty"`
	Customer string        `bson:"customer"`
	Lines    []line        `bson:"lines"`
	Placed   time.Time     `bson:"placed"`
	Total    int64         `bson:"total"`
}

type line struct {
	Product string `bson:"product"`
	Count   int32  `bson:"count"`
}

var background, cancelAll = context.WithTimeout(context.Background(), 4*time.Minute)

var cases = []struct {
	name string
	body func(*mongo.Database)
}{
	{"a struct comes back as it was", func(db *mongo.Database) {
		orders := db.Collection("orders")
		placed := time.Date(2024, 2, 29, 12, 0, 0, 123_000_000, time.UTC)
		given := order{Customer: "ada", Lines: []line{{"pen", 2}, {"ink", 1}}, Placed: placed, Total: 1 << 40}
		id := must(orders.InsertOne(background, given)).InsertedID.(bson.ObjectID)
		var found order
		check(orders.FindOne(background, bson.M{"_id": id}).Decode(&found) == nil, "not found")
		given.ID = id
		found.Placed = found.Placed.UTC()
		equal(found, given)
		equal(errors.Is(orders.FindOne(background, bson.M{"_id": bson.NewObjectID()}).Err(), mongo.ErrNoDocuments), true)
	}},
	{"a second document with an id is refused", func(db *mongo.Database) {
		people := db.Collection("people")
		must(people.InsertOne(background, bson.D{{"_id", "ada"}, {"age", 36}}))
		_, err := people.InsertOne(background, bson.D{{"_id", "ada"}})
		check(mongo.IsDuplicateKeyError(err), "got %v", err)
	}},
	{"many are inserted, counted, sorted and paged", func(db *mongo.Database) {
		numbers := db.Collection("numbers")
		var all []any
		for n := range 250 {
			all = append(all, bson.D{{"_id", n}, {"n", n}, {"even", n%2 == 0}})
		}
		must(numbers.InsertMany(background, all))
		equal(must(numbers.CountDocuments(background, bson.M{"even": true})), int64(125))
		sorted := options.Find().SetSort(bson.D{{"n", -1}}).SetSkip(10).SetLimit(3).SetProjection(bson.M{"n": 1, "_id": 0})
		var found []bson.M
		check(must(numbers.Find(background, bson.M{"n": bson.M{"$lt": 100}}, sorted)).All(background, &found) == nil, "all")
		equal(found, []bson.M{{"n": int32(89)}, {"n": int32(88)}, {"n": int32(87)}})
		cursor := must(numbers.Find(background, bson.M{}, options.Find().SetBatchSize(40)))
		count := 0
		for cursor.Next(background) {
			count++
		}
		equal(count, 250)
	}},
	{"updates change what they name", func(db *mongo.Database) {
		stock := db.Collection("stock")
		must(stock.InsertOne(background, bson.D{{"_id", "pen"}, {"count", 5}, {"tags", bson.A{"a"}}}))
		result := must(stock.UpdateOne(background, bson.M{"_id": "pen"},
			bson.M{"$inc": bson.M{"count": -2}, "$push": bson.M{"tags": bson.M{"$each": bson.A{"b", "c"}}}}))
		equal(result.ModifiedCount, int64(1))
		upserted := must(stock.UpdateOne(background, bson.M{"_id": "ink"}, bson.M{"$setOnInsert": bson.M{"count": 1}},
			options.UpdateOne().SetUpsert(true)))
		equal(upserted.UpsertedID, any("ink"))
		var found bson.M
		after := options.FindOneAndUpdate().SetReturnDocument(options.After)
		err := stock.FindOneAndUpdate(background, bson.M{"_id": "pen"}, bson.M{"$set": bson.M{"seen": true}}, after).Decode(&found)
		check(err == nil, "%v", err)
		equal(found, bson.M{"_id": "pen", "count": int32(3), "tags": bson.A{"a", "b", "c"}, "seen": true})
		equal(must(stock.DeleteMany(background, bson.M{})).DeletedCount, int64(2))
	}},
	{"a pipeline groups and joins", func(db *mongo.Database) {
		must(db.Collection("sales").InsertMany(background, []any{
			bson.M{"product": "pen", "count": 3}, bson.M{"product": "ink", "count": 1}, bson.M{"product": "pen", "count": 4}}))
		must(db.Collection("products").InsertMany(background, []any{
			bson.M{"_id": "pen", "price": 2.5}, bson.M{"_id": "ink", "price": 9.0}}))
		pipeline := bson.A{
			bson.M{"$group": bson.M{"_id": "$product", "count": bson.M{"$sum": "$count"}}},
			bson.M{"$lookup": bson.M{"from": "products", "localField": "_id", "foreignField": "_id", "as": "product"}},
			bson.M{"$unwind": "$product"},
			bson.M{"$project": bson.M{"worth": bson.M{"$multiply": bson.A{"$count", "$product.price"}}}},
			bson.M{"$sort": bson.M{"worth": -1}},
		}
		var found []bson.M
		check(must(db.Collection("sales").Aggregate(background, pipeline)).All(background, &found) == nil, "all")
		equal(found, []bson.M{{"_id": "pen", "worth": 17.5}, {"_id": "ink", "worth": 9.0}})
	}},
	{"indexes are made, listed, and keep values unique", func(db *mongo.Database) {
		users := db.Collection("users")
		model := mongo.IndexModel{Keys: bson.D{{"mail", 1}}, Options: options.Index().SetUnique(true)}
		equal(must(users.Indexes().CreateOne(background, model)), "mail_1")
		must(users.InsertOne(background, bson.M{"mail": "a@b"}))
		_, err := users.InsertOne(background, bson.M{"mail": "a@b"})
		check(mongo.IsDuplicateKeyError(err), "got %v", err)
		equal(len(must(users.Indexes().ListSpecifications(background))), 2)
	}},
	{"a bulk does what it can", func(db *mongo.Database) {
		bulk := db.Collection("bulk")
		models := []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}),
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}),
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 2}),
			mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 2}),
		}
		result, err := bulk.BulkWrite(background, models, options.BulkWrite().SetOrdered(false))
		check(mongo.IsDuplicateKeyError(err), "got %v", err)
		equal(result.InsertedCount, int64(2))
		equal(result.DeletedCount, int64(1))
	}},
	{"a transaction is all or nothing", func(db *mongo.Database) {
		accounts := db.Collection("accounts")
		must(accounts.InsertMany(background, []any{bson.M{"_id": "a", "n": 10}, bson.M{"_id": "b", "n": 0}}))
		session := must(db.Client().StartSession())
		defer session.EndSession(background)
		move := func(fail bool) error {
			_, err := session.WithTransaction(background, func(inside context.Context) (any, error) {
				must(accounts.UpdateOne(inside, bson.M{"_id": "a"}, bson.M{"$inc": bson.M{"n": -4}}))
				must(accounts.UpdateOne(inside, bson.M{"_id": "b"}, bson.M{"$inc": bson.M{"n": 4}}))
				if fail {
					return nil, errors.New("changed my mind")
				}
				return nil, nil
			})
			return err
		}
		check(move(true) != nil, "no error")
		check(move(false) == nil, "not committed")
		var found []bson.M
		sorted := options.Find().SetSort(bson.M{"_id": 1})
		check(must(accounts.Find(background, bson.M{}, sorted)).All(background, &found) == nil, "all")
		equal(found, []bson.M{{"_id": "a", "n": int32(6)}, {"_id": "b", "n": int32(4)}})
	}},
	{"a change stream tells of changes", func(db *mongo.Database) {
		watched := db.Collection("watched")
		must(watched.InsertOne(background, bson.M{"_id": 0}))
		stream := must(watched.Watch(background, mongo.Pipeline{}))
		defer stream.Close(background)
		must(watched.InsertOne(background, bson.M{"_id": 1}))
		must(watched.UpdateOne(background, bson.M{"_id": 1}, bson.M{"$set": bson.M{"a": 1}}))
		limited, cancel := context.WithTimeout(background, 20*time.Second)
		defer cancel()
		check(stream.Next(limited), "nothing came: %v", stream.Err())
		equal(stream.Current.Lookup("operationType").StringValue(), "insert")
		check(stream.Next(limited), "nothing more came: %v", stream.Err())
		equal(stream.Current.Lookup("documentKey", "_id").AsInt64(), int64(1))
	}},
	{"a wrong password is refused", func(db *mongo.Database) {
		client := connect("wrong")
		err := client.Ping(background, nil)
		check(err != nil && strings.Contains(err.Error(), "uthentication"), "got %v", err)
	}},
}

// connect opens the shared port of the server, with TLS where there is a certificate.
func connect(key string) *mongo.Client {
	endpoint := must(url.Parse(os.Getenv("COSMOS_ENDPOINT")))
	address := fmt.Sprintf("mongodb://orrery:%s@%s/?replicaSet=globaldb&retryWrites=true", url.QueryEscape(key), endpoint.Host)
	if file := os.Getenv("COSMOS_CA_FILE"); file != "" {
		address += "&tls=true&tlsCAFile=" + url.QueryEscape(file)
	}
	return must(mongo.Connect(options.Client().ApplyURI(address).SetServerSelectionTimeout(10 * time.Second)))
}

func run(name string, body func(*mongo.Database), database *mongo.Database) (passed bool) {
	defer func() {
		if problem := recover(); problem != nil {
			text := fmt.Sprint(problem)
			if problem, is := problem.(failure); is {
				text = problem.text
			}
			fmt.Printf("FAILED %s: %s\n", name, text)
		}
	}()
	body(database)
	return true
}

func main() {
	defer cancelAll()
	suffix := make([]byte, 4)
	must(rand.Read(suffix))
	client := connect(os.Getenv("COSMOS_KEY"))
	database := client.Database("go" + hex.EncodeToString(suffix))
	passed, failed := 0, 0
	for _, one := range cases {
		if len(os.Args) > 1 && !strings.Contains(one.name, os.Args[1]) {
			continue
		}
		if run(one.name, one.body, database) {
			passed++
		} else {
			failed++
		}
	}
	if err := database.Drop(background); err != nil {
		fmt.Println("FAILED to drop the database:", err)
		failed++
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
