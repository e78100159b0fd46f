//! The properties of the account (logging, metrics, CORS) and its statistics, as XML.
//!
//! Logging and metrics are kept and shown and change nothing: the server has its own. The rules of CORS are followed.

use http::StatusCode;

use crate::errors::{Code, Result, TableError};
use crate::service::{Answer, Context, TableService};
use crate::service_store::{self, ACCOUNT};
use crate::xml::{self, Element};

const PROPERTIES: &str = "properties";
const RULES_MAX: usize = 5;
const RETENTION_DAYS_MAX: u32 = 365;
const READ_RU: f64 = 1.0;

/// A rule of CORS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CorsRule {
    pub origins: String,
    pub methods: String,
    pub allowed_headers: String,
    pub exposed_headers: String,
    pub max_age_s: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Metrics {
    version: String,
    enabled: bool,
    include_apis: Option<bool>,
    retention_days: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Logging {
    version: String,
    delete: bool,
    read: bool,
    write: bool,
    retention_days: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    logging: Logging,
    hour_metrics: Metrics,
    minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
}

impl Default for Properties {
    fn default() -> Properties {
        let metrics =
            Metrics { version: "1.0".into(), enabled: false, include_apis: None, retention_days: None };
        Properties {
            logging: Logging {
                version: "1.0".into(),
                delete: false,
                read: false,
                write: false,
                retention_days: None,
            },
            hour_metrics: metrics.clone(),
            minute_metrics: metrics,
            cors: Vec::new(),
        }
    }
}

fn invalid() -> TableError {
    Code::InvalidXmlDocument.into()
}

fn flag(element: &Element, name: &str) -> Result<Option<bool>> {
    match element.value(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(invalid()),
    }
}

/// The days that a retention policy keeps; `None` where it keeps nothing.
fn retention(element: &Element) -> Result<Option<u32>> {
    let Some(policy) = element.child("RetentionPolicy") else { return Ok(None) };
    if flag(policy, "Enabled")? != Some(true) {
        return Ok(None);
    }
    let days = policy.value("Days").and_then(|days| days.parse().ok());
    days.filter(|days| (1..=RETENTION_DAYS_MAX).contains(days)).map(Some).ok_or_else(invalid)
}

fn metrics(element: &Element) -> Result<Metrics> {
    let enabled = flag(element, "Enabled")?.ok_or_else(invalid)?;
    let include_apis = flag(element, "IncludeAPIs")?;
    Ok(Metrics {
        version: element.value("Version").unwrap_or("1.0").to_owned(),
        enabled,
        include_apis: include_apis.filter(|_| enabled),
        retention_days: retention(element)?,
    })
}

fn logging(element: &Element) -> Result<Logging> {
    let flag = |name| flag(element, name)?.ok_or_else(invalid);
    Ok(Logging {
        version: element.value("Version").unwrap_or("1.0").to_owned(),
        delete: flag("Delete")?,
        read: flag("Read")?,
        write: flag("Write")?,
        retention_days: retention(element)?,
    })
}

fn cors(element: &Element) -> Result<Vec<CorsRule>> {
    if element.children.len() > RULES_MAX {
        return Err(invalid());
    }
    let rule = |rule: &Element| {
        let text = |name: &str| rule.value(name).unwrap_or("").to_owned();
        let parsed = CorsRule {
            origins: text("AllowedOrigins"),
            methods: text("AllowedMethods"),
            allowed_headers: text("AllowedHeaders"),
            exposed_headers: text("ExposedHeaders"),
            max_age_s: rule.value("MaxAgeInSeconds").unwrap_or("0").to_owned(),
        };
        let usable = rule.name == "CorsRule"
            && !parsed.origins.is_empty()
            && !parsed.methods.is_empty()
            && parsed.max_age_s.parse::<u32>().is_ok();
        usable.then_some(parsed).ok_or_else(invalid)
    };
    element.children.iter().map(rule).collect()
}

impl Properties {
    /// The same with what a document says: what it does not name stays.
    fn changed(mut self, body: &[u8]) -> Result<Properties> {
        let text = std::str::from_utf8(body).map_err(|_| invalid())?;
        let root = Element::parse(text)
            .filter(|root| root.name == "StorageServiceProperties")
            .ok_or_else(invalid)?;
        for element in &root.children {
            match element.name.as_str() {
                "Logging" => self.logging = logging(element)?,
                "HourMetrics" => self.hour_metrics = metrics(element)?,
                "MinuteMetrics" => self.minute_metrics = metrics(element)?,
                "Cors" => self.cors = cors(element)?,
                _ => return Err(invalid()),
            }
        }
        Ok(self)
    }

    fn write(&self) -> String {
        let mut out = format!("{}<StorageServiceProperties>", xml::DECLARATION);
        let flag = |out: &mut String, name: &str, value: bool| {
            xml::push(out, name, if value { "true" } else { "false" })
        };
        let retention = |out: &mut String, days: Option<u32>| {
            out.push_str("<RetentionPolicy>");
            flag(out, "Enabled", days.is_some());
            if let Some(days) = days {
                xml::push(out, "Days", &days.to_string());
            }
            out.push_str("</RetentionPolicy>");
        };
        out.push_str("<Logging>");
        xml::push(&mut out, "Version", &self.logging.version);
        flag(&mut out, "Delete", self.logging.delete);
        flag(&mut out, "Read", self.logging.read);
        flag(&mut out, "Write", self.logging.write);
        retention(&mut out, self.logging.retention_days);
        out.push_str("</Logging>");
        for (name, metrics) in [("HourMetrics", &self.hour_metrics), ("MinuteMetrics", &self.minute_metrics)]
        {
            out.push_str(&format!("<{name}>"));
            xml::push(&mut out, "Version", &metrics.version);
            flag(&mut out, "Enabled", metrics.enabled);
            if let Some(include_apis) = metrics.include_apis {
                flag(&mut out, "IncludeAPIs", include_apis);
            }
            retention(&mut out, metrics.retention_days);
            out.push_str(&format!("</{name}>"));
        }
        out.push_str("<Cors>");
        for rule in &self.cors {
            out.push_str("<CorsRule>");
            xml::push(&mut out, "AllowedOrigins", &rule.origins);
            xml::push(&mut out, "AllowedMethods", &rule.methods);
            xml::push(&mut out, "AllowedHeaders", &rule.allowed_headers);
            xml::push(&mut out, "ExposedHeaders", &rule.exposed_headers);
            xml::push(&mut out, "MaxAgeInSeconds", &rule.max_age_s);
            out.push_str("</CorsRule>");
        }
        out.push_str("</Cors></StorageServiceProperties>");
        out
    }

    /// The properties in force.
    pub fn of_account(service: &TableService) -> Result<Properties> {
        match service_store::read(service, ACCOUNT, PROPERTIES)? {
            Some(text) => Properties::default().changed(text.as_bytes()),
            None => Ok(Properties::default()),
        }
    }
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let properties = Properties::of_account(context.service)?;
    Ok(Answer::new(StatusCode::OK).xml(properties.write()).charge(READ_RU))
}

pub async fn set(context: &Context<'_>) -> Result<Answer> {
    if context.body.len() > service_store::TEXT_BYTES_MAX {
        return Err(Code::ContentLengthExceeded.into());
    }
    let properties = Properties::of_account(context.service)?.changed(context.body)?;
    service_store::set(context.service, ACCOUNT, PROPERTIES, &properties.write()).await?;
    Ok(Answer::new(StatusCode::ACCEPTED).charge(READ_RU))
}

/// There is one place, and it is up to date.
pub fn statistics(context: &Context<'_>) -> Result<Answer> {
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_millis(context.account().env().now_ms());
    let mut out = format!("{}<StorageServiceStats><GeoReplication>", xml::DECLARATION);
    xml::push(&mut out, "Status", "live");
    xml::push(&mut out, "LastSyncTime", &httpdate::fmt_http_date(now));
    out.push_str("</GeoReplication></StorageServiceStats>");
    Ok(Answer::new(StatusCode::OK).xml(out).charge(READ_RU))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_change_by_element_and_read_back() {
        let text = "<StorageServiceProperties><MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled>\
                    <IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>5</Days>\
                    </RetentionPolicy></MinuteMetrics><Cors><CorsRule><AllowedOrigins>www.xyz.com</AllowedOrigins>\
                    <AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>7</MaxAgeInSeconds></CorsRule></Cors>\
                    </StorageServiceProperties>";
        let changed = Properties::default().changed(text.as_bytes()).unwrap();
        assert_eq!((changed.minute_metrics.retention_days, changed.hour_metrics.enabled), (Some(5), false));
        assert_eq!((changed.cors.len(), changed.cors[0].max_age_s.as_str()), (1, "7"));
        assert_eq!(Properties::default().changed(changed.write().as_bytes()).unwrap(), changed);
        let none = changed.clone().changed(b"<StorageServiceProperties/>").unwrap();
        assert_eq!(none, changed);
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let rule =
            "<CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods></CorsRule>";
        let cors = |n: usize| {
            format!("<StorageServiceProperties><Cors>{}</Cors></StorageServiceProperties>", rule.repeat(n))
        };
        assert!(Properties::default().changed(cors(5).as_bytes()).is_ok());
        for text in [
            cors(6),
            "<StorageServiceProperties><MinuteMetrics><Enabled>true</Enabled><RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy></MinuteMetrics></StorageServiceProperties>".into(),
            "<Other/>".into(),
            "nonsense".into(),
            "<StorageServiceProperties><Logging><Delete>maybe</Delete></Logging></StorageServiceProperties>".into(),
        ] {
            assert_eq!(Properties::default().changed(text.as_bytes()).unwrap_err().code, Code::InvalidXmlDocument);
        }
    }
}
