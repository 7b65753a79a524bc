//! Answers requests for the pages of the dashboard and their files, which the build has embedded.
//!
//! The dashboard is one page, `index.html`, which shows what its path names. Everything else is below `/assets`, under a
//! name that changes with its content. Nothing is read from a file system at run time.
//!
//! Does not know the routes of the API, or who asks: a page holds no data.
//!
//! Invariants: every answer has the headers of [`headers::harden`].

#[cfg(test)]
#[path = "../../build/embed.rs"]
mod embed;
mod encoding;
mod headers;

use axum::{
    body::Bytes,
    http::{
        HeaderMap, HeaderValue, Response, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, InvalidHeaderValue, VARY,
        },
    },
};

pub(crate) use self::headers::{CSP_REPORTS, harden};

/// First parts of the paths of pages; the overview is the page of the root.
pub(crate) const SECTIONS: [&str; 8] =
    ["sandbox", "chat", "accounts", "agents", "approvals", "gateways", "system", "signin"];

const INDEX: &str = "index.html";
const HTML: &str = "text/html; charset=utf-8";
/// Files are kept for a year if their names change with their content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const NO_STORE: &str = "no-store";
/// Page of a program that was built without the dashboard.
const UNBUILT: &str = "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Sluicegate</title></head>\n\
    <body>\n<h1>This build has no dashboard</h1>\n\
    <p>Build its files with <code>make web</code>, which needs Node.js, and then build <code>sluice</code> again.</p>\n\
    <p>The HTTP API and the command line work without it.</p>\n</body>\n</html>\n";

/// File that the build has embedded.
#[derive(Debug, Clone, Copy)]
struct EmbeddedFile {
    name: &'static str,
    media_type: &'static str,
    /// Part of the SHA-256 of the content.
    hash: &'static str,
    bytes: &'static [u8],
    /// Content as gzip, if that is smaller.
    gzip: Option<&'static [u8]>,
}

/// Files of the dashboard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dashboard {
    files: &'static [EmbeddedFile],
}

impl Dashboard {
    /// Returns the dashboard that the build has embedded.
    pub(crate) const fn embedded() -> Self {
        Self { files: include!(concat!(env!("OUT_DIR"), "/files.rs")) }
    }

    /// Answers a request for a page.
    pub(crate) fn page(self, request: &HeaderMap) -> Response<Bytes> {
        let Some(index) = self.file(INDEX) else {
            let unbuilt = Response::new(Bytes::from_static(UNBUILT.as_bytes()));
            return with_head(unbuilt, StatusCode::SERVICE_UNAVAILABLE, HTML, NO_STORE);
        };
        let (response, _) = index.content(request);
        with_head(response, StatusCode::OK, HTML, NO_STORE)
    }

    /// Answers a request for the file `name` below `/assets`; `None` if it does not exist.
    pub(crate) fn asset(self, name: &str, request: &HeaderMap) -> Option<Response<Bytes>> {
        let file = self.files.iter().find(|file| file.name.strip_prefix("assets/") == Some(name))?;
        let (mut response, etag) = file.content(request);
        let mut known = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let etag = etag.ok()?;
        let is_known =
            known.any(|known| known.split(',').any(|known| known.trim().as_bytes() == etag.as_bytes()));
        response.headers_mut().insert(ETAG, etag);
        if is_known {
            *response.body_mut() = Bytes::new();
        }
        let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        Some(with_head(response, status, file.media_type, IMMUTABLE))
    }

    fn file(self, name: &str) -> Option<&'static EmbeddedFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl EmbeddedFile {
    /// Returns the content in an encoding that the request accepts, and its tag.
    fn content(&self, request: &HeaderMap) -> (Response<Bytes>, Result<HeaderValue, InvalidHeaderValue>) {
        let gzip = self.gzip.filter(|_| encoding::accepts_gzip(request));
        let mut response = Response::new(Bytes::from_static(gzip.unwrap_or(self.bytes)));
        if self.gzip.is_some() {
            response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if gzip.is_some() {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let form = if gzip.is_some() { "-gzip" } else { "" };
        (response, HeaderValue::try_from(format!("\"{}{form}\"", self.hash)))
    }
}

/// Returns `response` with the headers that each answer has.
fn with_head(
    mut response: Response<Bytes>,
    status: StatusCode,
    media_type: &'static str,
    cache: &'static str,
) -> Response<Bytes> {
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    harden(headers);
    response
}

#[cfg(test)]
mod tests;
