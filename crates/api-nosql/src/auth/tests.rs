//! Signatures, dates and roles as clients send them, and as they must not.

use super::*;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::HeaderValue;

// 27 April 2017, 00:51:12, the date of the example in the vendor's documentation of this scheme.
const EXAMPLE_DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
const EXAMPLE_MS: u64 = 1_493_254_272_000;
const EXAMPLE_KEY: &str =
    "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
const EXAMPLE_SIGNATURE: &str = "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=";

fn sign(key: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

struct Attempt {
    keys: AccountKeys,
    method: Method,
    path: &'static str,
    authorization: Option<String>,
    date: Option<&'static str>,
    now_ms: u64,
}

const WRITER: Principal = Principal::Key(KeySlot::Primary);

impl Attempt {
    fn new(method: Method, path: &'static str, signed: &str) -> Attempt {
        let key = STANDARD.decode(EXAMPLE_KEY).unwrap();
        let signature = sign(&key, signed);
        Attempt {
            keys: AccountKeys { primary: key, ..AccountKeys::default() },
            method,
            path,
            authorization: Some(encode(&format!("type=master&ver=1.0&sig={signature}"))),
            date: Some(EXAMPLE_DATE),
            now_ms: EXAMPLE_MS,
        }
    }

    fn run(&self) -> std::result::Result<Principal, (u16, String)> {
        let mut headers = HeaderMap::new();
        if let Some(text) = &self.authorization {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(text).unwrap());
        }
        if let Some(date) = self.date {
            headers.insert(X_MS_DATE, HeaderValue::from_static(date));
        }
        let path = Path::parse(self.path).unwrap();
        let claim = Claim {
            method: &self.method,
            path: &path,
            fields: Fields::of_headers(&headers),
            now_ms: self.now_ms,
            moved_ms: 0,
        };
        Authorizer::new(&self.keys, 1, 900)
            .recognise(&claim)
            .map_err(|error| (error.status.as_u16(), error.message.clone()))
    }
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[test]
fn the_documented_example_is_accepted() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/ToDoList", "");
    attempt.authorization = Some(encode(&format!("type=master&ver=1.0&sig={EXAMPLE_SIGNATURE}")));
    assert_eq!(attempt.run(), Ok(WRITER));
    attempt.authorization = Some(format!("type=master&ver=1.0&sig={EXAMPLE_SIGNATURE}"));
    assert_eq!(attempt.run(), Ok(WRITER), "clients that do not encode, with a plus in the signature");
}

#[test]
fn links_are_accepted_in_every_form_that_clients_sign() {
    let date = EXAMPLE_DATE.to_lowercase();
    let check = |method: Method, path: &'static str, signed: &str| {
        let text = format!("{}\n{signed}\n{date}\n\n", method.as_str().to_lowercase());
        assert_eq!(Attempt::new(method, path, &text).run(), Ok(WRITER), "{path} as {signed}");
    };
    check(Method::GET, "/", "\n");
    check(Method::POST, "/dbs", "dbs\n");
    check(Method::GET, "/dbs/d/colls/c/docs/A%20b/", "docs\ndbs/d/colls/c/docs/A b");
    check(Method::GET, "/dbs/d/colls/c/docs/A%20b", "docs\ndbs/d/colls/c/docs/A%20b");
    check(Method::POST, "/dbs/d/colls/c/docs/", "docs\ndbs/d/colls/c");
    check(Method::GET, "/dbs/AAAAAQ==/colls/AAAAAYAAAAI=/pkranges", "pkranges\naaaaayaaaai=");
    check(Method::PUT, "/offers/AbCd", "offers\nabcd");
    check(Method::POST, "/dbs/d/colls/c/operations/partitionkeydelete", "colls\ndbs/d/colls/c");
}

#[test]
fn a_missing_or_unreadable_token_is_401_in_the_services_words() {
    let mut attempt = Attempt::new(Method::GET, "/dbs", "");
    attempt.authorization = None;
    let (status, message) = attempt.run().unwrap_err();
    assert_eq!(status, 401);
    assert!(message.starts_with("Required Header authorization is missing."), "{message}");
    for text in
        ["x", "type=master", "type%3Dmaster%26ver%3D1.0%26sig%3D!!", "type=master&ver=1.0&sig=AAAA", "%FF"]
    {
        attempt.authorization = Some(text.to_owned());
        let (status, message) = attempt.run().unwrap_err();
        assert_eq!(status, 401, "{text}");
        assert!(message.starts_with("Authorization header doesn't confirm"), "{message}");
    }
    attempt.authorization = Some("type=master&ver=1.0&sig=".to_owned() + &"A".repeat(100_000));
    assert_eq!(attempt.run().unwrap_err().0, 401);
}

