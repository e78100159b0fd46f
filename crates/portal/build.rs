//! Packs `web/` into the binary: every file compressed, one version over all of them, and the list of modules that
//! the first page needs, found by following static imports. Refuses what would be loaded from another host.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// Where the browser begins.
const ENTRY: &str = "app.js";
/// Names of XML namespaces are no addresses.
const NAMESPACES: &str = "http://www.w3.org/";

fn main() {
    let web = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where we are")).join("web");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to write"));
    println!("cargo::rerun-if-changed={}", web.display());
    let mut files = BTreeMap::new();
    collect(&web, "", &mut files);
    let mut all = Sha256::new();
    let mut table = String::new();
    for (number, (name, bytes)) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", web.join(name).display());
        refuse_other_hosts(name, bytes);
        let bytes = &without_descriptions(name, bytes);
        all.update(name.as_bytes());
        all.update([0]);
        all.update(bytes);
        let packed = out.join(format!("{number}.gz"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory takes it");
        fs::write(&packed, encoder.finish().expect("memory takes it"))
            .expect("the build directory can be written");
        let hash = hex(&Sha256::digest(bytes)[..8]);
        table.push_str(&format!(
            "    File {{ name: {name:?}, etag: {:?}, size: {}, packed: include_bytes!({:?}) }},\n",
            format!("\"{hash}\""),
            bytes.len(),
            packed.display().to_string()
        ));
    }
    let version = hex(&all.finalize()[..6]);
    let preload: Vec<String> = first_modules(&files).into_iter().collect();
    let text = format!(
        "pub const VERSION: &str = {version:?};\npub const PRELOAD: &[&str] = &{preload:?};\n\
         pub static FILES: &[File] = &[\n{table}];\n"
    );
    fs::write(out.join("files.rs"), text).expect("the build directory can be written");
}

fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("web/ is there") {
        let entry = entry.expect("web/ can be listed");
        let name = entry.file_name().into_string().expect("names are ASCII");
        if name.starts_with('.') {
            continue;
        }
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, &format!("{prefix}{name}/"), files),
            false => {
                drop(files.insert(format!("{prefix}{name}"), fs::read(&path).expect("web/ can be read")))
            }
        }
    }
}

/// Our own modules without the comments that say types: lines that are nothing but `/** … */` become empty, so that
/// every other line stays where it is. A browser has no use for them, and they are a tenth of what we write.
fn without_descriptions(name: &str, bytes: &[u8]) -> Vec<u8> {
    if name.starts_with("vendor/") || !name.ends_with(".js") {
        return bytes.to_vec();
    }
    let mut out = String::with_capacity(bytes.len());
    let mut inside = false;
    for line in std::str::from_utf8(bytes).expect("modules are UTF-8").split_inclusive('\n') {
        let text = line.trim();
        let begins = text.starts_with("/**") && text.find("*/").is_none_or(|end| end + 2 == text.len());
        let drops = inside || begins;
        inside = drops && !text.ends_with("*/");
        out.push_str(if drops { "\n" } else { line });
    }
    assert!(!inside, "web/{name}: a comment has no end, or something stands behind it");
    out.into_bytes()
}

/// Our own files name no address that a browser could load from. (`https://${host}` is text for people.) What is
/// vendored is checked by its hash, and the policy of the pages lets nothing else in.
fn refuse_other_hosts(name: &str, bytes: &[u8]) {
    if name.starts_with("vendor/") {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    for scheme in ["http://", "https://"] {
        for (at, _) in text.match_indices(scheme) {
            let rest = &text[at..];
            let after = rest[scheme.len()..].chars().next();
            let is_address =
                after.is_some_and(|c| c.is_ascii_alphanumeric()) && !rest.starts_with(NAMESPACES);
            assert!(!is_address, "web/{name} names another host: {}", rest.lines().next().unwrap_or(rest));
        }
    }
}

/// The entry and everything that it imports statically, however indirectly.
fn first_modules(files: &BTreeMap<String, Vec<u8>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![ENTRY.to_owned()];
    while let Some(name) = open.pop() {
        let Some(bytes) = files.get(&name) else { panic!("web/{name} is imported and does not exist") };
        if !found.insert(name.clone()) {
            continue;
        }
        // Minified modules import nothing here but each other, and in one line.
        for import in static_imports(&String::from_utf8_lossy(bytes)) {
            open.push(resolve(&name, &import));
        }
    }
    found
}

/// `from "./x.js"` and `import "./x.js"`, but not `import("./x.js")`.
fn static_imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in ["from", "import"] {
        for (at, _) in text.match_indices(word) {
            let rest = text[at + word.len()..].trim_start_matches(' ');
            if let Some(rest) = rest.strip_prefix('"')
                && rest.starts_with('.')
                && let Some(end) = rest.find('"')
            {
                found.push(rest[..end].to_owned());
            }
        }
    }
    found
}

fn resolve(from: &str, import: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in import.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
