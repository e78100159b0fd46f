//! Settings from flags, environment and file: which one wins, and what a wrong one is told.

use super::*;

fn given(entries: &[(&str, &str)]) -> Given {
    entries
        .iter()
        .map(|(name, text)| {
            let setting = SETTINGS.iter().find(|setting| setting.name == *name).expect("a setting");
            (setting.name, vec![(*text).to_owned()])
        })
        .collect()
}

/// One text per setting and place, and how the three differ in the result.
#[test]
fn flag_beats_environment_beats_file_beats_default() {
    type Show = fn(&Config) -> String;
    let keys: Vec<String> =
        (1..=3u8).map(|n| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, [n; 32])).collect();
    let (one, two, three) = (keys[0].as_str(), keys[1].as_str(), keys[2].as_str());
    #[rustfmt::skip]
    let table: Vec<(&str, [&str; 3], Show)> = vec![
        ("listen", ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"], |c| c.listen[0].to_string()),
        ("table-listen", ["127.0.0.1:1", "off", "127.0.0.1:3"], |c| match &c.table_listen { ApiListen::At(at) => at[0].to_string(), other => format!("{other:?}").to_lowercase() }),
        ("gremlin-listen", ["127.0.0.1:1", "off", "127.0.0.1:3"], |c| match &c.gremlin_listen { ApiListen::At(at) => at[0].to_string(), other => format!("{other:?}").to_lowercase() }),
        ("gremlin-results", ["cosmos", "typed", "cosmos"], |c| format!("{:?}", c.gremlin_results).to_lowercase()),
        ("mongo-listen", ["127.0.0.1:1", "off", "127.0.0.1:3"], |c| match &c.mongo_listen { ApiListen::At(at) => at[0].to_string(), other => format!("{other:?}").to_lowercase() }),
        ("mongo-auth", ["off", "required", "off"], |c| format!("{:?}", c.mongo_auth).to_lowercase()),
        ("mongo-version", ["5.0", "8.0", "6.0"], |c| c.mongo_version.feature()),
        ("table-dialect", ["cosmos", "storage", "auto"], |c| format!("{:?}", c.table_dialect).to_lowercase()),
        ("data-dir", ["/a", "/b", "/c"], |c| c.data_dir.display().to_string()),
        ("ephemeral", ["true", "false", "true"], |c| c.ephemeral.to_string()),
        ("store", ["file:/a", "file:/b", "file:/c"], |c| format!("file:{}", c.store.as_ref().unwrap().whole())),
        ("durability", ["relaxed", "strict", "relaxed"], |c| format!("{:?}", c.durability).to_lowercase()),
        ("key", [one, two, three], |c| c.keys.primary.clone()),
        ("secondary-key", [one, two, three], |c| c.keys.secondary.clone().unwrap()),
        ("readonly-key", [one, two, three], |c| c.keys.readonly.clone().unwrap()),
        ("secondary-readonly-key", [one, two, three], |c| c.keys.secondary_readonly.clone().unwrap()),
        ("allowed-hosts", ["a.example", "b.example", "c.example"], |c| c.allowed_hosts.join(" ")),
        ("metrics-auth", ["on", "off", "on"], |c| if c.metrics_auth { "on" } else { "off" }.to_string()),
        ("tls", ["off", "required", "optional"], |c| format!("{:?}", c.tls).to_lowercase()),
        ("tls-name", ["a.example", "b.example", "c.example"], |c| c.tls_names.join(" ")),
        ("partition-throughput-limit", ["1000", "2000", "3000"], |c| c.partition_throughput_limit.to_string()),
        ("partition-size-limit", ["1000", "2000", "3000"], |c| c.partition_size_limit_bytes.to_string()),
        ("query-page-time", ["1s", "2s", "3s"], |c| format!("{}s", c.query_page_time.as_secs())),
        ("script-timeout", ["1s", "2s", "3s"], |c| format!("{}s", c.script_timeout.as_secs())),
        ("script-memory", ["1000", "2000", "3000"], |c| c.script_memory_bytes.to_string()),
        ("gremlin-memory", ["1000", "2000", "3000"], |c| c.gremlin_memory_bytes.to_string()),
        ("memory-limit", ["1000000000", "2000000000", "3000000000"], |c| c.memory_limit_bytes.to_string()),
        ("cache-size", ["1000", "2000", "3000"], |c| c.cache_size_bytes.to_string()),
        ("logical-partition-size-limit", ["1000", "2000", "3000"], |c| c.logical_partition_size_limit_bytes.to_string()),
        ("direct-mode", ["off", "on", "off"], |c| if c.direct_mode { "on" } else { "off" }.into()),
        ("cross-partition-queries", ["server", "sdk", "server"], |c| format!("{:?}", c.cross_partition_queries).to_lowercase()),
        ("throttling", ["on", "off", "on"], |c| if c.throttling { "on" } else { "off" }.to_string()),
        ("import", ["/a", "/b", "/c"], |c| c.import.as_ref().unwrap().display().to_string()),
        ("export-on-exit", ["/a", "/b", "/c"], |c| c.export_on_exit.as_ref().unwrap().display().to_string()),
        ("record", ["/a", "/b", "/c"], |c| c.record.as_ref().unwrap().display().to_string()),
        ("test-controls", ["on", "off", "on"], |c| if c.test_controls { "on" } else { "off" }.to_string()),
        ("faults", ["/a", "/b", "/c"], |c| c.faults.as_ref().unwrap().display().to_string()),
        ("burst", ["on", "off", "on"], |c| if c.burst { "on" } else { "off" }.to_string()),
        ("capacity", ["serverless", "provisioned", "serverless"], |c| if c.serverless { "serverless" } else { "provisioned" }.to_string()),
        ("consistency", ["strong", "eventual", "session"], |c| format!("{:?}", c.consistency).to_lowercase()),
        ("account-name", ["a", "b", "c"], |c| c.account_name.clone()),
        ("region", ["a", "b", "c"], |c| c.region.clone()),
        ("workers", ["1", "2", "3"], |c| c.workers.to_string()),
        ("connections-max", ["1", "2", "3"], |c| c.connections_max.to_string()),
        ("request-timeout", ["1s", "2s", "3s"], |c| format!("{:?}", c.request_timeout)),
        ("idle-timeout", ["1s", "2s", "3s"], |c| format!("{:?}", c.idle_timeout)),
        ("shutdown-timeout", ["1s", "2s", "3s"], |c| format!("{:?}", c.shutdown_timeout)),
        ("log-format", ["json", "text", "json"], |c| format!("{:?}", c.log.format).to_lowercase()),
        ("portal", ["off", "on", "off"], |c| if c.portal == PortalMode::Off { "off" } else { "on" }.into()),
        ("portal-dir", ["/a", "/b", "/c"], |c| match &c.portal {
            PortalMode::FromDirectory(path) => path.display().to_string(),
            mode => format!("{mode:?}"),
        }),
        ("log-level", ["warn", "debug", "error"], |c| c.log.level.clone()),
        ("log-requests", ["off", "errors", "on"], |c| format!("{:?}", c.log.requests).to_lowercase()),
        ("log-requests-rate", ["1", "2", "3"], |c| c.log.requests_rate_max.to_string()),
    ];
    let covered: Vec<&str> =
        table.iter().map(|(name, ..)| *name).chain(["tls-certificate", "tls-key"]).collect();
    for setting in SETTINGS {
        assert!(covered.contains(&setting.name), "`{}` is missing in this table", setting.name);
    }
    let none = Given::new();
    for (name, [flag, environment, file], show) in table {
        let (f, e, t) = (given(&[(name, flag)]), given(&[(name, environment)]), given(&[(name, file)]));
        assert_eq!(show(&resolve(&f, &e, &t).unwrap()), flag, "{name} by flag");
        assert_eq!(show(&resolve(&none, &e, &t).unwrap()), environment, "{name} by environment");
        assert_eq!(show(&resolve(&none, &none, &t).unwrap()), file, "{name} by file");
    }
    let mut untouched = resolve(&none, &none, &none).unwrap();
    untouched.data_dir.clone_from(&defaults().data_dir);
    assert_eq!(untouched, defaults());
}

