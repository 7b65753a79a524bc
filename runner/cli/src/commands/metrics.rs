//! Implements `sluice metrics`: prints the metrics of the proxy and of `sluice up` in Prometheus's text format.

use std::{
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode, header};
use platform_outbound::send;
use platform_runtime::report;
use runner_control_client::DataPlane;
use tokio::{net::TcpStream, time::timeout};

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
    let scraped = async {
        let answer = send(TcpStream::connect(address).await?, request).await?;
        match answer.status() {
            StatusCode::OK => Ok(answer.read(MAX_ANSWER).await?.into_body()),
            status => Err(format!("status {status}").into()),
        }
    };
    timeout(SCRAPE_TIMEOUT, scraped).await.unwrap_or_else(|_elapsed| Err("no answer".into()))
}