#[test]
fn a_wrong_signature_is_401_and_shows_what_the_server_signed() {
    let attempt = Attempt::new(Method::GET, "/dbs/d", "something else");
    let (status, message) = attempt.run().unwrap_err();
    assert_eq!(status, 401);
    assert!(message.starts_with("The input authorization token can't serve the request."), "{message}");
    assert!(message.ends_with("to sign: 'get\ndbs\ndbs/d\nthu, 27 apr 2017 00:51:12 gmt\n\n'"), "{message}");
}

#[test]
fn a_date_further_away_than_the_skew_is_403() {
    let text = format!("get\ndbs\ndbs/d\n{}\n\n", EXAMPLE_DATE.to_lowercase());
    for (apart_s, good) in [(-901_i64, false), (-900, true), (0, true), (900, true), (901, false)] {
        let mut attempt = Attempt::new(Method::GET, "/dbs/d", &text);
        attempt.now_ms = EXAMPLE_MS.saturating_add_signed(apart_s * 1000);
        match attempt.run() {
            Ok(_) => assert!(good, "{apart_s}"),
            Err((status, message)) => {
                assert!(!good, "{apart_s}");
                assert_eq!(status, 403);
                assert!(message.starts_with("The authorization token is not valid at the current time."));
            }
        }
    }
}

#[test]
fn a_request_without_a_date_is_401() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/d", "get\ndbs\ndbs/d\n\n\n");
    attempt.date = None;
    assert_eq!(attempt.run().unwrap_err().0, 401);
    let mut attempt = Attempt::new(Method::GET, "/dbs/d", "get\ndbs\ndbs/d\nyesterday\n\n");
    attempt.date = Some("yesterday");
    assert_eq!(attempt.run().unwrap_err().0, 401, "signed, but no date");
}

#[test]
fn each_key_is_recognised_by_its_place() {
    type Slot = fn(&mut AccountKeys) -> &mut Vec<u8>;
    let slots: [(Slot, KeySlot); 4] = [
        (|keys| &mut keys.primary, KeySlot::Primary),
        (|keys| &mut keys.secondary, KeySlot::Secondary),
        (|keys| &mut keys.primary_readonly, KeySlot::PrimaryReadonly),
        (|keys| &mut keys.secondary_readonly, KeySlot::SecondaryReadonly),
    ];
    let text = format!("get\ndbs\ndbs/d\n{}\n\n", EXAMPLE_DATE.to_lowercase());
    for (slot, expected) in &slots {
        let mut attempt = Attempt::new(Method::GET, "/dbs/d", &text);
        let key = std::mem::take(&mut attempt.keys.primary);
        // Every slot holds a key of its own, the one under test holds the signer's.
        for (n, (fill, _)) in slots.iter().enumerate() {
            *fill(&mut attempt.keys) = vec![n as u8 + 1; 64];
        }
        *slot(&mut attempt.keys) = key;
        assert_eq!(attempt.run(), Ok(Principal::Key(*expected)));
    }
}

#[test]
fn an_absent_key_is_never_matched() {
    let text = format!("get\ndbs\ndbs/d\n{}\n\n", EXAMPLE_DATE.to_lowercase());
    let mut attempt = Attempt::new(Method::GET, "/dbs/d", &text);
    attempt.authorization = Some(encode(&format!("type=master&ver=1.0&sig={}", sign(b"", &text))));
    assert_eq!(attempt.run().unwrap_err().0, 401);
}

