// Device readings with the Go SDK: writing, reading by key, and queries over two physical partitions.
//
// This SDK has no query engine: sorting and adding up over several partitions needs a server that was started with
// `--cross-partition-queries server`.
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
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	devices       = 20
	readingsEach  = 5
	wellKnownKey  = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
	localEndpoint = "http://127.0.0.1:8081"
)

type reading struct {
	ID          string `json:"id"`
	DeviceID    string `json:"deviceId"`
	MetricType  string `json:"metricType"`
	MetricValue int    `json:"metricValue"`
}

var background = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	endpoint := cmp.Or(os.Getenv("COSMOS_ENDPOINT"), localEndpoint)
	credential := must(azcosmos.NewKeyCredential(cmp.Or(os.Getenv("COSMOS_KEY"), wellKnownKey)))
	options := azcosmos.ClientOptions{EnableContentResponseOnWrite: true}
	client := must(azcosmos.NewClientWithKey(endpoint, credential, &options))
	id := "readings-" + rand.Text()
	must(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))
	database := must(client.NewDatabase(id))
	defer database.Delete(background, nil)

	// 20,000 RU/s are more than one physical partition serves, so there are two.
	throughput := azcosmos.NewManualThroughputProperties(20000)
	must(database.CreateContainer(background, azcosmos.ContainerProperties{
		ID:                     "readings",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/deviceId"}, Version: 2},
	}, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}))
	container := must(client.NewContainer(id, "readings"))
	fmt.Println("partitions:", len(must(container.ReadFeedRanges(background, nil))))

	for device := range devices {
		for n := range readingsEach {
			kind := "Temperature"
			if n%2 == 1 {
				kind = "Humidity"
			}
			each := reading{fmt.Sprintf("%d-%d", device, n), fmt.Sprintf("device-%d", device), kind, device*10 + n}
			key := azcosmos.NewPartitionKeyString(each.DeviceID)
			must(container.CreateItem(background, key, must(json.Marshal(each)), nil))
		}
	}

	// A key and an id lead straight to the item.
	key := azcosmos.NewPartitionKeyString("device-3")
	var one reading
	decode(must(container.ReadItem(background, key, "3-2", nil)).Value, &one)
	fmt.Println("read:", one.MetricValue)
	one.MetricValue = 99
	decode(must(container.ReplaceItem(background, key, "3-2", must(json.Marshal(one)), nil)).Value, &one)
	fmt.Println("replaced:", one.MetricValue)
	must(container.DeleteItem(background, key, "3-2", nil))
	var answer *azcore.ResponseError
	if _, err := container.ReadItem(background, key, "3-2", nil); errors.As(err, &answer) && answer.StatusCode == 404 {
		fmt.Println("deleted")
	}

	// One partition key: one partition answers.
	device := azcosmos.NewPartitionKeyString("device-7")
	values := query[int](container, device, "SELECT VALUE c.metricValue FROM c ORDER BY c.metricValue")
	fmt.Println("device-7:", strings.ReplaceAll(fmt.Sprint(values), " ", ", "))

	// No partition key: all partitions, merged by the server.
	all := azcosmos.NewPartitionKey()
	hot := query[reading](container, all, `SELECT c.deviceId, c.metricValue FROM c
		WHERE c.metricType = "Temperature" AND c.metricValue > 100 ORDER BY c.metricValue DESC`)
	fmt.Println("hot:", len(hot), "hottest:", hot[0].DeviceID, hot[0].MetricValue)

	for _, aggregate := range []string{
		"COUNT(1)", "MIN(c.metricValue)", "MAX(c.metricValue)", "SUM(c.metricValue)", "AVG(c.metricValue)",
	} {
		name, _, _ := strings.Cut(aggregate, "(")
		fmt.Printf("%s: %.2f\n", name, query[float64](container, all, "SELECT VALUE "+aggregate+" FROM c")[0])
	}
	fmt.Println("done")
}

func query[T any](container *azcosmos.ContainerClient, key azcosmos.PartitionKey, text string) []T {
	var rows []T
	for pager := container.NewQueryItemsPager(text, key, nil); pager.More(); {
		for _, item := range must(pager.NextPage(background)).Items {
			var row T
			decode(item, &row)
			rows = append(rows, row)
		}
	}
	return rows
}

func decode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		log.Fatal(err)
	}
}
