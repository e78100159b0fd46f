//! Bodies written by hand from the table of markers, and bodies of noise.

use super::*;

fn check(body: &[u8], expect: &str) {
    let body = [&[PREAMBLE], body].concat();
    let text = to_text(&body).unwrap_or_else(|_| panic!("{body:02X?} was refused"));
    assert_eq!(String::from_utf8(text).unwrap(), expect);
}

fn refuse(body: &[u8]) {
    let body = [&[PREAMBLE], body].concat();
    assert!(to_text(&body).is_err(), "{body:02X?} was read");
}

fn with_bytes(marker: &[u8], bytes: &[u8]) -> Vec<u8> {
    [marker, bytes].concat()
}

#[test]
fn only_the_first_byte_tells_binary_from_text() {
    assert!(is_binary(&[0x80, 0xD0]));
    assert!(!is_binary(b"{}"));
    assert!(!is_binary(b""));
}

#[test]
fn an_item_as_the_rust_sdk_writes_it() {
    let members = [
        &[0x82][..],
        b"id",
        &[0x81],
        b"1",
        &[0x82],
        b"pk",
        &[0xE5, 0x02, 0x02, 0xD0, 0xD2],
        &[0x81],
        b"n",
        &with_bytes(&[0xCB], &9007199254740993i64.to_le_bytes()),
    ]
    .concat();
    let body = [&[0xED, members.len() as u8, 3][..], &members].concat();
    check(&body, r#"{"id":"1","pk":[null,true],"n":9007199254740993}"#);
}

#[test]
fn numbers_keep_their_value() {
    check(&[0x1F], "31");
    check(&[0xC8, 0xFF], "255");
    check(&[0xD8, 0xFF], "-1");
    check(&with_bytes(&[0xC9], &(-2i16).to_le_bytes()), "-2");
    check(&with_bytes(&[0xCA], &i32::MIN.to_le_bytes()), "-2147483648");
    check(&with_bytes(&[0xDC], &u32::MAX.to_le_bytes()), "4294967295");
    check(&with_bytes(&[0xCB], &i64::MIN.to_le_bytes()), "-9223372036854775808");
    check(&with_bytes(&[0xC7], &u64::MAX.to_le_bytes()), "18446744073709551615");
    check(&with_bytes(&[0xCC], &1.5f64.to_le_bytes()), "1.5");
    check(&with_bytes(&[0xCC], &3f64.to_le_bytes()), "3");
    check(&with_bytes(&[0xCC], &1e300f64.to_le_bytes()), "1e300");
    check(&with_bytes(&[0xCD], &0.25f32.to_le_bytes()), "0.25");
    refuse(&with_bytes(&[0xCC], &f64::NAN.to_le_bytes()));
    refuse(&with_bytes(&[0xCC], &f64::INFINITY.to_le_bytes()));
}

#[test]
fn strings_come_in_many_forms() {
    check(&[0x2C], r#""id""#);
    check(&[0x3F], r#""_id""#);
    check(&[0x80], r#""""#);
    check(&[0x82, b'"', b'\n'], r#""\"\n""#);
    check(&with_bytes(&[0xC0, 70], &[b'y'; 70]), &format!("\"{}\"", "y".repeat(70)));
    check(&with_bytes(&[0xC1, 0x00, 0x01], &[b'y'; 256]), &format!("\"{}\"", "y".repeat(256)));
    check(&[0x78, 3, 0x21, 0x0F], r#""12f""#);
    check(&[0x7A, 4, 0x21, 0xFC], r#""01-Z""#);
    check(&[0x7B, 2, b'a', 0x10], r#""ab""#);
    check(&[0x7E, 2, 0xE1, 0x30], r#""aa""#);
    check(&[0x71, 1, 1, b'h', b'i'], r#""aGk=""#);
    check(&[0x71, 1, !1, b'h', b'i'], r#""aGk""#);
    check(&[0xDD, 2, b'h', b'i'], r#""aGk=""#);
    refuse(&[0x82, 0xFF, 0xFE]);
    refuse(&[0x40]);
}

#[test]
fn guids_are_spelled_as_they_were() {
    let digits: Vec<u8> = (0..16).map(|n| n * 0x11).collect();
    let text = "00112233-4455-6677-8899-aabbccddeeff";
    check(&with_bytes(&[0x75], &digits), &format!("\"{text}\""));
    check(&with_bytes(&[0x76], &digits), &format!("\"{}\"", text.to_uppercase()));
    check(&with_bytes(&[0x77], &digits), &format!(r#""\"{text}\"""#));
    check(&with_bytes(&[0xD3], &digits), r#""33221100-5544-7766-8899-aabbccddeeff""#);
}

#[test]
fn a_string_may_refer_to_an_earlier_one_but_not_to_a_reference() {
    check(&[0xE5, 4, 2, 0x81, b'a', 0xC3, 4], r#"["a","a"]"#);
    refuse(&[0xE5, 4, 2, 0xC3, 4, 0xC3, 6]);
    refuse(&[0xC3, 200]);
}

#[test]
fn arrays_and_objects_have_the_size_they_say() {
    check(&[0xE0], "[]");
    check(&[0xE1, 0xD0], "[null]");
    check(&[0xE2, 2, 1, 2], "[1,2]");
    check(&[0xE8], "{}");
    check(&[0xE9, 0x2C, 0x07], r#"{"id":7}"#);
    check(&[0xF0, 0xD8, 3, 1, 0xFF, 2], "[1,-1,2]");
    check(&[0xF2, 0xF0, 0xD7, 2, 2, 1, 2, 3, 4], "[[1,2],[3,4]]");
    refuse(&[0xE5, 2, 3, 1, 2]);
    refuse(&[0xE2, 3, 1, 2]);
    refuse(&[0xE2, 1, 0xC8, 1]);
    refuse(&[0xE9, 0x07, 0x07]);
    refuse(&[0xD0, 0xD0]);
    refuse(&[]);
}

#[test]
fn depth_and_growth_are_bounded() {
    let nested = |depth: usize| [vec![0xE1; depth], vec![0xD0]].concat();
    let text = format!("{}null{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
    check(&nested(DEPTH_MAX), &text);
    refuse(&nested(DEPTH_MAX + 1));

    // A string of 64 KB, and 60,000 references to it: 4 GB as text.
    let string = with_bytes(&[0xC1, 0xFF, 0xFF], &[b'y'; 0xFFFF]);
    let entries = [string, [0xC3, 6].repeat(60_000)].concat();
    refuse(&[&[0xE4][..], &(entries.len() as u32).to_le_bytes(), &entries].concat());
    // Rows that are empty take no bytes; as many as can be asked for are still little text.
    check(&[0xF2, 0xF0, 0xD7, 0, 2], "[[],[]]");
}

#[test]
fn noise_is_refused_or_read_but_never_a_panic() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..200_000 {
        let mut body = vec![PREAMBLE];
        for _ in 0..24 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            body.push((state >> 56) as u8);
        }
        if let Ok(text) = to_text(&body) {
            serde_json::from_slice::<serde_json::Value>(&text).expect("what was read is JSON");
        }
    }
}
