//! What browsers are told about the pages: load nothing from elsewhere, run nothing that is not a file of ours, let
//! nobody frame, sniff or follow.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Of files that are no page.
const POLICY_OF_FILES: &str = "default-src 'none'; frame-ancestors 'none'";

const FIXED: &[(&str, &str)] = &[
    ("content-security-policy", POLICY_OF_FILES),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

pub fn secure(headers: &mut HeaderMap) {
    for (name, value) in FIXED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// The policy of the page itself. The nonce is for the styles that the editor makes as it runs.
pub fn policy(nonce: &str) -> HeaderValue {
    let text = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(POLICY_OF_FILES))
}