fn emulator_token(key: &str, kid: &str, expires_s: u64) -> String {
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    format!(
        "type=aad&ver=1.0&sig={}.{}.{}",
        part(format!(r#"{{"typ":"JWT","alg":"RS256","kid":"{kid}"}}"#)),
        part(format!(
            r#"{{"aud":"https://localhost.localhost","nbf":{},"exp":{expires_s}}}"#,
            EXAMPLE_MS / 1000
        )),
        part(key.to_owned()),
    )
}

#[test]
fn the_emulators_directory_token_is_good_only_with_the_well_known_key() {
    let later = EXAMPLE_MS / 1000 + 7200;
    let kid = "CosmosEmulatorPrimaryMaster";
    let check = |account_key: &str, token: String, good: bool| {
        let mut attempt = Attempt::new(Method::GET, "/dbs/d", "");
        attempt.keys.primary = STANDARD.decode(account_key).unwrap();
        attempt.authorization = Some(token);
        attempt.date = None;
        assert_eq!(attempt.run().is_ok(), good);
    };
    check(EMULATOR_KEY, emulator_token(EMULATOR_KEY, kid, later), true);
    check(EXAMPLE_KEY, emulator_token(EMULATOR_KEY, kid, later), false);
    check(EXAMPLE_KEY, emulator_token(EXAMPLE_KEY, kid, later), false);
    check(EMULATOR_KEY, emulator_token(EXAMPLE_KEY, kid, later), false);
    check(EMULATOR_KEY, emulator_token(EMULATOR_KEY, "other", later), false);
    check(EMULATOR_KEY, emulator_token(EMULATOR_KEY, kid, 1), false);
    check(EMULATOR_KEY, "type=aad&ver=1.0&sig=a.b".to_owned(), false);
}

fn grant() -> Grant {
    Grant {
        database: 2,
        user: 3,
        permission: 4,
        mode: orrery_engine::PermissionMode::Read,
        start_s: (EXAMPLE_MS / 1000) as u32,
        expiry_s: (EXAMPLE_MS / 1000) as u32 + 600,
        resource: crate::access::granted("dbs/d/colls/c", false).unwrap(),
        partition_key: None,
    }
}

/// A token made by a key of account 1.
fn resource_token(keys: &AccountKeys, slot: KeySlot) -> Option<String> {
    Authorizer::new(keys, 1, 900).issue(&Principal::Key(slot), &grant(), 7)
}

#[test]
fn a_resource_token_is_recognised_with_or_without_encoding() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/d/colls/c", "");
    let token = resource_token(&attempt.keys, KeySlot::Primary).unwrap();
    attempt.date = None;
    for text in [token.clone(), encode(&token), token.replace("ver=1&", "ver=1.0&")] {
        attempt.authorization = Some(text);
        let Ok(Principal::Granted(got)) = attempt.run() else { panic!("{:?}", attempt.run()) };
        assert_eq!(*got, grant());
    }
}

#[test]
fn a_resource_token_ends_with_its_time() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/d/colls/c", "");
    attempt.authorization = resource_token(&attempt.keys, KeySlot::Primary);
    for (later_ms, good) in
        [(-900_000_i64, true), (-900_001, false), (0, true), (599_999, true), (600_000, false)]
    {
        attempt.now_ms = EXAMPLE_MS.saturating_add_signed(later_ms);
        match attempt.run() {
            Ok(_) => assert!(good, "{later_ms}"),
            Err((status, message)) => {
                assert!(!good, "{later_ms}");
                assert_eq!(status, 403);
                assert!(message.contains("token expiry time: Thu, 27 Apr 2017 01:01:12 GMT"), "{message}");
            }
        }
    }
}

#[test]
fn a_resource_token_ends_with_the_key_it_was_made_under() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/d/colls/c", "");
    attempt.keys.secondary = vec![9; 64];
    attempt.authorization = resource_token(&attempt.keys, KeySlot::Secondary);
    assert!(attempt.run().is_ok());
    attempt.keys.primary = vec![8; 64];
    assert!(attempt.run().is_ok(), "the other key was changed");
    attempt.keys.secondary = vec![7; 64];
    let (status, message) = attempt.run().unwrap_err();
    assert_eq!(status, 401);
    assert!(message.starts_with("The input authorization token can't serve the request."), "{message}");
    assert!(!message.contains("payload to sign"), "{message}");
    // The same bytes as a key that only reads sign nothing.
    attempt.keys.primary_readonly = vec![9; 64];
    assert_eq!(attempt.run().unwrap_err().0, 401);
}

#[test]
fn a_resource_token_is_good_for_its_account_alone() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/d/colls/c", "");
    attempt.authorization = Authorizer::new(&attempt.keys, 2, 900).issue(&WRITER, &grant(), 7);
    assert_eq!(attempt.run().unwrap_err().0, 401);
}

#[test]
fn only_keys_that_write_make_tokens() {
    let keys = AccountKeys { primary: vec![1; 64], primary_readonly: vec![3; 64], ..AccountKeys::default() };
    assert!(resource_token(&keys, KeySlot::Primary).is_some());
    assert!(resource_token(&keys, KeySlot::Secondary).is_none(), "it is not there");
    assert!(resource_token(&keys, KeySlot::PrimaryReadonly).is_none());
    let authorizer = Authorizer::new(&keys, 1, 900);
    assert!(authorizer.issue(&Principal::Directory, &grant(), 7).is_some());
    assert!(authorizer.issue(&Principal::Granted(Box::new(grant())), &grant(), 7).is_none());
}

#[test]
fn a_malformed_resource_token_is_401() {
    let mut attempt = Attempt::new(Method::GET, "/dbs/d/colls/c", "");
    for text in ["type=resource&ver=1&sig=", "type=resource&ver=1&sig=a;b;", "type=resource&ver=1&sig=;;"] {
        attempt.authorization = Some(text.to_owned());
        assert_eq!(attempt.run().unwrap_err().0, 401, "{text}");
    }
}

#[test]
fn escapes_are_resolved_as_everywhere() {
    let parts = ["%", "%3", "%3D", "%3d", "%zz", "a", "=", "+", "%C3%A4", "%C3", "ä", "%25", "%%41"];
    for first in parts {
        for second in parts {
            for third in parts {
                let text = format!("{first}{second}{third}");
                let want = percent_encoding::percent_decode_str(&text).decode_utf8().ok();
                assert_eq!(decoded(&text), want, "{text}");
            }
        }
    }
}
