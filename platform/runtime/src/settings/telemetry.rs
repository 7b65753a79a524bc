//! Who is told of traces.

use std::path::PathBuf;

use platform_core::name;

use super::upstream::{BaseUrl, Scheme};
use crate::config::Section;

/// `[telemetry]`
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Scheme, host and port of an OpenTelemetry collector that takes OTLP over HTTP; nobody is told if absent.
    pub otlp_endpoint: Option<String>,
    /// File with headers for it.
    pub otlp_headers_file: Option<PathBuf>,
}

impl Telemetry {
    pub(super) fn section(section: &Section<'_>) -> Self {
        const ENDPOINT: &str = "otlp_endpoint";
        let settings = Self {
            otlp_endpoint: section
                .field(ENDPOINT, "Scheme, host and port of an OpenTelemetry collector, which `sluice` tells of runs and their calls by OTLP over HTTP; no traces if absent.")
                .variable(name::env::OTEL_EXPORTER_OTLP_ENDPOINT)
                .optional(),
            otlp_headers_file: section
                .field("otlp_headers_file", "File with headers for the collector, such as `authorization: Bearer …`, one a line; closed to other users.")
                .optional(),
        };
        match settings.otlp_endpoint.as_deref().map(BaseUrl::parse) {
            Some(Err(problem)) => section.reject(ENDPOINT, problem),
            Some(Ok(url)) if url.scheme == Scheme::Https => section.reject(
                ENDPOINT,
                "TLS is not spoken here: run a collector on this host, and have it pass on".to_owned(),
            ),
            _ => {}
        }
        settings
    }
}
