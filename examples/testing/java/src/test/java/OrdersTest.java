import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A server for tests in JUnit: one for all tests, a fork of prepared data for each, a clock that moves. */
class OrdersTest {
    private static final String ORRERY = System.getenv().getOrDefault("ORRERY", "orrery");
    private static Process server;
    private static String endpoint;

    @BeforeAll
    static void start() throws Exception {
        server = new ProcessBuilder(ORRERY, "serve", "--ephemeral", "--listen", "127.0.0.1:0", "--log-format", "json",
                "--test-controls", "on").redirectError(ProcessBuilder.Redirect.DISCARD).start();
        // The first line says where it listens. SDKs connect to the same address.
        String line = new BufferedReader(new InputStreamReader(server.getInputStream())).readLine();
        Matcher found = Pattern.compile("\"listen\":\\[\"([^\"]+)\"").matcher(line);
        found.find();
        endpoint = "http://" + found.group(1);
        // Prepared once, however long that takes. No test changes it; the clock is everybody's, so it does not expire.
        orrery("database", "create", "prepared");
        orrery("container", "create", "prepared/orders", "--partition-key", "/customer", "--ttl", "3600");
        orrery("item", "put", "prepared/orders", "{\"id\":\"17\",\"customer\":\"ada\",\"total\":42,\"ttl\":-1}");
    }

    @AfterAll
    static void stop() throws Exception {
        server.destroy();
        server.waitFor();
    }

    private static int orrery(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(ORRERY));
        command.addAll(List.of(arguments));
        command.addAll(List.of("--endpoint", endpoint));
        return new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor();
    }

    @BeforeEach
    void fork() throws Exception {
        // Milliseconds, whatever is in it. What the test before has done is gone.
        assertEquals(0, orrery("fork", "create", "prepared", "shop", "--replace"));
    }

    @Test
    void anOrderCanBeCancelled() throws Exception {
        assertEquals(0, orrery("item", "delete", "shop/orders", "17", "-k", "ada"));
        assertEquals(3, orrery("item", "get", "shop/orders", "17", "-k", "ada"));
        assertEquals(0, orrery("item", "get", "prepared/orders", "17", "-k", "ada"));
    }

    @Test
    void ordersExpireAfterAnHour() throws Exception {
        orrery("item", "put", "shop/orders", "{\"id\":\"18\",\"customer\":\"ada\",\"total\":7}");
        assertEquals(0, orrery("item", "get", "shop/orders", "18", "-k", "ada"));
        orrery("clock", "advance", "61m");
        assertEquals(3, orrery("item", "get", "shop/orders", "18", "-k", "ada"));
    }

    @Test
    void queriesStayWithinTheirBudgets() throws Exception {
        assertEquals(0, orrery("budget", "check", new File("../budgets.toml").getPath()));
    }
}