#[test]
fn the_defaults_shown_in_the_help_are_the_defaults() {
    for setting in SETTINGS {
        let mut config = defaults();
        if setting.default.is_empty() || (setting.set)(&mut config, &[setting.default.to_owned()]).is_err() {
            continue; // A sentence, not a value.
        }
        if setting.name != "data-dir" && !setting.name.starts_with("tls-") {
            assert_eq!(config, defaults(), "{}", setting.name);
        }
    }
}

#[test]
fn the_environment_name_follows_from_the_name() {
    let variables = [
        ("ORRERY_DATA_DIR", "/x"),
        ("ORRERY_LISTN", "typo"),
        ("ORRERY_SERVICE_HOST", "10.0.0.1"),
        ("ORRERY_PORT_8081_TCP", "tcp://"),
        ("HOME", "/root"),
    ];
    let (given, unknown) = from_environment(variables.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())));
    assert_eq!(given.keys().copied().collect::<Vec<_>>(), ["data-dir"]);
    assert_eq!(unknown, ["ORRERY_LISTN"]);
}

#[test]
fn ephemeral_and_a_directory_exclude_each_other_in_one_place() {
    let none = Given::new();
    let both = given(&[("ephemeral", "true"), ("data-dir", "/d")]);
    assert!(resolve(&both, &none, &none).unwrap_err().0.contains("give one of them"));
    let (ephemeral, directory) = (given(&[("ephemeral", "true")]), given(&[("data-dir", "/d")]));
    assert!(resolve(&ephemeral, &none, &directory).unwrap().ephemeral);
    assert!(!resolve(&directory, &none, &ephemeral).unwrap().ephemeral);
    let declined = given(&[("ephemeral", "false"), ("data-dir", "/d")]);
    assert!(!resolve(&declined, &none, &none).unwrap().ephemeral);
}

