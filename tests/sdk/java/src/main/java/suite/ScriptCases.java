package suite;

import static suite.Suite.check;
import static suite.Suite.equal;
import static suite.Suite.item;
import static suite.Suite.refused;

import com.azure.cosmos.CosmosScripts;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import java.util.List;
import java.util.Map;

/** Procedures, triggers and functions, each case named by the sentence it proves. */
final class ScriptCases {
    private ScriptCases() {}

    private static CosmosStoredProcedureRequestOptions under(String key) {
        return new CosmosStoredProcedureRequestOptions().setPartitionKey(new PartitionKey(key));
    }

    static void addTo(Map<String, Suite.Case> cases) {
        cases.put("a procedure is created, executed, replaced and deleted", suite -> {
            CosmosScripts scripts = suite.items.getScripts();
            String body = "function (a, b) { console.log('adding'); getContext().getResponse().setBody(a + b); }";
            equal(scripts.createStoredProcedure(new CosmosStoredProcedureProperties("sum", body)).getStatusCode(), 201);
            CosmosStoredProcedureResponse answer = scripts.getStoredProcedure("sum")
                .execute(List.of(1, 2), under("a").setScriptLoggingEnabled(true));
            equal(answer.getResponseAsString(), "3");
            equal(answer.getScriptLog(), "adding");
            check(answer.getRequestCharge() > 0, "a procedure costs something");
            String other = body.replace("a + b", "a - b");
            // This SDK replaces by the link in the properties, so they must have been read.
            CosmosStoredProcedureProperties read = scripts.getStoredProcedure("sum").read().getProperties();
            scripts.getStoredProcedure("sum").replace(read.setBody(other));
            equal(scripts.getStoredProcedure("sum").execute(List.of(1, 2), under("a")).getResponseAsString(), "-1");
            equal(scripts.readAllStoredProcedures().stream().filter(each -> each.getId().equals("sum")).count(), 1L);
            scripts.getStoredProcedure("sum").delete();
            refused(404, () -> scripts.getStoredProcedure("sum").read());
        });

        cases.put("a procedure that throws leaves nothing behind", suite -> {
            CosmosScripts scripts = suite.items.getScripts();
            String body = "function () { var c = getContext().getCollection();"
                + " c.createDocument(c.getSelfLink(), { id: 'half', pk: 'scripts' },"
                + " function () { throw new Error('enough'); }); }";
            scripts.createStoredProcedure(new CosmosStoredProcedureProperties("half", body));
            refused(400, () -> scripts.getStoredProcedure("half").execute(List.of(), under("scripts")));
            refused(404, () -> suite.items.readItem("half", new PartitionKey("scripts"), Object.class));
        });

        cases.put("a trigger before a create changes the item", suite -> {
            String body = "function () { var r = getContext().getRequest(); var d = r.getBody(); d.n = 7; r.setBody(d); }";
            CosmosTriggerProperties trigger = new CosmosTriggerProperties("seven", body)
                .setTriggerType(TriggerType.PRE).setTriggerOperation(TriggerOperation.CREATE);
            equal(suite.items.getScripts().createTrigger(trigger).getStatusCode(), 201);
            CosmosItemRequestOptions options = new CosmosItemRequestOptions().setPreTriggerInclude(List.of("seven"));
            var stored = suite.items.createItem(item("{\"id\":\"seven\",\"pk\":\"scripts\"}"), new PartitionKey("scripts"), options).getItem();
            equal(stored.get("n").asInt(), 7);
        });

        cases.put("a function is called by a query", suite -> {
            String body = "function (n) { return n + 1; }";
            suite.items.getScripts().createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("next", body));
            suite.items.createItem(item("{\"id\":\"one\",\"pk\":\"functions\"}"), new PartitionKey("functions"), null);
            CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("functions"));
            var rows = suite.items.queryItems("SELECT VALUE udf.next(41) FROM c", options, Integer.class).stream().toList();
            equal(rows, List.of(42));
        });
    }
}
