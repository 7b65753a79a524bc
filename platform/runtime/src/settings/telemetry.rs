//! Reads the settings for the export of traces to an OpenTelemetry collector.

use std::{net::IpAddr, path::PathBuf};

use platform_core::{invalid::InvalidValue, name};

use super::upstream::{BaseUrl, Scheme};
use crate::config::Section;

/// `[telemetry]`
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Scheme, host and port of an OpenTelemetry collector that accepts OTLP over HTTP; no traces are sent if absent.
    pub otlp_endpoint: Option<String>,
    /// Reason why `OTEL_EXPORTER_OTLP_ENDPOINT` is set and not used. That variable is meant for any program, so an
    /// endpoint that `sluice` cannot use there is not an error.
    pub passed_over: Option<String>,
    /// Address of a run's trace, with `{trace}` for its id; the dashboard has no such links if absent.
    pub trace_url: Option<String>,
    /// File with headers for the collector.
    pub otlp_headers_file: Option<PathBuf>,
}

impl Telemetry {
    pub(super) fn section(section: &Section<'_>) -> Self {
        const ENDPOINT: &str = "otlp_endpoint";
        const TRACE_URL: &str = "trace_url";
        let passed_over =
            section.variable(name::env::OTEL_EXPORTER_OTLP_ENDPOINT).and_then(|url| check(url).err());
        let passed_over = passed_over.map(|fault| fault.to_string());
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
            trace_url: section.field(TRACE_URL, "Address at which people see a run's trace, with `{trace}` for its id, such as `https://langfuse.example/trace/{trace}`: the dashboard links it; no links if absent.").optional(),
            otlp_headers_file: section
                .field("otlp_headers_file", "File with headers for the collector, such as `authorization: Bearer …`, one a line; closed to other users.")
                .optional(),
        };
        if let Some(Err(problem)) = settings.otlp_endpoint.as_deref().map(check) {
            section.reject(ENDPOINT, problem);
        }
        if let Some(Err(problem)) = settings.trace_url.as_deref().map(check_trace_url) {
            section.reject(TRACE_URL, problem);
        }
        settings
    }
}

/// Checks that an address leads to a trace of a run: otherwise returns the reason.
fn check_trace_url(url: &str) -> Result<(), InvalidValue> {
    const TRACE: &str = "{trace}";
    let start = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let (origin, path) = url.split_at(end);
    let base = BaseUrl::parse(origin)?;
    let is_local =
        base.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) || base.host == "localhost";
    if base.scheme == Scheme::Http && !is_local {
        return Err(format!("people would open {} without TLS: use https://", base.host).into());
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\`".contains(&byte);
    if path.matches(TRACE).count() != 1
        || !path.replace(TRACE, "").bytes().all(|byte| is_plain(byte) && !b"{}".contains(&byte))
    {
        return Err(format!("its path does not have `{TRACE}` once, beside plain characters: `{url}`").into());
    }
    Ok(())
}

/// Checks that traces can be sent to a collector at `url`; otherwise returns the reason.
fn check(url: &str) -> Result<(), InvalidValue> {
    match BaseUrl::parse(url)?.scheme {
        Scheme::Http => Ok(()),
        Scheme::Https => {
            Err("TLS is not spoken here: run a collector on this host, and have it pass on".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_url_has_the_trace_once() {
        for accepted in
            ["https://langfuse.example/project/p/traces/{trace}", "http://127.0.0.1:3000/trace?id={trace}#x"]
        {
            assert_eq!(check_trace_url(accepted), Ok(()), "{accepted}");
        }
        for refused in [
            "https://langfuse.example/",
            "https://{trace}.example/",
            "https://h/{trace}/{trace}",
            "https://h/{run}/{trace}",
            "https://h/\"{trace}",
            "http://langfuse.example/{trace}",
            "javascript:alert(1)//{trace}",
            "https://u@h/{trace}",
            "",
        ] {
            assert!(check_trace_url(refused).is_err(), "{refused}");
        }
    }
}
