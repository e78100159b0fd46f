//! Traversals over a container of four physical partitions, and what is stored of them.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_budget::Budget;
use orrery_engine::access::Limits;
use orrery_engine::{
    Account, Container, ContainerDefinition, EngineConfig, KeyKinds, Operation, ReadOptions, TestEnv,
    Throughput, Write, block_on,
};
use orrery_gremlin::{Flow, Options, Value, execute, parse};
use orrery_model::{NumberStyle, ParseOptions, PartitionKey, parse_json};
use orrery_storage::MemoryStore;

use super::cache::GraphCache;
use super::{ContainerGraph, Spent};
use crate::errors::Failure;
use crate::graphson::write_untyped;

struct World {
    account: Arc<Account>,
    container: Arc<Container>,
    cache: Arc<GraphCache>,
}

impl World {
    fn new() -> World {
        let engine = EngineConfig { partition_throughput_limit: 400, ..EngineConfig::default() };
        let env = Arc::new(TestEnv::new(1_700_000_000_000, 7));
        let account = Account::open(Arc::new(MemoryStore::new()), engine, env).expect("an empty store opens");
        let database = block_on(account.create_database("d", None)).expect("created");
        let definition =
            serde_json::json!({"id": "g", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        let definition = ContainerDefinition::parse(&definition, KeyKinds::All).expect("a definition");
        let container =
            block_on(account.create_container(&database, definition, Some(Throughput::Manual(1_600))))
                .expect("created");
        assert_eq!(container.ranges().len(), 4);
        World { account, container, cache: Arc::default() }
    }

    fn run(&self, text: &str) -> Result<String, Failure> {
        let script = parse(text, &HashMap::new())?;
        let spent = Arc::new(Spent::default());
        let env = self.account.env().clone();
        let (budget, limits) = (Budget::unlimited(), Limits::default());
        let mut graph = ContainerGraph::new(
            self.container.clone(),
            env,
            limits,
            budget,
            spent.clone(),
            self.cache.clone(),
            script.writes(),
        )?;
        let mut out = Vec::new();
        let mut sink = |results: Vec<(Value, u64)>| {
            for (value, bulk) in results {
                for _ in 0..bulk {
                    write_untyped(&value, &mut out);
                    out.push(b' ');
                }
            }
            Ok(Flow::Continue)
        };
        execute(&script, &mut graph, &Options::default(), &mut sink)?;
        Ok(String::from_utf8(out).expect("JSON").trim_end().to_owned())
    }

    fn ok(&self, text: &str) -> String {
        self.run(text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
    }

    fn stored(&self, pk: &str, id: &str) -> String {
        let reply =
            block_on(self.container.read_item(&key(pk), id, &ReadOptions::default())).expect("stored");
        let mut text = Vec::new();
        reply.item.body().write_json(&mut text, NumberStyle::Item);
        String::from_utf8(text).expect("JSON")
    }

    fn put(&self, pk: &str, id: &str, text: &str) {
        let document = parse_json(text.as_bytes(), &ParseOptions::default()).expect("JSON").into();
        block_on(
            self.container
                .write_item(&key(pk), Write::new(Operation::Upsert { id: id.to_owned(), document })),
        )
        .expect("written");
    }
}

fn key(pk: &str) -> PartitionKey {
    PartitionKey::parse_header(&format!("[\"{pk}\"]")).expect("a key")
}

#[test]
fn elements_are_stored_in_the_services_form() {
    let world = World::new();
    world.ok("g.addV('person').property('id','a').property('pk','p0').property('ttl',60)");
    world.ok("g.addV('person').property('id','b').property('pk','p1')");
    world.ok("g.V(['p0','a']).addE('knows').to(g.V(['p1','b'])).property('id','e').property('w',0.5)");
    assert_eq!(world.stored("p0", "a"), r#"{"id":"a","label":"person","pk":"p0","ttl":60}"#);
    assert_eq!(
        world.stored("p0", "e"),
        r#"{"id":"e","label":"knows","_isEdge":true,"pk":"p0","_vertexId":"a","_vertexLabel":"person","_sink":"b","_sinkLabel":"person","_sinkPartition":"p1","w":0.5}"#
    );
}

#[test]
fn what_sql_has_written_is_a_vertex_and_keeps_what_is_none_of_the_graphs() {
    let world = World::new();
    world.put(
        "p",
        "v",
        r#"{"id":"v","label":"thing","pk":"p","name":[{"_value":"N","id":"1"}],"extra":{"deep":[1,2]}}"#,
    );
    assert_eq!(world.ok("g.V().has('name','N').values('name','extra')"), r#""N""#);
    world.ok("g.V('v').property('name','M')");
    assert!(world.stored("p", "v").contains(r#""extra":{"deep":[1,2]}"#));
    assert_eq!(world.ok("g.V().has('thing','name','M').count()"), "1");
}

#[test]
fn hops_cross_partitions_in_both_directions() {
    let world = World::new();
    for n in 0..12 {
        world.ok(&format!("g.addV('n').property('id','v{n}').property('pk','p{n}').property('n',{n})"));
    }
    for n in 0..12 {
        world.ok(&format!("g.V('v{n}').addE('next').to(g.V('v{}'))", (n + 1) % 12));
    }
    assert_eq!(world.ok("g.V(['p0','v0']).repeat(out('next')).times(12).id()"), r#""v0""#);
    assert_eq!(world.ok("g.V(['p0','v0']).in('next').in('next').values('n')"), "10");
    assert_eq!(world.ok("g.V().both('next').dedup().count()"), "12");
    assert_eq!(world.ok("g.V().has('n', gt(9)).order().by('n').out('next').id()"), r#""v11" "v0""#);
}

#[test]
fn an_edge_with_the_id_of_its_source_is_another_item() {
    let world = World::new();
    world.ok("g.addV('n').property('id','1').property('pk','p')");
    world.ok("g.V('1').addE('self').to(g.V('1')).property('id','1').property('w',1)");
    assert_eq!(world.ok("g.E(['p','1']).values('w')"), "1");
    assert_eq!(world.ok("g.E('1').id()"), r#""1""#);
    world.ok("g.E('1').property('w',2)");
    assert_eq!(world.ok("g.V('1').outE().values('w')"), "2");
    world.ok("g.V('1').outE().drop()");
    assert_eq!((world.ok("g.V().count()"), world.ok("g.E().count()")), ("1".to_owned(), "0".to_owned()));
}

#[test]
fn refusals_have_the_services_codes_and_change_nothing() {
    let world = World::new();
    world.ok("g.addV('n').property('id','a').property('pk','p').property('k',1)");
    for (script, status) in [
        ("g.addV('n').property('id','a').property('pk','p')", 409),
        ("g.addV('n').property('id','b')", 1000),
        ("g.V('a').property('pk','q')", 1000),
        ("g.V('a').property('_value',1)", 1000),
        ("g.V('a').properties('pk').drop()", 1000),
        ("g.addV('n').property(id, 5).property('pk','p')", 1000),
    ] {
        assert_eq!(world.run(script).expect_err(script).status, status, "{script}");
    }
    assert_eq!(world.ok("g.V().valueMap('k','pk')"), r#"{"pk":["p"],"k":[1]}"#);
    assert_eq!(world.ok("g.V().count()"), "1");
}

#[test]
fn a_dropped_vertex_takes_its_edges_along() {
    let world = World::new();
    for (id, pk) in [("a", "p"), ("b", "q"), ("c", "r")] {
        world.ok(&format!("g.addV('n').property('id','{id}').property('pk','{pk}')"));
    }
    for (one, other) in [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")] {
        world.ok(&format!("g.V('{one}').addE('x').to(g.V('{other}'))"));
    }
    world.ok("g.V('b').drop()");
    assert_eq!(world.ok("g.E().project('o','i').by(outV().id()).by(inV().id())"), r#"{"o":"c","i":"a"}"#);
}

#[test]
fn what_is_kept_of_a_graph_is_what_is_there() {
    let world = World::new();
    let without = World { cache: Arc::new(GraphCache::new(0)), ..World::new() };
    let both = |script: &str| {
        world.ok(script);
        without.ok(script);
    };
    for n in 0..8 {
        both(&format!("g.addV('n').property('id','v{n}').property('pk','p{n}').property('n',{n})"));
    }
    let walks = [
        "g.V().count()",
        "g.E().count()",
        "g.V().hasLabel('n').count()",
        "g.E().hasLabel('to','none').count()",
        "g.V().has('pk','p3').count()",
        "g.V().has('n',gt(3)).count()",
        "g.inject(1,2).V().hasLabel('n').count()",
        "g.V(['p0','v0']).out().out().order().by('n').values('n').fold()",
        "g.V().order().by('n').out('to').has('n',gt(2)).order().by('n').values('n').fold()",
        "g.V().both('to','at').count()",
        "g.V().out('at').has('name','new').id().order().fold()",
        "g.V().order().by('n').project('n','out').by('n').by(out('to').count()).fold()",
    ];
    let mut random = 7u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..60 {
        let (from, to) = (below(8), below(8));
        let label = if below(2) == 0 { "to" } else { "at" };
        match below(6) {
            0 => both(&format!("g.V('v{from}').outE('{label}').limit(1).drop()")),
            1 => both(&format!(
                "g.V('v{from}').property('name','{}')",
                if round % 2 == 0 { "new" } else { "old" }
            )),
            2 if round % 4 == 0 => {
                both(&format!("g.V('v{from}').drop()"));
                both(&format!(
                    "g.addV('n').property('id','v{from}').property('pk','p{from}').property('n',{from})"
                ));
            }
            // Another API writes what is a vertex too.
            3 => {
                for world in [&world, &without] {
                    world.put(
                        &format!("p{from}"),
                        &format!("v{from}"),
                        &format!(
                            r#"{{"id":"v{from}","label":"n","pk":"p{from}","n":[{{"_value":{},"id":"1"}}]}}"#,
                            from + round
                        ),
                    );
                }
            }
            _ => both(&format!("g.V('v{from}').addE('{label}').to(g.V('v{to}')).property('id','e{round}')")),
        }
        for walk in walks {
            let first = world.ok(walk);
            assert_eq!(first, without.ok(walk), "round {round}: {walk}");
            assert_eq!(first, world.ok(walk), "round {round}, again: {walk}");
        }
    }
}

#[test]
fn counts_and_groups_are_what_looking_at_the_elements_gives() {
    let world = World::new();
    for n in 0..24 {
        let label = if n % 3 == 0 { "a" } else { "b" };
        world.ok(&format!(
            "g.addV('{label}').property('id','v{n}').property('pk','p{}').property('n',{n}).property('t','{}')",
            n % 7,
            ["x", "y", "z"][n % 3]
        ));
    }
    for n in 0..24 {
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        world.ok(&format!(
            "g.V('v{n}').addE('next').to(g.V('v{}')).property('w',{n}).property('kind','{kind}')",
            (n * 5 + 1) % 24
        ));
    }
    // What is asked in other words is looked at.
    world.put("p1", "flat", r#"{"id":"flat","label":"a","pk":"p1","t":"x","n":7}"#);
    world.put("p1", "many", r#"{"id":"many","label":"a","pk":"p1","t":[{"_value":"z"},{"_value":"x"}]}"#);
    world.put("p2", "truth", r#"{"id":"truth","label":"b","pk":"p2","t":[{"_value":true,"id":"1"}]}"#);
    let sources = [
        "V()",
        "V().hasLabel('a')",
        "V().has('n',gt(9))",
        "V().has('b','t',within('x','y'))",
        "V().has('pk','p1')",
        "V().has('pk',within('p1','p2')).has('n',between(3,20))",
        "V().has('t',startingWith('x'))",
        "V().has('n',neq(3))",
        "V().has('t')",
        "V().hasNot('t')",
        "V().has('n',2.0)",
        "V().has('pk','p1').has('pk','p2')",
        "E()",
        "E().has('kind','odd')",
        "E().has('w',inside(2,9)).hasLabel('next')",
        "E().has('pk','p1')",
    ];
    for source in sources {
        let shown = world.ok(&format!("g.{source}.identity().count()"));
        assert_eq!(world.ok(&format!("g.{source}.count()")), shown, "{source}");
        for key in ["'t'", "'pk'", "label", "'label'", "'n'", "'kind'", "'none'", "'w'"] {
            let looked =
                world.ok(&format!("g.{source}.identity().groupCount().by({key}).order(local).by(keys)"));
            for group in ["groupCount().by({})", "group().by({}).by(count())"] {
                let group = group.replace("{}", key);
                let grouped = world.ok(&format!("g.{source}.{group}.order(local).by(keys)"));
                assert_eq!(grouped, looked, "{source} {group}");
            }
        }
    }
    assert_eq!(world.ok("g.E().has('pk','p1').count()"), world.ok("g.V().has('pk','p1').outE().count()"));
}

#[test]
fn traversals_over_partitions_that_are_split_and_merged_lose_and_double_nothing() {
    const VERTICES: usize = 300;
    let world = World::new();
    for n in 0..VERTICES {
        world.put(
            &format!("p{n}"),
            &format!("v{n}"),
            &format!(r#"{{"id":"v{n}","label":"n","pk":"p{n}","n":[{{"_value":{n},"id":"1"}}]}}"#),
        );
        for step in [1, 7, 50] {
            let to = (n + step) % VERTICES;
            world.put(
                &format!("p{n}"),
                &format!("e{n}-{step}"),
                &format!(
                    r#"{{"id":"e{n}-{step}","label":"to","_isEdge":true,"pk":"p{n}","_vertexId":"v{n}","_vertexLabel":"n",
                    "_sink":"v{to}","_sinkLabel":"n","_sinkPartition":"p{to}","step":{step}}}"#
                ),
            );
        }
    }
    let walks = [
        ("g.V().dedup().count()", VERTICES.to_string()),
        ("g.V().id().dedup().count()", VERTICES.to_string()),
        ("g.V().values('n').sum()", (VERTICES * (VERTICES - 1) / 2).to_string()),
        ("g.V().out('to').id().groupCount().unfold().select(values).is(neq(3L)).count()", "0".to_owned()),
        ("g.V().in('to').id().groupCount().unfold().select(values).is(neq(3L)).count()", "0".to_owned()),
        ("g.V().out().out().in().count()", (VERTICES * 27).to_string()),
        ("g.E().values('step').sum()", (VERTICES * 58).to_string()),
        ("g.V().groupCount().by(label)", format!(r#"{{"n":{VERTICES}}}"#)),
        ("g.V().bothE().dedup().count()", (VERTICES * 3).to_string()),
        ("g.V(['p0','v0']).repeat(out('to').dedup()).times(4).dedup().count()", "15".to_owned()),
    ];
    let done = std::sync::atomic::AtomicBool::new(false);
    let rounds = std::thread::scope(|scope| {
        let (world, walks, done) = (&world, &walks, &done);
        let walkers: Vec<_> = (0..3)
            .map(|first| {
                scope.spawn(move || {
                    let mut rounds = 0;
                    while rounds == 0 || !done.load(std::sync::atomic::Ordering::Relaxed) {
                        for at in 0..walks.len() {
                            let (walk, expected) = &walks[(first * 3 + at) % walks.len()];
                            assert_eq!(world.ok(walk), *expected, "{walk}");
                        }
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        let mut most = 0;
        for _ in 0..4 {
            let split = world.account.split_partition(&world.container, None).expect("it can be split");
            block_on(split.done()).expect("split");
            most = most.max(world.container.ranges().len());
            let merge = world.account.merge_partitions(&world.container, None).expect("they can be merged");
            block_on(merge.done()).expect("merged");
        }
        assert!(most > 4, "{most} partitions");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        walkers.into_iter().map(|walker| walker.join().expect("a walker")).sum::<usize>()
    });
    assert!(rounds >= 3);
}

#[test]
fn values_of_a_vertex_are_ordered_as_they_were_written() {
    let world = World::new();
    for id in ["b", "a"] {
        world.ok(&format!(
            "g.addV('n').property('id','{id}').property('z',1).property('pk','p').property('y',2).property('x',3)"
        ));
    }
    world.ok("g.V('b').property('w',4)");
    let ordered = |order: &str| world.ok(&format!("g.V().properties().order().by({order}).key()"));
    assert_eq!(ordered("asc"), r#""pk" "z" "y" "x" "pk" "z" "y" "x" "w""#);
    assert_eq!(ordered("desc"), r#""w" "x" "y" "z" "pk" "x" "y" "z" "pk""#);
}
