package suite;

import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.SpringOrder.Status.OPEN;
import static suite.SpringOrder.Status.PAID;
import static suite.SpringOrder.Status.SHIPPED;

import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.PartitionKey;
import com.azure.spring.data.cosmos.core.CosmosTemplate;
import com.azure.spring.data.cosmos.core.query.CosmosPageRequest;
import com.azure.spring.data.cosmos.exception.CosmosAccessException;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Sort;

/**
 * A program with Spring Data Cosmos in its default configuration, which is direct mode: it makes its database and container
 * by itself, fills a shop, works through its orders and reports on them.
 */
final class SpringCases {
    private static final int CUSTOMERS = 12;
    private static final int ORDERS_EACH = 5;
    private static final OffsetDateTime BEGIN = OffsetDateTime.of(2026, 1, 1, 12, 0, 0, 0, ZoneOffset.UTC);

    private SpringCases() {}

    private static SpringOrder order(int customer, int n) {
        List<SpringOrder.Line> lines = new ArrayList<>();
        lines.add(new SpringOrder.Line(n % 2 == 0 ? "tea" : "coffee", n + 1, 2.5));
        if (n == 4) {
            lines.add(new SpringOrder.Line("cake", 1, customer));
        }
        SpringOrder.Status status = n < 2 ? OPEN : n < 4 ? PAID : SHIPPED;
        return new SpringOrder("o" + customer + "-" + n, "customer" + customer, status, BEGIN.plusDays(n), lines);
    }

    private static List<String> ids(Iterable<SpringOrder> orders) {
        List<String> ids = new ArrayList<>();
        orders.forEach(order -> ids.add(order.getId()));
        return ids;
    }

    static void addTo(Map<String, Suite.Case> cases) {
        if (!Suite.direct) {
            return;
        }
        cases.put("a program with Spring Data works as it is configured by default", suite -> {
            SpringShop.database = Suite.unique("spring");
            try (var context = new AnnotationConfigApplicationContext(SpringShop.class)) {
                try {
                    SpringOrders orders = context.getBean(SpringOrders.class);
                    fills(orders);
                    works(orders);
                    reports(orders, context.getBean(CosmosTemplate.class));
                    worksAsynchronously(context.getBean(SpringOrdersReactive.class));
                    closes(orders);
                } finally {
                    suite.client.getDatabase(SpringShop.database).delete();
                }
            }
        });
    }

    private static void fills(SpringOrders orders) {
        List<SpringOrder> all = new ArrayList<>();
        for (int customer = 0; customer < CUSTOMERS; customer++) {
            for (int n = 0; n < ORDERS_EACH; n++) {
                all.add(order(customer, n));
            }
        }
        orders.saveAll(all);
        equal(orders.count(), (long) CUSTOMERS * ORDERS_EACH);
        SpringOrder found = orders.findById("o3-4", new PartitionKey("customer3")).orElseThrow();
        equal(found.getLines(), order(3, 4).getLines());
        equal(found.getPlaced().toInstant(), order(3, 4).getPlaced().toInstant());
        check(found.get_etag() != null, "the version of an order comes with it");
        check(orders.findById("o3-4", new PartitionKey("customer4")).isEmpty(), "found under another customer");
    }

    private static void works(SpringOrders orders) {
        equal(new TreeSet<>(ids(orders.findByCustomerAndStatus("customer7", OPEN))), new TreeSet<>(List.of("o7-0", "o7-1")));
        PartitionKey key = new PartitionKey("customer7");
        SpringOrder first = orders.findById("o7-0", key).orElseThrow();
        SpringOrder again = orders.findById("o7-0", key).orElseThrow();
        first.setStatus(PAID);
        orders.save(first);
        again.setStatus(SHIPPED);
        try {
            orders.save(again);
            throw new AssertionError("two changed the same version of an order");
        } catch (CosmosAccessException refused) {
            equal(refused.getCosmosException().getStatusCode(), 412);
        }
        SpringOrder patched = orders.save("o7-1", key, SpringOrder.class,
            CosmosPatchOperations.create().replace("/status", PAID).increment("/total", 0.5));
        equal(patched.getStatus(), PAID);
        equal(orders.findById("o7-1", key).orElseThrow().getTotal(), 5.5);
        equal(orders.countByStatus(OPEN), 2L * CUSTOMERS - 2);
        check(orders.existsByCustomer("customer11") && !orders.existsByCustomer("nobody"), "who is there");
    }

    private static void reports(SpringOrders orders, CosmosTemplate template) {
        List<Double> totals = orders.findByTotalBetween(5, 10, Sort.by(Sort.Direction.DESC, "total")).stream()
            .map(SpringOrder::getTotal).collect(Collectors.toList());
        equal(totals.size(), 3 * CUSTOMERS);
        equal(totals, totals.stream().sorted((a, b) -> Double.compare(b, a)).collect(Collectors.toList()));
        // Of each customer the fifth order is the largest, and the more so the higher the customer's number.
        equal(ids(orders.findByCustomerStartingWithOrderByTotalDesc("customer1")).subList(0, 3), List.of("o11-4", "o10-4", "o1-4"));
        equal(orders.withProduct("cake").size(), CUSTOMERS);
        List<JsonNode> spending = orders.spending();
        equal(spending.size(), CUSTOMERS);
        check(spending.stream().allMatch(row -> row.get("orders").asInt() == ORDERS_EACH), spending.toString());
        double spent = spending.stream().mapToDouble(row -> row.get("spent").asDouble()).sum();
        equal(spent, CUSTOMERS * 37.5 + 66 + 0.5);
        // Page after page, as a web page would show it.
        List<String> seen = new ArrayList<>();
        Pageable next = new CosmosPageRequest(0, 5, null);
        while (next != null) {
            Page<SpringOrder> page = orders.findByStatus(SHIPPED, next);
            seen.addAll(ids(page.getContent()));
            check(page.getContent().size() <= 5, "a page of " + page.getContent().size());
            equal(page.getTotalElements(), (long) CUSTOMERS);
            next = page.hasNext() ? page.nextPageable() : null;
        }
        equal(new TreeSet<>(seen).size(), CUSTOMERS);
        equal(seen.size(), CUSTOMERS);
        equal(template.count("spring-orders"), (long) CUSTOMERS * ORDERS_EACH);
    }

    private static void worksAsynchronously(SpringOrdersReactive orders) {
        equal(orders.findByStatus(SHIPPED).count().block(), (long) CUSTOMERS);
        SpringOrder late = order(1, 0);
        late.setId("late");
        equal(orders.save(late).block().getId(), "late");
        equal(orders.findById("late", new PartitionKey("customer1")).block().getCustomer(), "customer1");
        orders.deleteById("late", new PartitionKey("customer1")).block();
        equal(orders.findAll(new PartitionKey("customer1")).count().block(), (long) ORDERS_EACH);
    }

    private static void closes(SpringOrders orders) {
        orders.deleteById("o0-0", new PartitionKey("customer0"));
        orders.deleteAll(orders.findAll(new PartitionKey("customer1")));
        equal(orders.count(), (long) CUSTOMERS * ORDERS_EACH - 1 - ORDERS_EACH);
        orders.deleteAll();
        equal(orders.count(), 0L);
    }
}
