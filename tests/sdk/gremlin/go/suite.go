// gremlin-go, unmodified, against a running server: scripts and its own traversals, in GraphBinary, which is all it speaks.
//
//	COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [COSMOS_CA_FILE=cert.pem] ./suite [WORD]
//
// Every member of `cases` is one test, named by the sentence it proves. The last line is `N passed, N failed`.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"

	gremlingo "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

var (
	database = "gremlin" + rand.Text()[:8]
	socket   = strings.Replace(endpoint, "http", "ws", 1) + "/gremlin"
	P, T, __ = gremlingo.P, gremlingo.T, gremlingo.T__
)

var cases = []struct {
	name string
	run  func(graph string)
}{
	{"scripts write and read", scripts},
	{"many results come in frames", frames},
	{"errors say what is wrong", errors},
	{"its own traversals walk the graph", traversals},
}

func credentials(graph string) gremlingo.AuthInfoProvider {
	return gremlingo.BasicAuthInfo("/dbs/"+database+"/colls/"+graph, key)
}

func connect(graph string) *gremlingo.Client {
	return must(gremlingo.NewClient(socket, func(settings *gremlingo.ClientSettings) {
		settings.AuthInfo = credentials(graph)
		settings.TlsConfig = trusted
		settings.LogVerbosity = gremlingo.Off
	}))
}

func run(client *gremlingo.Client, script string, bindings ...map[string]any) []any {
	found := []any{}
	for _, result := range must(must(client.Submit(script, bindings...)).All()) {
		found = append(found, result.GetInterface())
	}
	return found
}

func scripts(graph string) {
	client := connect(graph)
	defer client.Close()
	run(client, "g.addV('person').property('id','ann').property('pk','a').property('age',age)", map[string]any{"age": 30})
	run(client, "g.addV('person').property('id','bob').property('pk','b').property('age',25)")
	run(client, "g.V(['a','ann']).addE('knows').to(g.V(['b','bob'])).property('since',2001)")
	same([]any{"bob"}, run(client, "g.V('ann').out('knows').id()"))
	same([]any{"ann"}, run(client, "g.V().has('age', gt(x)).id()", map[string]any{"x": 26}))
	same([]any{int64(2)}, run(client, "g.V().count()"))
}

func frames(graph string) {
	client := connect(graph)
	defer client.Close()
	numbers := make([]string, 500)
	for i := range numbers {
		numbers[i] = fmt.Sprint(i)
	}
	same(500, len(run(client, "g.inject("+strings.Join(numbers, ",")+")")))
}

func errors(graph string) {
	client := connect(graph)
	defer client.Close()
	for script, word := range map[string]string{"g.V().noSuchStep()": "GraphCompileException", "g.addV('p')": "partition key"} {
		_, err := must(client.Submit(script)).All()
		if err == nil || !strings.Contains(err.Error(), word) {
			panic(fmt.Sprint(script, ": ", err))
		}
	}
}

func traversals(graph string) {
	remote := must(gremlingo.NewDriverRemoteConnection(socket, func(settings *gremlingo.DriverRemoteConnectionSettings) {
		settings.AuthInfo = credentials(graph)
		settings.TlsConfig = trusted
		settings.LogVerbosity = gremlingo.Off
	}))
	defer remote.Close()
	g := gremlingo.Traversal_().WithRemote(remote)
	done(g.AddV("person").Property(T.Id, "ann").Property("pk", "a").Property("age", 30).Iterate())
	done(g.AddV("person").Property(T.Id, "bob").Property("pk", "b").Property("age", 25).Iterate())
	done(g.V("ann").AddE("knows").To(__.V("bob")).Property("since", 2001).Iterate())
	same("2", must(g.V().Count().Next()).GetString())
	same("ann", must(g.V().Has("age", P.Gt(26)).Id().Next()).GetString())
	same("bob", must(g.V("ann").Out("knows").Id().Next()).GetString())
	bob := must(must(g.V("bob").Next()).GetVertex())
	same([]any{"bob", "person"}, []any{bob.Id, bob.Label})
}

func done(end <-chan error) {
	if err := <-end; err != nil {
		panic(err)
	}
}

func same(expected, found any) {
	if !reflect.DeepEqual(expected, found) {
		panic(fmt.Sprintf("expected %v, found %v", expected, found))
	}
}

func passes(name string, run func(string)) (passed bool) {
	defer func() {
		if reason := recover(); reason != nil {
			fmt.Printf("FAILED %s: %v\n%s", name, reason, debug.Stack())
		}
	}()
	graph := rand.Text()
	rest("POST", "/dbs/"+database+"/colls", "colls", "dbs/"+database,
		`{"id":"`+graph+`","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`)
	run(graph)
	return true
}

func main() {
	rest("POST", "/dbs", "dbs", "", `{"id":"`+database+`"}`)
	word := strings.Join(os.Args[1:], " ")
	passed, failed := 0, 0
	for _, one := range cases {
		switch {
		case !strings.Contains(one.name, word):
		case passes(one.name, one.run):
			passed++
		default:
			failed++
		}
	}
	rest("DELETE", "/dbs/"+database, "dbs", "dbs/"+database, "")
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
