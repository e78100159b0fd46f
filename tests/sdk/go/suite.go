// The official Go SDK (azcosmos), unmodified, against a running server.
//
//	COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_MERGING_ENDPOINT=http://127.0.0.1:8082 COSMOS_KEY=... \
//	    [COSMOS_CA_FILE=cert.pem] go run . [WORD]
//
// This file connects, runs the cases of cases.go and queries.go and counts. With COSMOS_CA_FILE the certificate is verified
// against that file alone. The last line is `N passed, N failed`, and so says the exit status.
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
	"runtime/debug"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// object is an item as the cases write it.
type object = map[string]any

// fixture is what every case may use: a client, a database of this run and a container with the key /pk.
type fixture struct {
	client   *azcosmos.Client
	database *azcosmos.DatabaseClient
	items    *azcosmos.ContainerClient
}

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

// refused fails the case unless the error is an answer with this status.
func refused[T any](status int) func(T, error) {
	return func(_ T, err error) {
		var answer *azcore.ResponseError
		check(errors.As(err, &answer), "expected %d, got %v", status, err)
		check(answer.StatusCode == status, "expected %d, got %v", status, err)
	}
}

func name(prefix string) string {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		panic(err)
	}
	return prefix + "-" + hex.EncodeToString(random[:])
}

func encode(item object) []byte { return must(json.Marshal(item)) }

func decode(text []byte) object {
	var item object
	check(json.Unmarshal(text, &item) == nil, "not a JSON object: %q", text)
	return item
}

// plain leaves out the properties that the server adds.
func plain(item object) object {
	kept := object{}
	for name, value := range item {
		if !strings.HasPrefix(name, "_") {
			kept[name] = value
		}
	}
	return kept
}

func connect(key string, options azcosmos.ClientOptions) *azcosmos.Client {
	return connectTo(os.Getenv("COSMOS_ENDPOINT"), key, options)
}

func connectTo(endpoint, key string, options azcosmos.ClientOptions) *azcosmos.Client {
	if file := os.Getenv("COSMOS_CA_FILE"); file != "" {
		roots := x509.NewCertPool()
		check(roots.AppendCertsFromPEM(must(os.ReadFile(file))), "%s holds no certificate", file)
		options.Transport = &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		}}
	}
	credential := must(azcosmos.NewKeyCredential(key))
	return must(azcosmos.NewClientWithKey(endpoint, credential, &options))
}

func (f *fixture) container(properties azcosmos.ContainerProperties, throughput *azcosmos.ThroughputProperties) *azcosmos.ContainerClient {
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: throughput}
	must(f.database.CreateContainer(background, properties, options))
	return must(f.database.NewContainer(properties.ID))
}

func definition(id string, paths ...string) azcosmos.ContainerProperties {
	return azcosmos.ContainerProperties{
		ID:                     id,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2},
	}
}

func run(body func(*fixture), f *fixture) (problem string) {
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case failure:
			problem = caught.text + "\n" + string(debug.Stack())
		default:
			problem = fmt.Sprint(caught) + "\n" + string(debug.Stack())
		}
	}()
	body(f)
	return ""
}

func main() {
	f := &fixture{client: connect(os.Getenv("COSMOS_KEY"), azcosmos.ClientOptions{EnableContentResponseOnWrite: true})}
	id := name("go")
	must(f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: id}, nil))
	f.database = must(f.client.NewDatabase(id))
	f.items = f.container(definition("items", "/pk"), nil)

	passed, failed := 0, 0
	for _, each := range append(cases, queryCases...) {
		if len(os.Args) > 1 && !strings.Contains(each.name, os.Args[1]) {
			continue
		}
		started := time.Now()
		if problem := run(each.body, f); problem != "" {
			failed++
			fmt.Printf("FAIL %s\n%s\n", each.name, problem)
		} else {
			passed++
			fmt.Printf("ok   %s (%.2f s)\n", each.name, time.Since(started).Seconds())
		}
	}
	must(f.database.Delete(background, nil))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
