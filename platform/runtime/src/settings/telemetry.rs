//! Reads the settings for the export of traces to an OpenTelemetry collector.

use std::path::PathBuf;

use platform_core::name;

use super::upstream::{BaseUrl, Scheme};
use crate::config::Section;

/// `[telemetry]`
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Scheme, host and port of an OpenTelemetry collector that accepts OTLP over HTTP; no traces are sent if absent.
    pub otlp_endpoint: Option<String>,
    /// Reason why `OTEL_EXPORTER_OTLP_ENDPOINT` is set and not used. That variable is meant for any program, so an
    /// endpoint that `sluice` cannot use there is no error.
    pub passed_over: Option<String>,
    /// File with headers for the collector.
    pub otlp_headers_file: Option<PathBuf>,
}

impl Telemetry {
    pub(super) fn section(section: &Section<'_>) -> Self {
        const ENDPOINT: &str = "otlp_endpoint";
        let passed_over =
            section.variable(name::env::OTEL_EXPORTER_OTLP_ENDPOINT).and_then(|url| check(url).err());
        let mut endpoint = section.field(
            ENDPOINT,
            "Scheme, host and port of an OpenTelemetry collector, to which `sluice` exports runs and their calls by OTLP over HTTP; no traces if absent.",
        );
        if passed_over.is_none() {
            endpoint = endpoint.variable(name::env::OTEL_EXPORTER_OTLP_ENDPOINT);
        }
        let settings = Self {
            otlp_endpoint: endpoint.optional(),
            passed_over,
            otlp_headers_file: section
                .field("otlp_headers_file", "File with headers for the collector, such as `authorization: Bearer …`, one a line; closed to other users.")
                .optional(),
        };
        if let Some(Err(problem)) = settings.otlp_endpoint.as_deref().map(check) {
            section.reject(ENDPOINT, problem);
        }
        settings
    }
}

/// Checks that traces can be sent to a collector at `url`; otherwise returns the reason.
fn check(url: &str) -> Result<(), String> {
    match BaseUrl::parse(url)?.scheme {
        Scheme::Http => Ok(()),
        Scheme::Https => {
            Err("TLS is not spoken here: run a collector on this host, and have it pass on".to_owned())
        }
    }
}
