//! Random search policies, items with shapes, texts and vectors, and queries that look for them: shapes near where
//! they are hard to find, texts of few words.

use serde_json::{Value, json};

use super::generate::{Dice, partition_key};

pub fn policy(dice: &mut Dice) -> Value {
    let plane = dice.one_in(3);
    let types = match dice.below(3) {
        0 => json!(["Point"]),
        1 => json!(["Point", "Polygon"]),
        _ => json!(["Point", "LineString", "Polygon", "MultiPolygon"]),
    };
    let mut indexes = vec![json!({"path": dice.pick(&["/loc/?", "/loc/*", "/*"]), "types": types})];
    if dice.one_in(2) {
        indexes.insert(0, json!({"path": "/spots/[]/at/?"}));
    }
    if plane {
        let (side, top) = if dice.one_in(4) { (360, 180) } else { (10, 10) };
        for index in &mut indexes {
            index["boundingBox"] = json!({"xmin": -side, "ymin": -top, "xmax": side, "ymax": top});
        }
    }
    if dice.one_in(6) {
        indexes.clear();
    }
    let mut indexing = json!({ "spatialIndexes": indexes });
    if !dice.one_in(5) {
        indexing["fullTextIndexes"] = json!([{"path": "/text"}]);
    }
    if dice.one_in(3) {
        indexing["includedPaths"] = json!([{"path": "/n/?"}]);
        indexing["excludedPaths"] = json!([{"path": "/*"}]);
    } else if dice.one_in(8) {
        indexing["indexingMode"] = json!("none");
        indexing["automatic"] = json!(false);
    }
    if !dice.one_in(5) {
        indexing["vectorIndexes"] =
            json!([{"path": "/v", "type": dice.pick(&["flat", "flat", "quantizedFlat", "diskANN"])}]);
    }
    let embedding = json!({
        "path": "/v",
        "dimensions": 3,
        "dataType": dice.pick(&["float32", "float16", "int8", "uint8"]),
        "distanceFunction": dice.pick(&["cosine", "dotproduct", "euclidean"]),
    });
    json!({
        "indexingPolicy": indexing,
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]},
        "geospatialConfig": {"type": if plane { "Geometry" } else { "Geography" }},
        "fullTextPolicy": {
            "defaultLanguage": dice.pick(&["en-US", "fr-FR"]),
            "fullTextPaths": [match dice.below(3) {
                0 => json!({"path": "/text", "language": "de-DE"}),
                _ => json!({"path": "/text"}),
            }],
        },
        "defaultTtl": -1,
    })
}

/// Where shapes are: cities, the antimeridian, the poles, corners of the cube.
const PLACES: [(f64, f64); 8] = [
    (0.0, 0.0),
    (13.4, 52.5),
    (180.0, 10.0),
    (-180.0, -3.0),
    (10.0, 89.9),
    (-70.0, -90.0),
    (45.0, 35.264),
    (-6.0, 4.0),
];

/// A text of few different words.
fn text(dice: &mut Dice, words_max: usize) -> String {
    let words = [
        "cat", "Cats", "swim", "swimming", "new", "york", "the", "a", "river", "dog's", "chevaux", "cheval",
        "häuser", "haus", "les",
    ];
    let text: Vec<&str> = (0..dice.below(words_max + 1)).map(|_| dice.pick(&words)).collect();
    text.join(dice.pick(&[" ", " ", ", "]))
}

fn term(dice: &mut Dice) -> String {
    let phrase = text(dice, 3);
    match dice.below(12) {
        0 => format!("{{\"term\":\"{phrase}\",\"distance\":{}}}", dice.below(4)),
        5 => format!(
            "{{\"term\":\"{}\",\"distance\":{}}}",
            dice.pick(&["cap", "swum", "now yolk", "riber", "cheveaux", "internationalization", "houses"]),
            1 + dice.below(2)
        ),
        1 => dice.pick(&["'!'", "1", "'nowhere'"]).into(),
        2..=4 => format!("\"{phrase}\""),
        _ => format!("\"{}\"", dice.pick(&["cat", "swims", "new york", "rivers", "the", "new"])),
    }
}

fn text_condition(dice: &mut Dice) -> String {
    let path = dice.pick(&["c.text", "c.text", "c.text", "c.n", "c.missing"]);
    match dice.below(3) {
        0 => format!("FullTextContains({path}, {})", term(dice)),
        1 => format!("FullTextContainsAny({path}, {}, {})", term(dice), term(dice)),
        _ => format!("FullTextContainsAll({path}, {}, {})", term(dice), term(dice)),
    }
}

