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

/** A server for tests in JUnit: one for all tests, emptied before each, with a clock that moves. */
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
    void prepare() throws Exception {
        orrery("reset", "--yes");
        orrery("database", "create", "shop");
        orrery("container", "create", "shop/orders", "--partition-key", "/customer", "--ttl", "3600");
        orrery("item", "put", "shop/orders", "{\"id\":\"17\",\"customer\":\"ada\",\"total\":42}");
    }

    @Test
    void ordersExpireAfterAnHour() throws Exception {
        assertEquals(0, orrery("item", "get", "shop/orders", "17", "-k", "ada"));
        orrery("clock", "advance", "61m");
        assertEquals(3, orrery("item", "get", "shop/orders", "17", "-k", "ada"));
    }

    @Test
    void queriesStayWithinTheirBudgets() throws Exception {
        assertEquals(0, orrery("budget", "check", new File("../budgets.toml").getPath()));
    }
}
