//! The portal's pages: which answer a browser gets, on the port that has them.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use orrery_portal::{Asked, Portal};

use crate::config::{Config, PortalMode, TlsMode};
use crate::transport::Transport;

/// The portal, unless it is off.
pub fn portal(config: &Config) -> Option<Arc<Portal>> {
    let directory = match &config.portal {
        PortalMode::Off => return None,
        PortalMode::On => None,
        PortalMode::FromDirectory(path) => Some(path.clone()),
    };
    Some(Arc::new(Portal::new(env!("CARGO_PKG_VERSION"), config.keys.well_known(), directory)))
}

pub async fn answer(
    portal: &Arc<Portal>,
    asked: Asked,
    request: &Request<Incoming>,
    transport: &Transport,
) -> Response<Bytes> {
    match asked {
        Asked::Page(page) if portal.reads_disk() => {
            let (portal, headers) = (Arc::clone(portal), request.headers().clone());
            let read = tokio::task::spawn_blocking(move || portal.answer(&page, &headers)).await;
            read.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the page"))
        }
        Asked::Page(page) => portal.answer(&page, request.headers()),
        Asked::Certificate if transport.tls_mode == TlsMode::Off => {
            plain(StatusCode::NOT_FOUND, "this server speaks no TLS (--tls off), so it has no certificate")
        }
        Asked::Certificate => match transport.tls.certificate_pem().await {
            Ok(pem) => {
                let mut response = plain(StatusCode::OK, "");
                *response.body_mut() = Bytes::from(pem);
                let kind = HeaderValue::from_static("application/x-pem-file");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response
            }
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the certificate cannot be shown");
                plain(StatusCode::SERVICE_UNAVAILABLE, "TLS is not available; the log says why")
            }
        },
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
