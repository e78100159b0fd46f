package suite;

import com.azure.spring.data.cosmos.core.mapping.Container;
import com.azure.spring.data.cosmos.core.mapping.PartitionKey;
import java.time.OffsetDateTime;
import java.util.List;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;

/** An order of the Spring program: what a customer bought, kept with the customer's other orders on one of three partitions. */
@Container(containerName = "spring-orders", ru = "30000")
public class SpringOrder {
    public enum Status { OPEN, PAID, SHIPPED }

    public record Line(String product, int quantity, double price) {}

    @Id
    private String id;

    @PartitionKey
    private String customer;

    private Status status;
    private double total;
    private OffsetDateTime placed;
    private List<Line> lines;

    @Version
    private String _etag;

    public SpringOrder() {}

    public SpringOrder(String id, String customer, Status status, OffsetDateTime placed, List<Line> lines) {
        this.id = id;
        this.customer = customer;
        this.status = status;
        this.placed = placed;
        this.lines = lines;
        this.total = lines.stream().mapToDouble(line -> line.quantity() * line.price()).sum();
    }

    public String getId() {
        return id;
    }

    public void setId(String id) {
        this.id = id;
    }

    public String getCustomer() {
        return customer;
    }

    public void setCustomer(String customer) {
        this.customer = customer;
    }

    public Status getStatus() {
        return status;
    }

    public void setStatus(Status status) {
        this.status = status;
    }

    public double getTotal() {
        return total;
    }

    public void setTotal(double total) {
        this.total = total;
    }

    public OffsetDateTime getPlaced() {
        return placed;
    }

    public void setPlaced(OffsetDateTime placed) {
        this.placed = placed;
    }

    public List<Line> getLines() {
        return lines;
    }

    public void setLines(List<Line> lines) {
        this.lines = lines;
    }

    public String get_etag() {
        return _etag;
    }

    public void set_etag(String etag) {
        this._etag = etag;
    }
}
