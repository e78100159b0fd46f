package suite;

import com.azure.spring.data.cosmos.repository.ReactiveCosmosRepository;
import reactor.core.publisher.Flux;

/** The same orders, asynchronously. */
public interface SpringOrdersReactive extends ReactiveCosmosRepository<SpringOrder, String> {
    Flux<SpringOrder> findByStatus(SpringOrder.Status status);
}