#[test]
fn the_well_known_key_stays_on_loopback() {
    let none = Given::new();
    let open = given(&[("listen", "127.0.0.1:0, 0.0.0.0:8081")]);
    let refusal = resolve(&open, &none, &none).unwrap_err().0;
    assert!(refusal.contains("0.0.0.0:8081") && refusal.contains("orrery key new"), "{refusal}");
    let own = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, [7u8; 64]);
    let with_key = given(&[("listen", "0.0.0.0:8081"), ("key", &own)]);
    assert!(resolve(&with_key, &none, &none).is_ok());
    let well_known_secondary =
        given(&[("listen", "0.0.0.0:8081"), ("key", &own), ("secondary-key", EMULATOR_KEY)]);
    assert!(
        resolve(&well_known_secondary, &none, &none).is_err(),
        "a second door with the public key is as open"
    );
    assert!(resolve(&given(&[("listen", "[::1]:0")]), &none, &none).is_ok());
    let tables = resolve(&given(&[("table-listen", "0.0.0.0:8902")]), &none, &none).unwrap_err().0;
    assert!(tables.contains("--table-listen 127.0.0.1:8902"), "{tables}");
}

#[test]
fn a_wrong_value_names_its_place_and_what_is_allowed() {
    let none = Given::new();
    let wrong = given(&[("durability", "fast")]);
    for (result, place) in [
        (resolve(&wrong, &none, &none), "--durability:"),
        (resolve(&none, &wrong, &none), "ORRERY_DURABILITY:"),
        (resolve(&none, &none, &wrong), "`durability` in the configuration file:"),
    ] {
        let text = result.unwrap_err().0;
        assert!(text.starts_with(place) && text.contains("allowed: strict, relaxed"), "{text}");
    }
}

#[test]
fn an_unknown_key_of_the_file_names_the_allowed_ones() {
    let problem = file::parse("listn = '127.0.0.1:1'").unwrap_err().0;
    assert!(problem.contains("did you mean `listen`?"), "{problem}");
    for setting in SETTINGS {
        assert!(problem.contains(setting.name), "{}", setting.name);
    }
    assert!(file::parse("[listen]\nport = 1").unwrap_err().0.contains("allowed: a text"));
    assert!(file::parse("workers = [1]").unwrap_err().0.contains("allowed"));
    assert!(file::parse("workers = ").is_err());
}

#[test]
fn a_file_takes_texts_numbers_switches_and_lists() {
    let text = "listen = ['127.0.0.1:1', '[::1]:2']\nworkers = 3\nephemeral = true\npartition-size-limit = '10MiB'\n";
    let config = resolve(&Given::new(), &Given::new(), &file::parse(text).unwrap()).unwrap();
    assert_eq!((config.listen.len(), config.workers, config.ephemeral), (2, 3, true));
    assert_eq!(config.partition_size_limit_bytes, 10 << 20);
}

#[test]
fn the_data_directory_follows_the_platform() {
    let with = |xdg: Option<&str>, home: Option<&str>| {
        super::defaults::default_data_dir(|name| if name == "HOME" { home } else { xdg }.map(PathBuf::from))
    };
    assert_eq!(with(Some("/x"), Some("/h")), PathBuf::from("/x/orrery"));
    assert_eq!(with(Some("relative"), Some("/h")), PathBuf::from("/h/.local/share/orrery"));
    assert_eq!(with(None, None), PathBuf::from("orrery-data"));
}

#[test]
fn keys_do_not_reach_debug_output() {
    assert_eq!(format!("{:?}", defaults().keys), "Keys(well_known: true)");
}
