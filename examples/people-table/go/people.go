// People in a table with the Go SDK: last name and first name are the keys.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const local = "DefaultEndpointsProtocol=http;AccountName=orrery;" +
	"AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==;" +
	"TableEndpoint=http://localhost:8902/orrery;"

type person struct {
	ETag         string `json:"odata.etag,omitempty"`
	PartitionKey string
	RowKey       string
	Age          int    `json:",omitempty"`
	PhoneNumber  string `json:",omitempty"`
	Email        string `json:",omitempty"`
}

var people = []person{
	{PartitionKey: "Smith", RowKey: "Jeff", Age: 47, PhoneNumber: "425-555-0104"},
	{PartitionKey: "Smith", RowKey: "Ben", Age: 31, PhoneNumber: "425-555-0101"},
	{PartitionKey: "Smith", RowKey: "Anna", Age: 28, PhoneNumber: "425-555-0102"},
	{PartitionKey: "Harp", RowKey: "Walter", Age: 52, PhoneNumber: "425-555-0103"},
	{PartitionKey: "Jones", RowKey: "Alice", Age: 35, PhoneNumber: "425-555-0105"},
}

var background = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func encode(one person) []byte { return must(json.Marshal(one)) }

// status is that of a refusal.
func status(err error) int {
	var refusal *azcore.ResponseError
	if errors.As(err, &refusal) {
		return refusal.StatusCode
	}
	log.Fatal("not refused: ", err)
	return 0
}

func main() {
	service := must(aztables.NewServiceClientFromConnectionString(
		cmp.Or(os.Getenv("TABLES_COSMOS_CONNECTION_STRING"), local), nil))
	table := service.NewClient("people" + rand.Text())
	must(table.CreateTable(background, nil))
	defer table.Delete(background, nil)

	for _, one := range people {
		must(table.AddEntity(background, encode(one), nil))
	}
	fmt.Println("inserted:", len(people))

	// Both keys lead straight to the entity.
	ben := read(table, "Smith", "Ben")
	fmt.Println("read:", ben.RowKey, ben.PartitionKey, ben.PhoneNumber)
	change := person{PartitionKey: "Smith", RowKey: "Ben", PhoneNumber: "425-555-0199", Email: "ben@contoso.example"}
	must(table.UpdateEntity(background, encode(change), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}))
	merged := read(table, "Smith", "Ben")
	fmt.Println("merged:", merged.RowKey, merged.PartitionKey, merged.PhoneNumber, merged.Email)

	// What was read before the merge is no longer what is there.
	etag := azcore.ETag(ben.ETag)
	ben.ETag = ""
	_, err := table.UpdateEntity(background, encode(ben), &aztables.UpdateEntityOptions{
		IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace,
	})
	fmt.Println("changed meanwhile:", status(err))

	// The filter fixes the partition: one partition answers, in the order of first names.
	fmt.Println("Smith:", names(find(table, "PartitionKey eq 'Smith'")))
	fmt.Println("Smith, by first name from B on:", names(find(table, "PartitionKey eq 'Smith' and RowKey ge 'B'")))

	// Over all of them, by an index.
	var older []string
	for _, one := range find(table, "Age gt 40") {
		older = append(older, fmt.Sprint(one.PartitionKey, " ", one.RowKey, " ", one.Age))
	}
	fmt.Println("older than 40:", strings.Join(older, ", "))

	together := []aztables.TransactionAction{
		create("Bob", 22, "425-555-0106"),
		create("Carol", 23, "425-555-0107"),
		{ActionType: aztables.TransactionTypeInsertReplace, Entity: encode(
			person{PartitionKey: "Jones", RowKey: "Alice", Age: 36, PhoneNumber: "425-555-0105"})},
	}
	must(table.SubmitTransaction(background, together, nil))
	fmt.Println("together:", len(together))
	_, err = table.SubmitTransaction(background, []aztables.TransactionAction{
		create("Dave", 24, "425-555-0108"), create("Bob", 99, "425-555-0109"),
	}, nil)
	if err != nil {
		fmt.Println("a batch that fails: refused")
	}
	fmt.Println("of Jones:", names(find(table, "PartitionKey eq 'Jones'")))

	must(table.DeleteEntity(background, "Harp", "Walter", nil))
	_, err = table.GetEntity(background, "Harp", "Walter", nil)
	fmt.Println("deleted:", status(err))
	fmt.Println("done")
}

func read(table *aztables.Client, last, first string) person {
	format := aztables.MetadataFormatMinimal
	answer := must(table.GetEntity(background, last, first, &aztables.GetEntityOptions{Format: &format}))
	var one person
	decode(answer.Value, &one)
	return one
}

func find(table *aztables.Client, filter string) []person {
	var found []person
	for pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}); pager.More(); {
		for _, entity := range must(pager.NextPage(background)).Entities {
			var one person
			decode(entity, &one)
			found = append(found, one)
		}
	}
	return found
}

func create(first string, age int, phone string) aztables.TransactionAction {
	one := person{PartitionKey: "Jones", RowKey: first, Age: age, PhoneNumber: phone}
	return aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: encode(one)}
}

func names(people []person) string {
	var first []string
	for _, one := range people {
		first = append(first, one.RowKey)
	}
	return strings.Join(first, ", ")
}

func decode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		log.Fatal(err)
	}
}