/// What clients send to rank texts.
fn ranked_texts(dice: &mut Dice) -> String {
    let filter = if dice.one_in(2) { String::new() } else { format!(" WHERE {}", predicate(dice)) };
    let terms = format!("[{}, {}]", term(dice), term(dice));
    let (documents, words) = (20 + dice.below(40), 100 + dice.below(100));
    let matching = format!("[{}, {}]", dice.below(20), dice.below(70));
    let score = format!("_FullTextScore(c.text, {terms}, {documents}, {words}, {matching})");
    let direction = if dice.one_in(6) { "" } else { " DESC" };
    match dice.below(5) {
        4 => {
            let (first, second) =
                (dice.pick(&["cat", "new york", "swimming"]), dice.pick(&["river", "a", "!"]));
            let rank = format!("FullTextScore(c.text, '{first}', '{second}')");
            format!("SELECT TOP {} c.id FROM c{filter} ORDER BY RANK {rank}", 1 + dice.below(30))
        }
        0 => format!("SELECT c.id, {score} AS s FROM c{filter} ORDER BY {score}{direction} OFFSET 2 LIMIT 9"),
        1 => format!("SELECT c.id FROM c{filter} ORDER BY {score}{direction}"),
        _ => {
            let top = 1 + dice.below(50);
            format!("SELECT TOP {top} c.id, {score} AS s FROM c{filter} ORDER BY {score}{direction}")
        }
    }
}

fn vector(dice: &mut Dice) -> String {
    let number = |dice: &mut Dice| match dice.below(4) {
        0 => format!("{}", dice.below(7) as f64 / 7.0),
        // More than codes can hold; a distance beyond what numbers can would fail the naive query whether its row
        // counts or not.
        1 => dice.pick(&["1e150", "70000", "1e-9", "0"]).into(),
        _ => format!("{}", dice.below(9) as i64 - 4),
    };
    let parts = if dice.one_in(10) { 2 } else { 3 };
    let parts: Vec<String> = (0..parts).map(|_| number(dice)).collect();
    format!("[{}]", parts.join(","))
}

fn nearest_vectors(dice: &mut Dice) -> String {
    let filter = if dice.one_in(2) { String::new() } else { format!(" WHERE {}", predicate(dice)) };
    let (wanted, top) = (vector(dice), 1 + dice.below(20));
    // So many are looked at that codes find all of the nearest too.
    let list = "\"quantizedVectorListMultiplier\":100,\"searchListSizeMultiplier\":100";
    let options = match dice.below(4) {
        0 => ", true".to_owned(),
        1 => format!(", false, {{\"distanceFunction\":\"euclidean\",{list}}}"),
        _ => format!(", false, {{{list}}}"),
    };
    let filter = if dice.one_in(6) { " WHERE IS_DEFINED(c.v)".to_owned() } else { filter };
    let distance = match dice.one_in(4) {
        true => format!("VectorDistance({wanted}, c.v{options})"),
        false => format!("VectorDistance(c.v, {wanted}{options})"),
    };
    match dice.below(6) {
        0 | 1 => format!("SELECT c.id FROM c{filter} ORDER BY {distance} OFFSET 1 LIMIT {top}"),
        2 => format!("SELECT TOP {top} VALUE c.text FROM c{filter} ORDER BY {distance}"),
        3 => {
            let score = distance.replace("VectorDistance", "_VectorScore");
            let direction = dice.pick(&["", " ASC", " DESC"]);
            format!(
                "SELECT TOP {top} c.id, [{{\"item\": {score}}}] AS k FROM c{filter} ORDER BY {score}{direction}"
            )
        }
        _ => format!("SELECT TOP {top} c.id, {distance} AS d FROM c{filter} ORDER BY {distance}"),
    }
}

fn statistics(dice: &mut Dice) -> String {
    format!(
        "SELECT COUNT(1) AS n, [{{\"w\": SUM(_FullTextWordCount(c.text)), \"h\": [COUNTIF(FullTextContains(c.text, {})), \
         COUNTIF(FullTextContains(c.text, {}))]}}] AS s FROM c",
        term(dice),
        term(dice)
    )
}

fn fraction(dice: &mut Dice) -> f64 {
    dice.below(2_001) as f64 / 1_000.0 - 1.0
}

/// A place and a size around it, in degrees.
fn somewhere(dice: &mut Dice) -> ((f64, f64), f64) {
    let (x, y) = PLACES[dice.below(PLACES.len())];
    let size = [0.001, 0.1, 3.0, 20.0][dice.below(4)];
    ((x + size * fraction(dice), y + size * fraction(dice)), size)
}

/// Coordinates that are valid on the earth.
fn coordinates((x, y): (f64, f64)) -> String {
    let x = (x + 540.0).rem_euclid(360.0) - 180.0;
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    format!("[{},{}]", rounded(x), rounded(y.clamp(-90.0, 90.0)))
}

fn around((x, y): (f64, f64), size: f64, turn: f64) -> (f64, f64) {
    (x + size * turn.cos(), y + size * turn.sin())
}

fn ring(dice: &mut Dice) -> String {
    let (center, size) = somewhere(dice);
    let corners = 3 + dice.below(4);
    let direction = if dice.one_in(4) { -1.0 } else { 1.0 };
    let start = fraction(dice);
    let mut points: Vec<String> = (0..corners)
        .map(|at| {
            let turn = start + direction * at as f64 / corners as f64 * std::f64::consts::TAU;
            coordinates(around(center, size * (0.5 + 0.5 * fraction(dice).abs()), turn))
        })
        .collect();
    points.push(points[0].clone());
    format!("[{}]", points.join(","))
}

