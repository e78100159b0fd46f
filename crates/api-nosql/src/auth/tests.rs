//! Signatures, dates and roles as clients send them, and as they must not.

use super::*;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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
    read_only: bool,
    now_ms: u64,
}

impl Attempt {
    fn new(method: Method, path: &'static str, signed: &str) -> Attempt {
        let key = STANDARD.decode(EXAMPLE_KEY).unwrap();
        let signature = sign(&key, signed);
        Attempt {
            keys: AccountKeys { primary: key, ..AccountKeys::default() },
            read_only: method == Method::GET,
            method,
            path,
            authorization: Some(encode(&format!("type=master&ver=1.0&sig={signature}"))),
            date: Some(EXAMPLE_DATE),
            now_ms: EXAMPLE_MS,
        }
    }

    fn run(&self) -> std::result::Result<Access, (u16, String)> {
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
            headers: &headers,
            read_only: self.read_only,
            now_ms: self.now_ms,
        };
        Authorizer::new(&self.keys, 900)
            .authorize(&claim)
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
    assert_eq!(attempt.run(), Ok(Access::ReadWrite));
    attempt.authorization = Some(format!("type=master&ver=1.0&sig={EXAMPLE_SIGNATURE}"));
    assert_eq!(
        attempt.run(),
        Ok(Access::ReadWrite),
        "clients that do not encode, with a plus in the signature"
    );
}

#[test]
fn links_are_accepted_in_every_form_that_clients_sign() {
    let date = EXAMPLE_DATE.to_lowercase();
    let check = |method: Method, path: &'static str, signed: &str| {
        let text = format!("{}\n{signed}\n{date}\n\n", method.as_str().to_lowercase());
        assert_eq!(Attempt::new(method, path, &text).run(), Ok(Access::ReadWrite), "{path} as {signed}");
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

/// Keys × verbs: who may do what.
#[test]
fn read_only_keys_read_and_nothing_else() {
    type Slot = fn(&mut AccountKeys) -> &mut Vec<u8>;
    let slots: [(&str, Slot, bool); 4] = [
        ("primary", |keys| &mut keys.primary, true),
        ("secondary", |keys| &mut keys.secondary, true),
        ("primary_readonly", |keys| &mut keys.primary_readonly, false),
        ("secondary_readonly", |keys| &mut keys.secondary_readonly, false),
    ];
    let verbs = [
        (Method::GET, "/dbs/d/colls/c/docs/i", "docs\ndbs/d/colls/c/docs/i", true),
        (Method::POST, "/dbs/d/colls/c/docs", "docs\ndbs/d/colls/c", true),
        (Method::POST, "/dbs/d/colls/c/docs", "docs\ndbs/d/colls/c", false),
        (Method::PUT, "/dbs/d/colls/c/docs/i", "docs\ndbs/d/colls/c/docs/i", false),
        (Method::PATCH, "/dbs/d/colls/c/docs/i", "docs\ndbs/d/colls/c/docs/i", false),
        (Method::DELETE, "/dbs/d", "dbs\ndbs/d", false),
    ];
    for (name, slot, writes) in slots {
        for (method, path, signed, read_only) in &verbs {
            let text =
                format!("{}\n{signed}\n{}\n\n", method.as_str().to_lowercase(), EXAMPLE_DATE.to_lowercase());
            let mut attempt = Attempt::new(method.clone(), path, &text);
            let key = std::mem::take(&mut attempt.keys.primary);
            // Every slot holds a key of its own, the one under test holds the signer's.
            for (n, fill) in [&mut attempt.keys.primary, &mut attempt.keys.secondary].into_iter().enumerate()
            {
                *fill = vec![n as u8 + 1; 64];
            }
            *slot(&mut attempt.keys) = key;
            attempt.read_only = *read_only;
            match attempt.run() {
                Ok(_) => assert!(writes || *read_only, "{name} {method}"),
                Err((status, message)) => {
                    assert!(!writes && !read_only, "{name} {method}: {message}");
                    assert_eq!(status, 403);
                    assert!(message.starts_with("Insufficient permissions"), "{message}");
                }
            }
        }
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
    check(EMULATOR_KEY, "type=resource&ver=1.0&sig=a;b;".to_owned(), false);
}
