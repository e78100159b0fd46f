// People who know each other, with gremlin-go: see ../README.md.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

var (
	key = cmp.Or(os.Getenv("COSMOS_KEY"),
		"C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==")
	endpoint = strings.TrimRight(cmp.Or(os.Getenv("COSMOS_ENDPOINT"), "http://localhost:8081/"), "/")
	graphs   = cmp.Or(os.Getenv("GREMLIN_ENDPOINT"), "ws://localhost:8901/")
	database = cmp.Or(os.Getenv("COSMOS_DATABASE"), "social-"+rand.Text()[:8])
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// rest is a request of the NoSQL API, signed.
func rest(method, path, kind, link, body string) {
	date := time.Now().UTC().Format(http.TimeFormat)
	text := strings.Join([]string{strings.ToLower(method), kind, link, strings.ToLower(date), "", ""}, "\n")
	mac := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(key)))
	mac.Write([]byte(text))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	request := must(http.NewRequest(method, endpoint+path, strings.NewReader(body)))
	request.Header.Set("authorization", url.QueryEscape("type=master&ver=1.0&sig="+signature))
	request.Header.Set("x-ms-date", date)
	request.Header.Set("x-ms-version", "2018-12-31")
	request.Header.Set("content-type", "application/json")
	answer := must(http.DefaultClient.Do(request))
	answer.Body.Close()
	if answer.StatusCode >= 300 {
		log.Fatal(method, " ", path, ": ", answer.Status)
	}
}

type bindings = map[string]any

func main() {
	rest("POST", "/dbs", "dbs", "", `{"id":"`+database+`"}`)
	rest("POST", "/dbs/"+database+"/colls", "colls", "dbs/"+database,
		`{"id":"people","partitionKey":{"paths":["/town"],"kind":"Hash","version":2}}`)
	graph := must(gremlingo.NewClient(graphs, func(settings *gremlingo.ClientSettings) {
		settings.AuthInfo = gremlingo.BasicAuthInfo("/dbs/"+database+"/colls/people", key)
		settings.LogVerbosity = gremlingo.Error
	}))
	defer graph.Close()
	run := func(script string, bound ...bindings) []string {
		found := []string{}
		for _, result := range must(must(graph.Submit(script, bound...)).All()) {
			found = append(found, result.GetString())
		}
		return found
	}
	sorted := func(script string) string {
		found := run(script)
		slices.Sort(found)
		return strings.Join(found, ", ")
	}

	for _, one := range []bindings{
		{"name": "ann", "town": "oslo", "age": 30}, {"name": "bob", "town": "oslo", "age": 25},
		{"name": "cid", "town": "rome", "age": 28}, {"name": "dot", "town": "rome", "age": 29},
	} {
		run("g.addV('person').property('id', name).property('town', town).property('age', age)", one)
	}
	for _, pair := range [][2]string{{"ann", "bob"}, {"ann", "cid"}, {"bob", "cid"}, {"cid", "dot"}} {
		run("g.V(one).addE('knows').to(g.V(other))", bindings{"one": pair[0], "other": pair[1]})
	}
	fmt.Printf("%s people, %s edges\n", run("g.V().count()")[0], run("g.E().count()")[0])
	fmt.Println("ann lives in", run("g.V(['oslo', 'ann']).values('town')")[0])
	fmt.Println("ann knows:", sorted("g.V(['oslo', 'ann']).out('knows').id()"))
	fmt.Println("ann knows at two hops:", sorted("g.V(['oslo', 'ann']).out('knows').out('knows').dedup().id()"))
	fmt.Println("cid is known by:", sorted("g.V(['rome', 'cid']).in('knows').id()"))
	fmt.Println("older than 28, by age:", strings.Join(run("g.V().has('age', gt(28)).order().by('age').id()"), ", "))
	fmt.Println("bob is now", run("g.V(['oslo', 'bob']).property('age', 26).values('age')")[0])
	run("g.V(['rome', 'cid']).drop()")
	fmt.Printf("without cid: %s people, %s edges\n", run("g.V().count()")[0], run("g.E().count()")[0])
	rest("DELETE", "/dbs/"+database, "dbs", "dbs/"+database, "")
}
