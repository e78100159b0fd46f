//! Which answer which request gets, and the sizes that the pages keep to.

use sha2::{Digest, Sha256};

use super::*;

/// All files together, packed.
const ALL_BYTES_MAX: usize = 400 * 1024;
/// What a browser loads before the first page shows: the page, the modules that it begins with, the style.
const FIRST_BYTES_MAX: usize = 60 * 1024;
const FIRST_MODULES_MAX: usize = 12;

fn portal() -> Portal {
    Portal::new("1.2.3", true, None)
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn asked(method: Method, path: &str, pairs: &[(&'static str, &str)]) -> Option<Asked> {
    portal().asked(&method, &path.parse().unwrap(), &headers(pairs))
}

fn get(path: &str, pairs: &[(&'static str, &str)]) -> Response<Bytes> {
    match asked(Method::GET, path, pairs) {
        Some(Asked::Page(page)) => portal().answer(&page, &headers(pairs)),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn only_a_browser_is_led_from_the_root_to_the_pages() {
    let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    assert_eq!(asked(Method::GET, "/", &[browser]), Some(Asked::Page(Page::Redirect)));
    for other in [
        &[][..],
        &[("accept", "application/json")],
        &[("accept", "*/*")],
        &[browser, ("authorization", "type%3dmaster%26ver%3d1.0%26sig%3dx")],
    ] {
        assert_eq!(asked(Method::GET, "/", other), None, "{other:?}");
    }
    assert_eq!(asked(Method::POST, "/", &[browser]), None);
    let response = get("/_explorer", &[]);
    assert_eq!(response.status(), StatusCode::FOUND);
    assert_eq!(response.headers()[LOCATION], "/_explorer/");
}

#[test]
fn paths_of_the_api_are_not_the_portals() {
    for path in ["/dbs", "/_explorers/", "/_orrery/whoami", "/offers", "/dbs/_explorer/colls"] {
        assert_eq!(asked(Method::GET, path, &[("accept", "text/html")]), None, "{path}");
    }
    assert_eq!(asked(Method::POST, "/_explorer/", &[]), Some(Asked::Page(Page::MethodNotAllowed)));
    assert_eq!(asked(Method::GET, "/_explorer/emulator.pem", &[]), Some(Asked::Certificate));
}

#[test]
fn every_page_has_a_nonce_of_its_own_and_a_strict_policy() {
    let (one, other) = (get("/_explorer/", &[]), get("/_explorer/index.html", &[]));
    let policy = |response: &Response<Bytes>| {
        response.headers()[http::header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned()
    };
    assert_ne!(policy(&one), policy(&other));
    let text = String::from_utf8(one.body().to_vec()).unwrap();
    let nonce = policy(&one).split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    assert!(text.contains(&nonce) && text.contains(&format!("/_explorer/{VERSION}/app.js")), "{text}");
    assert!(!text.contains('%'), "a placeholder was left: {text}");
    for unsafe_word in ["unsafe-inline", "unsafe-eval", "http:", "*"] {
        assert!(!policy(&one).contains(unsafe_word), "{}", policy(&one));
    }
    assert_eq!(one.headers()[CACHE_CONTROL], "no-store");
    assert_eq!(one.headers()["x-frame-options"], "DENY");
}

#[test]
fn files_are_packed_kept_and_not_sent_twice() {
    for file in files().iter().filter(|file| file.name != INDEX) {
        let path = format!("/_explorer/{VERSION}/{}", file.name);
        let packed = get(&path, &[("accept-encoding", "br, gzip;q=0.5")]);
        assert_eq!(packed.status(), StatusCode::OK, "{path}");
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert!(packed.headers()[CACHE_CONTROL].to_str().unwrap().contains("immutable"));
        assert_ne!(packed.headers()[CONTENT_TYPE], "application/octet-stream", "{path}");
        let plain = get(&path, &[("accept-encoding", "gzip;q=0")]);
        assert_eq!((plain.body().len(), plain.headers().get(CONTENT_ENCODING)), (file.size, None));
        let again = get(&path, &[("if-none-match", file.etag)]);
        assert_eq!((again.status(), again.body().len()), (StatusCode::NOT_MODIFIED, 0));
    }
    assert_eq!(get("/favicon.ico", &[]).headers()[CONTENT_TYPE], "image/svg+xml");
}

#[test]
fn nothing_outside_of_the_files_can_be_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("web")).unwrap();
    std::fs::write(directory.path().join("secret.txt"), "secret").unwrap();
    std::fs::write(directory.path().join("web/a.js"), "1").unwrap();
    let from_disk = Portal::new("1", false, Some(directory.path().join("web")));
    let status = |path: &str| match from_disk.asked(&Method::GET, &path.parse().unwrap(), &HeaderMap::new()) {
        Some(Asked::Page(page)) => from_disk.answer(&page, &HeaderMap::new()).status().as_u16(),
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(status("/_explorer/dev/a.js"), 200);
    for path in [
        "/_explorer/dev/../secret.txt",
        "/_explorer/dev/..%2fsecret.txt",
        "/_explorer/dev/%2e%2e/secret.txt",
        "/_explorer/dev//etc/passwd",
        "/_explorer/dev/",
        "/_explorer/dev",
        "/_explorer/dev/.git",
        "/_explorer/other/a.js",
        "/_explorer/a.js",
    ] {
        assert_eq!(status(path), 404, "{path}");
    }
}

#[test]
fn the_pages_keep_to_their_sizes() {
    let all: usize = files().iter().map(|file| file.packed.len()).sum();
    assert!(all <= ALL_BYTES_MAX, "{all} bytes, more than {ALL_BYTES_MAX}");
    let first = |name: &str| name == INDEX || name == "style.css" || first_modules().contains(&name);
    let begins: usize = files().iter().filter(|file| first(file.name)).map(|file| file.packed.len()).sum();
    assert!(begins <= FIRST_BYTES_MAX, "{begins} bytes before the first page, more than {FIRST_BYTES_MAX}");
    assert!(first_modules().len() <= FIRST_MODULES_MAX, "{:?}", first_modules());
}

#[test]
fn vendored_modules_are_the_ones_that_were_made() {
    let list =
        files().iter().find(|file| file.name == "vendor/hashes.txt").expect("vendor/hashes.txt is there");
    let list = String::from_utf8(unpacked(list)).unwrap();
    let mut listed = 0;
    for line in list.lines() {
        let (hash, name) = line.split_once("  ").expect("hash and name");
        let file = files().iter().find(|file| file.name == format!("vendor/{name}"));
        let bytes = unpacked(file.unwrap_or_else(|| panic!("vendor/{name} is missing")));
        let is: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(is, hash, "vendor/{name}");
        listed += 1;
    }
    let modules =
        files().iter().filter(|file| file.name.starts_with("vendor/") && file.name != "vendor/hashes.txt");
    assert_eq!(modules.count(), listed, "every vendored file is listed");
}

/// Completion tells of every step that is taken, in the words of the reference.
#[test]
fn the_editor_knows_the_steps_of_gremlin() {
    let page = include_str!("../../../docs/compat/gremlin.md");
    let (steps, _) =
        page.split_once("## Steps").and_then(|(_, steps)| steps.split_once("### Known and refused")).unwrap();
    let list = files().iter().find(|file| file.name == "api/steps.json").expect("api/steps.json is there");
    let list = String::from_utf8(unpacked(list)).unwrap();
    let names = steps.lines().filter_map(|line| line.strip_prefix("| `")?.split('(').next());
    for name in names {
        assert!(list.contains(&format!("\"name\": \"{name}\"")), "{name} is missing in web/api/steps.json");
    }
}

/// Completion tells of every operator and stage of MongoDB, in the words of the reference.
#[test]
fn the_editor_knows_the_operators_of_mongodb() {
    let page = include_str!("../../../docs/compat/mongo.md");
    let (_, operators) = page.split_once("## Query operators").expect("the page lists operators");
    let list =
        files().iter().find(|file| file.name == "api/operators.json").expect("api/operators.json is there");
    let list = String::from_utf8(unpacked(list)).unwrap();
    for name in operators.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()) {
        assert!(
            list.contains(&format!("\"name\": \"{name}\"")),
            "{name} is missing in web/api/operators.json"
        );
    }
}

/// Completion tells of every function that there is, in the words of the reference.
#[test]
fn the_editor_knows_the_functions_of_the_reference() {
    let page = include_str!("../../../docs/reference/sql-functions.md");
    let list =
        files().iter().find(|file| file.name == "api/functions.json").expect("api/functions.json is there");
    let list = String::from_utf8(unpacked(list)).unwrap();
    let names = page.lines().filter_map(|line| line.strip_prefix("### ")?.split('(').next());
    for name in names.filter(|name| !name.starts_with('_')) {
        assert!(
            list.contains(&format!("\"name\": \"{name}\"")),
            "{name} is missing in web/api/functions.json"
        );
    }
}
