package suite;

import com.azure.spring.data.cosmos.repository.CosmosRepository;
import com.azure.spring.data.cosmos.repository.Query;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Sort;
import org.springframework.data.repository.query.Param;

/** What the Spring program asks of its orders: queries by the names of methods, and by their text. */
public interface SpringOrders extends CosmosRepository<SpringOrder, String> {
    List<SpringOrder> findByCustomerAndStatus(String customer, SpringOrder.Status status);

    List<SpringOrder> findByTotalBetween(double least, double most, Sort sort);

    List<SpringOrder> findByCustomerStartingWithOrderByTotalDesc(String prefix);

    Page<SpringOrder> findByStatus(SpringOrder.Status status, Pageable page);

    long countByStatus(SpringOrder.Status status);

    boolean existsByCustomer(String customer);

    @Query("SELECT * FROM o WHERE EXISTS (SELECT VALUE l FROM l IN o.lines WHERE l.product = @product)")
    List<SpringOrder> withProduct(@Param("product") String product);

    @Query("SELECT o.customer, COUNT(1) AS orders, SUM(o.total) AS spent FROM o GROUP BY o.customer")
    List<JsonNode> spending();
}
