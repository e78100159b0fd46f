// The official Table SDK for Go (aztables), unmodified, against a running server.
//
//	COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] go run . [WORD]
//
// Every case is named by the sentence it proves; WORD selects those whose name holds it. Each runs twice: addressed to
// 127.0.0.1 the server speaks the dialect of storage, to localhost that of Cosmos DB.
// The last line is `N passed, N failed`, and so says the exit status.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

type object = map[string]any

// failure is what a check panics with; the runner turns it into a failed case.
type failure struct{ text string }

var background = context.Background()

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

// refused fails the case unless the error has this status.
func refused(status int, err error) {
	var response *azcore.ResponseError
	check(errors.As(err, &response), "expected %d, got %v", status, err)
	equal(response.StatusCode, status)
}

func bytesOf(entity object) []byte { return must(json.Marshal(entity)) }

func entity(partition, row string, more object) []byte {
	all := object{"PartitionKey": partition, "RowKey": row}
	for name, value := range more {
		all[name] = value
	}
	return bytesOf(all)
}

func read(table *aztables.Client, partition, row string) object {
	found := object{}
	check(json.Unmarshal(must(table.GetEntity(background, partition, row, nil)).Value, &found) == nil, "no JSON")
	return found
}

var cases = []struct {
	name string
	body func(*aztables.Client)
}{
	{"an entity is added once", func(table *aztables.Client) {
		long := object{"n": 5, "large": "1152921504606846976", "large@odata.type": "Edm.Int64", "text": "it's ü"}
		must(table.AddEntity(background, entity("add", "1", long), nil))
		found := read(table, "add", "1")
		equal(found["n"], 5.0)
		equal(found["large"], "1152921504606846976")
		equal(found["text"], "it's ü")
		_, err := table.AddEntity(background, entity("add", "1", nil), nil)
		refused(409, err)
	}},
	{"an entity is changed only in the version that was read", func(table *aztables.Client) {
		must(table.AddEntity(background, entity("etag", "1", object{"n": 1}), nil))
		before := must(table.GetEntity(background, "etag", "1", nil)).ETag
		replace := aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		must(table.UpdateEntity(background, entity("etag", "1", object{"n": 2}), &replace))
		replace.IfMatch = &before
		_, err := table.UpdateEntity(background, entity("etag", "1", object{"n": 3}), &replace)
		refused(412, err)
		_, err = table.DeleteEntity(background, "etag", "1", &aztables.DeleteEntityOptions{IfMatch: &before})
		refused(412, err)
		equal(read(table, "etag", "1")["n"], 2.0)
	}},
	{"a merge keeps what it does not name", func(table *aztables.Client) {
		merge := aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		must(table.UpsertEntity(background, entity("merge", "1", object{"a": 1, "b": 1}), &merge))
		must(table.UpsertEntity(background, entity("merge", "1", object{"b": 2}), &merge))
		found := read(table, "merge", "1")
		equal([]any{found["a"], found["b"]}, []any{1.0, 2.0})
	}},
	{"queries find and page", func(table *aztables.Client) {
		var adds []aztables.TransactionAction
		for n := range 100 {
			added := entity("query", fmt.Sprintf("%03d", n), object{"n": n})
			adds = append(adds, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: added})
		}
		must(table.SubmitTransaction(background, adds, nil))
		filter, top := "PartitionKey eq 'query' and n ge 40", int32(25)
		pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter, Top: &top})
		var sizes []int
		next := 40
		for pager.More() {
			page := must(pager.NextPage(background))
			sizes = append(sizes, len(page.Entities))
			for _, each := range page.Entities {
				found := object{}
				check(json.Unmarshal(each, &found) == nil, "no JSON")
				equal(found["n"], float64(next))
				next++
			}
		}
		equal(sizes, []int{25, 25, 10})
	}},
	{"a transaction is all or nothing", func(table *aztables.Client) {
		must(table.AddEntity(background, entity("batch", "1", nil), nil))
		_, err := table.SubmitTransaction(background, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeInsertMerge, Entity: entity("batch", "2", nil)},
			{ActionType: aztables.TransactionTypeAdd, Entity: entity("batch", "1", nil)},
		}, nil)
		check(err != nil && strings.Contains(err.Error(), "EntityAlreadyExists"), "got %v", err)
		_, err = table.GetEntity(background, "batch", "2", nil)
		refused(404, err)
	}},
	{"keys may hold what addresses may not", func(table *aztables.Client) {
		for _, key := range []string{"O'Brien", "a b", "100%", "a+b=c&d", "ü💡", "(x)"} {
			must(table.UpsertEntity(background, entity(key, key, nil), nil))
			equal(read(table, key, key)["RowKey"], key)
		}
	}},
}

// connect gives a client for the account, under one of the server's names.
func connect(host string) *aztables.ServiceClient {
	endpoint := strings.Replace(strings.TrimRight(os.Getenv("COSMOS_ENDPOINT"), "/"), "127.0.0.1", host, 1)
	account := os.Getenv("COSMOS_ACCOUNT")
	if account == "" {
		account = "orrery"
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if file := os.Getenv("COSMOS_CA_FILE"); file != "" {
		pool := x509.NewCertPool()
		check(pool.AppendCertsFromPEM(must(os.ReadFile(file))), "no certificate in %s", file)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	credential := must(aztables.NewSharedKeyCredential(account, os.Getenv("COSMOS_KEY")))
	options := aztables.ClientOptions{}
	options.Transport = &http.Client{Transport: transport}
	return must(aztables.NewServiceClientWithSharedKey(endpoint+"/"+account, credential, &options))
}

// passes runs one case and says what went wrong.
func passes(body func(*aztables.Client), table *aztables.Client) (problem string) {
	defer func() {
		if caught := recover(); caught != nil {
			problem = fmt.Sprint(caught)
		}
	}()
	body(table)
	return ""
}

func main() {
	passed, failed := 0, 0
	for _, host := range []string{"127.0.0.1", "localhost"} {
		random := make([]byte, 8)
		must(rand.Read(random))
		service := connect(host)
		name := "go" + hex.EncodeToString(random)
		must(service.CreateTable(background, name, nil))
		table := service.NewClient(name)
		for _, each := range cases {
			if len(os.Args) > 1 && !strings.Contains(each.name, os.Args[1]) {
				continue
			}
			if problem := passes(each.body, table); problem != "" {
				failed++
				fmt.Printf("FAIL %s (%s)\n%s\n", each.name, host, problem)
			} else {
				passed++
				fmt.Printf("ok   %s (%s)\n", each.name, host)
			}
		}
		must(service.DeleteTable(background, name, nil))
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
