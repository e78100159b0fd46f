package suite;

import static org.springframework.data.mongodb.core.query.Criteria.where;
import static org.springframework.data.mongodb.core.query.Query.query;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoDatabase;
import java.time.Instant;
import java.util.List;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.domain.Sort;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.aggregation.Aggregation;
import org.springframework.data.mongodb.core.index.Index;
import org.springframework.data.mongodb.core.mapping.Document;
import org.springframework.data.mongodb.core.query.Update;

/** Spring Data MongoDB: objects in and out, optimistic locking, queries and aggregations of its own making. */
final class SpringCases {
    @Document("books")
    static final class Book {
        @Id
        String id;
        @Version
        Long version;
        String title;
        List<String> authors;
        Instant published;
        double price;

        Book() {}

        Book(String title, double price, String... authors) {
            this.title = title;
            this.price = price;
            this.authors = List.of(authors);
            this.published = Instant.parse("2020-05-06T07:08:09.123Z");
        }
    }

    record Sum(String id, double total, int count) {}

    private SpringCases() {}

    static void objects(MongoClient client, MongoDatabase database) {
        MongoTemplate template = new MongoTemplate(client, database.getName());
        template.indexOps(Book.class).createIndex(new Index().on("title", Sort.Direction.ASC).unique());
        Book book = template.insert(new Book("Partitions", 12.5, "Ada", "Grace"));
        Book found = template.findById(book.id, Book.class);
        Suite.equal(List.of(found.title, found.authors, found.published, found.price),
            List.of(book.title, book.authors, book.published, book.price));
        found.price = 10;
        template.save(found);
        try {
            book.price = 11;
            template.save(book);
            throw new AssertionError("an old version was saved");
        } catch (OptimisticLockingFailureException expected) {
            // As it should be.
        }
        try {
            template.insert(new Book("Partitions", 1));
            throw new AssertionError("a title came twice");
        } catch (DuplicateKeyException expected) {
            // As it should be.
        }
        template.updateMulti(query(where("authors").is("Ada")), new Update().inc("price", 5), Book.class);
        Suite.equal(template.findOne(query(where("title").regex("^Part")), Book.class).price, 15.0);
    }

    static void aggregation(MongoClient client, MongoDatabase database) {
        MongoTemplate template = new MongoTemplate(client, database.getName());
        template.insertAll(List.of(new Book("One", 1, "X"), new Book("Two", 2, "X", "Y"), new Book("Three", 4, "Y")));
        List<Sum> sums = template.aggregate(Aggregation.newAggregation(Book.class,
            Aggregation.match(where("title").in("One", "Two", "Three")), Aggregation.unwind("authors"),
            Aggregation.group("authors").sum("price").as("total").count().as("count"),
            Aggregation.sort(Sort.Direction.ASC, "_id")), Sum.class).getMappedResults();
        Suite.equal(sums, List.of(new Sum("X", 3, 2), new Sum("Y", 6, 2)));
    }
}
