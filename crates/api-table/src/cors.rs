//! What web pages of other sites may ask, by the rules among the account's properties.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::account_properties::{CorsRule, Properties};
use crate::errors::{Code, Result, TableError};
use crate::service::{Answer, TableService};

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn lists(list: &str, wanted: &str) -> bool {
    list.split(',').map(str::trim).any(|one| one == "*" || one.eq_ignore_ascii_case(wanted))
}

/// Headers may be listed by what they begin with: `x-ms-*`.
fn lists_header(list: &str, wanted: &str) -> bool {
    list.split(',').map(str::trim).any(|one| match one.strip_suffix('*') {
        Some(start) => wanted.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
        None => one.eq_ignore_ascii_case(wanted),
    })
}

/// The first rule that lets a request through.
fn rule<'r>(rules: &'r [CorsRule], origin: &str, method: &str, headers: &str) -> Option<&'r CorsRule> {
    rules.iter().find(|rule| {
        let mut asked = headers.split(',').map(str::trim).filter(|name| !name.is_empty());
        lists(&rule.origins, origin)
            && lists(&rule.methods, method)
            && asked.all(|name| lists_header(&rule.allowed_headers, name))
    })
}

/// The answer to a browser that asks before it asks.
pub fn preflight(service: &TableService, headers: &HeaderMap) -> Result<Answer> {
    let refused = || TableError::from(Code::CorsPreflightFailure);
    let origin = text(headers, ORIGIN).ok_or_else(|| TableError::from(Code::MissingRequiredHeader))?;
    let method = text(headers, ACCESS_CONTROL_REQUEST_METHOD)
        .ok_or_else(|| TableError::from(Code::MissingRequiredHeader))?;
    let asked = text(headers, ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or("");
    let properties = Properties::of_account(service)?;
    let rule = rule(&properties.cors, origin, method, asked).ok_or_else(refused)?;
    let mut answer = Answer::new(StatusCode::OK)
        .set(ACCESS_CONTROL_ALLOW_METHODS, method)
        .set(ACCESS_CONTROL_ALLOW_HEADERS, asked)
        .set(ACCESS_CONTROL_MAX_AGE, &rule.max_age_s);
    allow_origin(rule, origin, &mut answer.headers);
    Ok(answer)
}

/// Lets the page that sent a request see its answer, if a rule does.
pub fn allow(service: &TableService, method: &Method, sent: &HeaderMap, answer: &mut HeaderMap) {
    let Some(origin) = text(sent, ORIGIN) else { return };
    let Ok(properties) = Properties::of_account(service) else { return };
    let Some(rule) = rule(&properties.cors, origin, method.as_str(), "") else { return };
    if let Ok(exposed) = HeaderValue::from_str(&rule.exposed_headers) {
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    allow_origin(rule, origin, answer);
}

/// Names the site that may see an answer. A rule for all sites is not one for their users' credentials.
fn allow_origin(rule: &CorsRule, origin: &str, answer: &mut HeaderMap) {
    if rule.origins.split(',').any(|one| one.trim() == "*") {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        return;
    }
    if let Ok(origin) = HeaderValue::from_str(origin) {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    answer.insert(VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_let_through_what_they_list() {
        let given = CorsRule {
            origins: "http://a.example, http://b.example".into(),
            methods: "GET,PUT".into(),
            allowed_headers: "x-ms-*,accept".into(),
            ..CorsRule::default()
        };
        let rules = [given];
        for (origin, method, headers, expected) in [
            ("http://a.example", "GET", "", true),
            ("http://b.example", "PUT", "x-ms-version, Accept", true),
            ("http://c.example", "GET", "", false),
            ("http://a.example", "DELETE", "", false),
            ("http://a.example", "GET", "authorization", false),
        ] {
            assert_eq!(
                rule(&rules, origin, method, headers).is_some(),
                expected,
                "{origin} {method} {headers}"
            );
        }
        assert!(rule(&[], "http://a.example", "GET", "").is_none());
        let any = [CorsRule { origins: "*".into(), methods: "GET".into(), ..CorsRule::default() }];
        assert!(rule(&any, "http://x", "GET", "").is_some());
    }
}
