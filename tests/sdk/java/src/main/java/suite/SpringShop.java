package suite;

import com.azure.cosmos.CosmosClientBuilder;
import com.azure.spring.data.cosmos.config.AbstractCosmosConfiguration;
import com.azure.spring.data.cosmos.repository.config.EnableCosmosRepositories;
import com.azure.spring.data.cosmos.repository.config.EnableReactiveCosmosRepositories;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The configuration that the documentation of Spring Data shows: an endpoint, a key, a database, and nothing else. */
@Configuration
@EnableCosmosRepositories(basePackageClasses = SpringShop.class)
@EnableReactiveCosmosRepositories(basePackageClasses = SpringShop.class)
public class SpringShop extends AbstractCosmosConfiguration {
    static String database;

    @Bean
    public CosmosClientBuilder cosmosClientBuilder() {
        return new CosmosClientBuilder().endpoint(System.getenv("COSMOS_ENDPOINT")).key(System.getenv("COSMOS_KEY"));
    }

    @Override
    protected String getDatabaseName() {
        return database;
    }
}
