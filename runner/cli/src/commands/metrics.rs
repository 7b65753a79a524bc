//! Implements `sluice metrics`: prints the metrics of the proxy and of `sluice up` in Prometheus's text format.

use std::{
    io::{self, Write},
    net::SocketAddr,
    time::Duration,
};

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use platform_runtime::{report, task};
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
    match timeout(SCRAPE_TIMEOUT, scrape(address)).await {
        Ok(Ok(text)) => io::stdout().write_all(&text)?,
        Ok(Err(error)) => {
            exit = report_missing(&format!("`sluice up` at {address}"), &report::chain(error.as_ref()))?
        }
        Err(_elapsed) => exit = report_missing(&format!("`sluice up` at {address}"), "no answer")?,
    }
    Ok(exit)
}

/// Reports that the metrics of `source` are missing, and returns the exit code.
fn report_missing(source: &str, why: &str) -> io::Result<Exit> {
    writeln!(io::stderr(), "sluice: metrics of {source} are missing: {why}")?;
    Ok(Exit::Unavailable)
}

async fn scrape(address: SocketAddr) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    task::spawn("api client", async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = report::chain(&error), "connection to the API ended");
        }
    });
    let request = Request::get("/metrics").header(header::HOST, address.to_string());
    let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    if answer.status() != StatusCode::OK {
        return Err(format!("status {}", answer.status()).into());
    }
    #[expect(clippy::disallowed_methods, reason = "it is bounded")]
    let text = Limited::new(answer.into_body(), MAX_ANSWER).collect().await?;
    Ok(text.to_bytes())
}
