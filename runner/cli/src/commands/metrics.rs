//! Implements `sluice metrics`: prints the metrics of the proxy and of `sluice up` in Prometheus's text format.

use std::{
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use platform_outbound::{AnswerLimit, exchange};
use platform_runtime::report;
use runner_control_client::DataPlane;
use tokio::net::TcpStream;

use super::{Context, Error, exit::Exit};

/// Longest wait for an answer of `sluice up`.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer of `sluice up`, in bytes.
const MAX_ANSWER: usize = 8 << 20;

/// Prints the metrics of the proxy and, if it serves any, of `sluice up`. Reports metrics that are missing.
pub(super) async fn metrics(context: &Context) -> Result<Exit, Error> {
    let proxy = DataPlane::at(&context.settings.proxy.control_socket()).metrics().await;
    let Some(address) = context.settings.api.listen else {
        io::stdout().write_all(proxy?.as_bytes())?;
        return Ok(Exit::Success);
    };
    let mut exit = Exit::Success;
    match proxy {
        Ok(text) => io::stdout().write_all(text.as_bytes())?,
        Err(error) => exit = report_missing("the proxy", &report::chain(&error))?,
    }
    match scrape(address).await {
        Ok(text) => io::stdout().write_all(&text)?,
        Err(error) => {
            exit = report_missing(&format!("`sluice up` at {address}"), &report::chain(error.as_ref()))?
        }
    }
    Ok(exit)
}

/// Reports that the metrics of `source` are missing, and returns the exit code.
fn report_missing(source: &str, why: &str) -> io::Result<Exit> {
    writeln!(io::stderr(), "sluice: metrics of {source} are missing: {why}")?;
    Ok(Exit::Unavailable)
}

async fn scrape(address: SocketAddr) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let request = Request::get("/metrics").header(header::HOST, address.to_string()).body(Bytes::new())?;
    let limit = AnswerLimit::new(SCRAPE_TIMEOUT, MAX_ANSWER);
    let answer =
        exchange(TcpStream::connect(address), request, limit).await.map_err(|error| match error {
            platform_outbound::Error::TimedOut => "no answer".into(),
            error => Box::<dyn std::error::Error + Send + Sync>::from(error),
        })?;
    if answer.status() != StatusCode::OK {
        return Err(format!("status {}", answer.status()).into());
    }
    Ok(answer.into_body())
}
