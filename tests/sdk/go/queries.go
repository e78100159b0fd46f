package main

// Queries over three physical partitions. This SDK has no query engine of its own: a server that leaves merging to its
// clients refuses what would have to be merged, and a server that was told to merge (`--cross-partition-queries server`,
// at COSMOS_MERGING_ENDPOINT) answers it.
//
// Sixty readings: score is a permutation of 0..59, so every order is known; v turns with n, so every distance is.

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const readingCount = 60

var texts = []string{"swim in the lake", "run up the hill", "walk home slowly", "walk home slowly"}

// made holds the container of each endpoint; all cases share it.
var made = map[string]*azcosmos.ContainerClient{}

func readings(endpoint string) *azcosmos.ContainerClient {
	if container, found := made[endpoint]; found {
		return container
	}
	client := connectTo(endpoint, os.Getenv("COSMOS_KEY"), azcosmos.ClientOptions{})
	database := name("go-queries")
	must(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: database}, nil))
	properties := definition("readings", "/pk")
	properties.IndexingPolicy = &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  azcosmos.IndexingModeConsistent,
		IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/v/*"}},
		CompositeIndexes: [][]azcosmos.CompositeIndex{{
			{Path: "/kind", Order: azcosmos.CompositeIndexAscending},
			{Path: "/score", Order: azcosmos.CompositeIndexDescending},
		}},
		VectorIndexes:   []azcosmos.VectorIndex{{Path: "/v", Type: azcosmos.VectorIndexTypeFlat}},
		FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
	}
	properties.VectorEmbeddingPolicy = &azcosmos.VectorEmbeddingPolicy{VectorEmbeddings: []azcosmos.VectorEmbedding{{
		Path: "/v", DataType: azcosmos.VectorDataTypeFloat32, Dimensions: 2,
		DistanceFunction: azcosmos.VectorDistanceFunctionCosine,
	}}}
	properties.FullTextPolicy = &azcosmos.FullTextPolicy{
		DefaultLanguage: "en-US", FullTextPaths: []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}},
	}
	throughput := azcosmos.NewManualThroughputProperties(30000)
	owner := must(client.NewDatabase(database))
	must(owner.CreateContainer(background, properties, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}))
	container := must(client.NewContainer(database, "readings"))
	equal(len(must(container.ReadFeedRanges(background, nil))), 3)
	for n := range readingCount {
		pk := fmt.Sprintf("k%d", n%20)
		must(container.CreateItem(background, key(pk), encode(object{
			"id": fmt.Sprintf("i%d", n), "pk": pk, "n": n, "kind": string("abc"[n%3]), "score": n * 37 % readingCount,
			"v": []int{n, 1}, "text": texts[n%4],
		}), nil))
	}
	made[endpoint] = container
	return container
}

// rows reads a query to its end, a few rows at a time.
func rows(endpoint, query string, parameters ...azcosmos.QueryParameter) []any {
	options := azcosmos.QueryOptions{PageSizeHint: 7, QueryParameters: parameters}
	pager := readings(endpoint).NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &options)
	var all []any
	for pager.More() {
		for _, text := range must(pager.NextPage(background)).Items {
			var row any
			check(json.Unmarshal(text, &row) == nil, "not JSON: %q", text)
			all = append(all, row)
		}
	}
	return all
}

func numbers(from, count int) []any {
	var all []any
	for n := range count {
		all = append(all, float64(from+n))
	}
	return all
}

func plainServer() string   { return os.Getenv("COSMOS_ENDPOINT") }
func mergingServer() string { return os.Getenv("COSMOS_MERGING_ENDPOINT") }

// member is one property of every row.
func member(rows []any, name string) []any {
	var all []any
	for _, row := range rows {
		all = append(all, row.(object)[name])
	}
	return all
}

var queryCases = []namedCase{
	{"filters run over all partitions, and sorting is left to clients that can", func(*fixture) {
		found := rows(plainServer(), "SELECT VALUE c.n FROM c WHERE c.n < @high", azcosmos.QueryParameter{Name: "@high", Value: 20})
		sort.Slice(found, func(a, b int) bool { return found[a].(float64) < found[b].(float64) })
		equal(found, numbers(0, 20))
		query := "SELECT * FROM c ORDER BY c.score"
		pager := readings(plainServer()).NewQueryItemsPager(query, azcosmos.NewPartitionKey(), nil)
		refused[azcosmos.QueryItemsResponse](400)(pager.NextPage(background))
	}},
	{"pages end where partitions end, and are followed to the last row", func(*fixture) {
		query := "SELECT VALUE c.n FROM c"
		pager := readings(plainServer()).NewQueryItemsPager(query, azcosmos.NewPartitionKey(), nil)
		pages, seen := 0, map[string]bool{}
		for pager.More() {
			pages++
			for _, row := range must(pager.NextPage(background)).Items {
				seen[string(row)] = true
			}
		}
		check(pages > 1, "%d pages", pages)
		equal(len(seen), readingCount)
	}},
	{"one partition answers every query", func(*fixture) {
		query := "SELECT VALUE c.n FROM c ORDER BY c.n DESC"
		pager := readings(plainServer()).NewQueryItemsPager(query, key("k7"), nil)
		page := must(pager.NextPage(background))
		equal(fmt.Sprintf("%s", page.Items), "[47 27 7]")
		equal(rows(plainServer(), "SELECT VALUE c.n FROM c WHERE c.pk = 'k7' ORDER BY c.n"), []any{7.0, 27.0, 47.0})
	}},
	{"ORDER BY, TOP and OFFSET LIMIT are merged by the server", func(*fixture) {
		equal(rows(mergingServer(), "SELECT VALUE c.score FROM c ORDER BY c.score"), numbers(0, readingCount))
		equal(rows(mergingServer(), "SELECT TOP 5 VALUE c.score FROM c ORDER BY c.score"), numbers(0, 5))
		equal(rows(mergingServer(), "SELECT VALUE c.score FROM c ORDER BY c.score OFFSET 10 LIMIT 17"), numbers(10, 17))
		equal(len(rows(mergingServer(), "SELECT TOP 9 * FROM c")), 9)
		both := rows(mergingServer(), "SELECT c.kind, c.score FROM c ORDER BY c.kind ASC, c.score DESC")
		equal(both[0], any(object{"kind": "a", "score": 57.0}))
		equal(both[readingCount-1], any(object{"kind": "c", "score": 2.0}))
	}},
	{"DISTINCT, GROUP BY and aggregates are merged by the server", func(*fixture) {
		equal(rows(mergingServer(), "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC"), []any{"c", "b", "a"})
		equal(len(rows(mergingServer(), "SELECT DISTINCT c.kind FROM c")), 3)
		groups := rows(mergingServer(), "SELECT c.kind, COUNT(1) AS count, SUM(c.n) AS total FROM c GROUP BY c.kind")
		totals := object{}
		for _, group := range groups {
			equal(group.(object)["count"], any(20.0))
			totals[group.(object)["kind"].(string)] = group.(object)["total"]
		}
		equal(totals, object{"a": 570.0, "b": 590.0, "c": 610.0})
		for aggregate, wanted := range map[string]float64{
			"COUNT(1)": 60, "SUM(c.n)": 1770, "MIN(c.n)": 0, "MAX(c.n)": 59, "AVG(c.n)": 29.5,
		} {
			equal(rows(mergingServer(), "SELECT VALUE "+aggregate+" FROM c"), []any{wanted})
		}
	}},
	{"vectors and full text are ranked by the server", func(*fixture) {
		nearest := rows(mergingServer(), "SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, [1, 0])")
		equal(member(nearest, "id"), []any{"i59", "i58", "i57"})
		both := "SELECT TOP 4 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'lake'), VectorDistance(c.v, [1, 0]))"
		equal(member(rows(mergingServer(), both), "id"), []any{"i59", "i58", "i56", "i57"})
	}},
	{"a continuation goes on in another pager, for its own query only", func(*fixture) {
		query := "SELECT VALUE c.score FROM c ORDER BY c.score"
		container := readings(mergingServer())
		options := azcosmos.QueryOptions{PageSizeHint: 13, ResponseContinuationTokenLimitInKB: 1}
		seen := 0
		for {
			page := must(container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &options).NextPage(background))
			for _, row := range page.Items {
				equal(string(row), fmt.Sprint(seen))
				seen++
			}
			if page.ContinuationToken == nil {
				break
			}
			options.ContinuationToken = page.ContinuationToken
			other := container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), &options)
			refused[azcosmos.QueryItemsResponse](400)(other.NextPage(background))
		}
		equal(seen, readingCount)
	}},
}
