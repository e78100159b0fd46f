//! Scripts that do not end, or take what they can get. They need the right to create a procedure; what they must not
//! do is cost anybody else's scripts, requests or memory.

use anyhow::{Result, bail};
use orrery_testkit::Client;

use super::attacker::{Attack, Attacker, Beside, Request};
use super::container;

pub const ATTACKS: &[Attack] = &[
    attack("script-replacements", "a million replacements by a million letters", |attacker| {
        run(attacker, "replacements")
    })
    .lasting(3, 20),
    attack("script-normalize", "normal forms of long strings", |attacker| run(attacker, "normalize")),
    attack("script-endless", "loops without an end", |attacker| run(attacker, "endless")),
    attack("script-memory", "arrays and strings that grow", |attacker| run(attacker, "memory")),
    attack("script-recursion", "calls that never return", |attacker| run(attacker, "recursion")),
    attack("script-promises", "promises that make promises", |attacker| run(attacker, "promises")),
    attack("script-pattern", "a regular expression that goes back and forth", |attacker| {
        run(attacker, "pattern")
    }),
    attack("script-sort", "a sort by a function that never agrees", |attacker| run(attacker, "sort")),
    attack("script-numbers", "powers of large integers", |attacker| run(attacker, "numbers")),
    attack("script-json", "JSON of what contains itself many times", |attacker| run(attacker, "json")),
    attack("script-stages-gigabytes", "items of 1.9 MB in a loop", |attacker| run(attacker, "stages"))
        .lasting(3, 20),
    attack("script-large-answer", "an answer that is set again and again", |attacker| {
        run(attacker, "answer")
    }),
    attack("script-log", "a log without an end", |attacker| run(attacker, "log")),
];

/// The procedures, by name.
const BODIES: &[(&str, &str)] = &[
    ("well", "function f(){getContext().getResponse().setBody('well')}"),
    ("replacements", "function f(){return 'a'.repeat(1e6).replaceAll('a','b'.repeat(1e6)).length}"),
    (
        "normalize",
        "function f(){'\\ufdfa'.repeat(2e6).normalize('NFKD'); 'A'.repeat(2e7).toLowerCase().normalize()}",
    ),
    ("endless", "function f(){for(;;){try{for(;;){}}catch(e){}}}"),
    (
        "memory",
        "function f(){var a=[];for(;;){try{a.push(new Array(1e5).fill(a.length)+'x');}catch(e){a.push(e)}}}",
    ),
    ("recursion", "function f(){function g(){try{g()}catch(e){g()} finally{g()}} g()}"),
    ("promises", "function f(){function g(){return Promise.resolve().then(g).then(g)} g();g();for(;;)g()}"),
    (
        "pattern",
        "function f(){return /^(a+)+$/.test('a'.repeat(40)+'b') || /(x+x+)+y/.test('x'.repeat(5e4))}",
    ),
    (
        "sort",
        "function f(){var a=[];for(var i=0;i<1e6;i++)a.push(i);for(;;)a.sort(function(){return 0.5-a.length%2})}",
    ),
    ("numbers", "function f(){var n=3n;for(;;){n=n**99n;n=n*n}}"),
    (
        "json",
        "function f(){var a=['x'.repeat(1000)];for(var i=0;i<40;i++)a=[a,a];return JSON.stringify(a).length}",
    ),
    (
        "stages",
        "function f(){var c=getContext().getCollection();var t='s'.repeat(1900000);\
         for(var i=0;i<3000;i++)c.createDocument(c.getSelfLink(),{id:'s'+i+Math.random(),pk:'p',t:t})}",
    ),
    (
        "answer",
        "function f(){var r=getContext().getResponse();for(;;){r.setBody('a'.repeat(5e6));r.appendBody&&r.appendBody('b')}}",
    ),
    ("log", "function f(){for(;;)console.log('l'.repeat(1e5))}"),
];

const fn attack(
    name: &'static str,
    purpose: &'static str,
    strike: fn(&mut Attacker) -> Result<()>,
) -> Attack {
    let beside = Beside::new(4, strike).prepared(prepare).checked(others_still_run);
    Attack::beside(name, purpose, beside).lasting(0, 20)
}

fn prepare(client: &mut Client) -> Result<()> {
    container(client, r#"{"id":"scripts","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#)?;
    let link = "dbs/attack/colls/scripts";
    for (name, body) in BODIES {
        let script = serde_json::json!({"id": name, "body": body}).to_string();
        let reply = client.post(&format!("{link}/sprocs"), link, "sprocs", &[], &script)?;
        if ![201, 409].contains(&reply.status) {
            bail!("the procedure {name}: {} {}", reply.status, reply.text());
        }
    }
    Ok(())
}

fn run(attacker: &mut Attacker, name: &'static str) -> Result<()> {
    let path = format!("dbs/attack/colls/scripts/sprocs/{name}");
    let headers =
        vec![("x-ms-documentdb-partitionkey", "[\"p\"]"), ("x-ms-documentdb-script-enable-logging", "true")];
    let request = Request { method: "POST", link: path.clone(), path, kind: "sprocs", headers };
    attacker.ask(&request, b"[]").map(drop)
}

fn others_still_run(client: &mut Client) -> Result<()> {
    let path = "dbs/attack/colls/scripts/sprocs/well";
    let headers = [("x-ms-documentdb-partitionkey", "[\"p\"]")];
    let reply = client.post(path, path, "sprocs", &headers, "[]")?;
    if reply.status != 200 {
        bail!("a procedure of somebody else: {} {}", reply.status, reply.text());
    }
    Ok(())
}
