package suite;

import static org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource.traversal;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.MessageSerializer;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.ResultSet;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.driver.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.driver.ser.GraphSONMessageSerializerV1d0;
import org.apache.tinkerpop.gremlin.driver.ser.GraphSONMessageSerializerV2d0;
import org.apache.tinkerpop.gremlin.driver.ser.GraphSONMessageSerializerV3d0;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.structure.T;

/** gremlin-driver 3.4.13, which the service's documentation recommends: scripts in every serializer, traversals in those with types. */
public final class Suite {
  private static final Graphs GRAPHS = new Graphs();

  private static void scripts(MessageSerializer serializer) throws Exception {
    Cluster cluster = GRAPHS.cluster(GRAPHS.make()).serializer(serializer).create();
    try {
      Client client = cluster.connect();
      run(client, "g.addV('person').property('id','ann').property('pk','a').property('age',age)", Map.of("age", 30));
      run(client, "g.addV('person').property('id','bob').property('pk','b').property('age',25)", Map.of());
      run(client, "g.V(['a','ann']).addE('knows').to(g.V(['b','bob'])).property('since',2001)", Map.of());
      same(List.of("bob"), run(client, "g.V('ann').out('knows').id()", Map.of()));
      same(List.of("ann"), run(client, "g.V().has('age', gt(x)).id()", Map.of("x", 26)));
      ResultSet results = client.submit("g.V().count()");
      results.all().get();
      same(200, ((Number) results.statusAttributes().get().get("x-ms-status-code")).intValue());
      try {
        run(client, "g.addV('person').property('id','bob').property('pk','b')", Map.of());
        throw new AssertionError("a second vertex of the same id");
      } catch (ExecutionException error) {
        ResponseException refused = (ResponseException) error.getCause();
        same(409, ((Number) refused.getStatusAttributes().get().get("x-ms-status-code")).intValue());
      }
    } finally {
      cluster.close();
    }
  }

  private static void traversals(MessageSerializer serializer) throws Exception {
    Cluster cluster = GRAPHS.cluster(GRAPHS.make()).serializer(serializer).create();
    try {
      GraphTraversalSource g = traversal().withRemote(DriverRemoteConnection.using(cluster, "g"));
      g.addV("person").property(T.id, "ann").property("pk", "a").property("age", 30).iterate();
      same(List.of("ann"), g.V().has("age", 30).id().toList());
      same("person", g.V("ann").next().label());
    } finally {
      cluster.close();
    }
  }

  private static List<Object> run(Client client, String script, Map<String, Object> bindings) throws Exception {
    List<Object> found = new ArrayList<>();
    for (Result result : client.submit(script, bindings).all().get()) {
      found.add(result.getObject());
    }
    return found;
  }

  private static void same(Object expected, Object found) {
    if (!Objects.equals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  private interface Case {
    void run(MessageSerializer serializer) throws Exception;
  }

  private static boolean passes(String name, Case one, MessageSerializer serializer) {
    try {
      one.run(serializer);
      return true;
    } catch (Throwable error) {
      System.out.println("FAILED " + name + " with " + serializer.getClass().getSimpleName());
      error.printStackTrace(System.out);
      return false;
    }
  }

  public static void main(String[] arguments) throws Exception {
    List<Boolean> passed = new ArrayList<>();
    for (MessageSerializer serializer : List.of(new GraphSONMessageSerializerV1d0(),
        new GraphSONMessageSerializerV2d0(), new GraphSONMessageSerializerV3d0(), new GraphBinaryMessageSerializerV1())) {
      passed.add(passes("scripts", Suite::scripts, serializer));
    }
    for (MessageSerializer serializer : List.of(new GraphSONMessageSerializerV2d0(),
        new GraphSONMessageSerializerV3d0(), new GraphBinaryMessageSerializerV1())) {
      passed.add(passes("traversals", Suite::traversals, serializer));
    }
    GRAPHS.drop();
    long good = passed.stream().filter(one -> one).count();
    System.out.println(good + " passed, " + (passed.size() - good) + " failed");
    System.exit(good == passed.size() ? 0 : 1);
  }
}