fn shape(dice: &mut Dice) -> String {
    match dice.below(12) {
        0..=5 => format!(r#"{{"type":"Point","coordinates":{}}}"#, coordinates(somewhere(dice).0)),
        6 => format!(r#"{{"type":"Point","coordinates":{}}}"#, coordinates(PLACES[dice.below(8)])),
        7 | 8 => {
            let (start, size) = somewhere(dice);
            let points: Vec<String> = (0..2 + dice.below(3))
                .map(|_| coordinates(around(start, size, fraction(dice) * 3.0)))
                .collect();
            format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, points.join(","))
        }
        9 => format!(r#"{{"type":"MultiPolygon","coordinates":[[{}],[{}]]}}"#, ring(dice), ring(dice)),
        _ => format!(r#"{{"type":"Polygon","coordinates":[{}]}}"#, ring(dice)),
    }
}

pub fn item(dice: &mut Dice, at: usize) -> String {
    let mut members = vec![
        format!("\"id\":\"i{at}\""),
        format!("\"pk\":\"{}\"", partition_key(at)),
        format!("\"n\":{}", dice.below(5)),
    ];
    if !dice.one_in(6) {
        let loc = match dice.below(10) {
            0 => dice.pick(&["null", "{\"type\":\"Point\"}", "\"here\"", "[1,2]"]).to_owned(),
            1 => format!("{{\"inner\":{}}}", shape(dice)),
            _ => shape(dice),
        };
        members.push(format!("\"loc\":{loc}"));
    }
    if dice.one_in(3) {
        let spots: Vec<String> = (0..dice.below(4)).map(|_| format!("{{\"at\":{}}}", shape(dice))).collect();
        members.push(format!("\"spots\":[{}]", spots.join(",")));
    }
    if !dice.one_in(6) {
        let text = match dice.one_in(10) {
            true => dice.pick(&["null", "7", "[\"cat\"]"]).to_owned(),
            false => format!("\"{}\"", text(dice, 12)),
        };
        members.push(format!("\"text\":{text}"));
    }
    if !dice.one_in(6) {
        let vector = match dice.one_in(12) {
            true => dice.pick(&["null", "[1,\"a\",2]", "[0,0,0]", "[]", "[1,2,3,4]", "7"]).to_owned(),
            false => vector(dice),
        };
        members.push(format!("\"v\":{vector}"));
    }
    format!("{{{}}}", members.join(","))
}

fn condition(dice: &mut Dice, path: &str) -> String {
    let shape = shape(dice);
    let metres = ["0", "10", "20000", "500000", "3000000", "0.5", "8"][dice.below(7)];
    let (a, b) = if dice.one_in(3) { (shape.as_str(), path) } else { (path, shape.as_str()) };
    match dice.below(6) {
        0 | 1 => format!("ST_DISTANCE({a}, {b}) {} {metres}", dice.pick(&["<", "<=", "<", ">", "="])),
        2 => format!("{metres} >= ST_DISTANCE({a}, {b})"),
        3 => format!("ST_WITHIN({a}, {b})"),
        4 => format!("ST_INTERSECTS({a}, {b}){}", dice.pick(&["", " = true", " != true"])),
        _ => format!("ST_DISTANCE({a}, {b}) BETWEEN 1 AND {metres}"),
    }
}

fn predicate(dice: &mut Dice) -> String {
    let path = dice.pick(&["c.loc", "c.loc", "c.loc", "c.loc.inner", "c.spots[0].at", "c.missing"]);
    let first = if dice.one_in(2) { text_condition(dice) } else { condition(dice, path) };
    let n = dice.below(5);
    match dice.below(8) {
        0 => format!("{first} AND c.n = {n}"),
        1 => format!("{first} OR c.n = {n}"),
        2 => format!("NOT ({first})"),
        3 => format!("{first} OR {}", condition(dice, "c.loc")),
        4 => format!("{first} AND {}", condition(dice, "c.loc")),
        5 => format!("{first} AND {}", text_condition(dice)),
        _ => first,
    }
}

pub fn query(dice: &mut Dice) -> String {
    if dice.one_in(6) {
        let condition = condition(dice, "s.at");
        return format!("SELECT c.id, s FROM c JOIN s IN c.spots WHERE {condition}");
    }
    if dice.one_in(4) {
        return ranked_texts(dice);
    }
    if dice.one_in(4) {
        return nearest_vectors(dice);
    }
    if dice.one_in(8) {
        return statistics(dice);
    }
    let filter = predicate(dice);
    match dice.below(5) {
        0 => format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}"),
        1 => format!("SELECT c.id FROM c WHERE {filter} ORDER BY c.n"),
        2 => format!("SELECT TOP 3 c.id FROM c WHERE {filter} ORDER BY c.id DESC"),
        _ => format!("SELECT c.id, c.loc FROM c WHERE {filter}"),
    }
}
