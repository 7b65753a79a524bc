//! The routes of the control socket.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Uri, request::Parts};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use platform_core::{
    budget::Budget,
    control::{
        AccountBudget, Correlation, Cursor, FreezeChange, Frozen, GatewayListener, Health, Register, Revoked,
    },
    grant::Listener,
    id::{GatewayId, RunId, SocketDirName},
    name::{CONTROL_PROTOCOL, header as own},
};

use platform_runtime::{metrics::CONTENT_TYPE, task};
use serde::de::DeserializeOwned;

use super::{
    Control,
    answer::{Answer, Error, json, text},
    known, metrics, ready, reload, streams, upstream,
};
use crate::{freezes::Change, journal::Unacknowledged};

/// Largest body of a control request.
const LARGEST_BODY: usize = 64 << 10;

/// Answers one request.
pub(super) async fn respond(control: Arc<Control>, request: Request<Incoming>) -> Answer {
    route(control, request).await.unwrap_or_else(Error::into_answer)
}

async fn route(control: Arc<Control>, request: Request<Incoming>) -> Result<Answer, Error> {
    let (head, body) = request.into_parts();
    check_protocol(&head)?;
    let path: Vec<&str> = head.uri.path().trim_start_matches('/').split('/').collect();
    match (&head.method, path.as_slice()) {
        (&Method::GET, ["v1", "health"]) => Ok(json(&health(&control))),
        (&Method::GET, ["v1", "ready"]) => {
            let readiness = ready::look(&control);
            Ok(ready::with_status(&readiness, json(&readiness)))
        }
        (&Method::GET, ["v1", "metrics"]) => Ok(text(CONTENT_TYPE, metrics::text(&control))),
        (&Method::GET, ["v1", "upstream"]) => Ok(json(&upstream::ask(&control).await)),
        (&Method::GET, ["v1", "journal"]) => streams::journal(&control, &head.uri),
        (&Method::GET, ["v1", "consumers"]) => Ok(json(&control.journal.consumers())),
        (&Method::PUT, ["v1", "consumers", name]) => acknowledge(&control, name, body).await,
        (&Method::DELETE, ["v1", "consumers", name]) => forget(&control, name),
        (&Method::GET, ["v1", "runs"]) => Ok(json(&control.runs.views())),
        (&Method::PUT, ["v1", "runs", run]) => register(&control, run_id(run)?, body).await,
        (&Method::PUT, ["v1", "runs", run, "budget"]) => allow(&control, &run_id(run)?, body).await,
        (&Method::GET, ["v1", "accounts"]) => Ok(json(&control.runs.accounts().views())),
        (&Method::PUT, ["v1", "accounts"]) => allow_account(&control, body).await,
        (&Method::GET, ["v1", "runs", run]) => view(&control, &run_id(run)?),
        (&Method::DELETE, ["v1", "runs", run]) => close(&control, &run_id(run)?, &head.uri).await,
        (&Method::PUT, ["v1", "runs", run, kind, id]) => correlate(&control, &run_id(run)?, (kind, id)),
        (&Method::DELETE, ["v1", "runs", run, kind, id]) => {
            withdraw(&control, run_id(run)?, (kind, id), &head.uri)
        }
        (&Method::PUT, ["v1", "runs", run, "revoked"]) => revoke(&control, &run_id(run)?),
        (&Method::PUT, ["v1", "sockets", dir]) => Ok(json(&control.runs.reserve(&socket_dir(dir)?)?)),
        (&Method::DELETE, ["v1", "sockets", dir]) => {
            control.runs.release(&socket_dir(dir)?)?;
            Ok(json(&serde_json::json!({})))
        }
        (&Method::PUT, ["v1", "gateways", gateway]) => {
            open_gateway(&control, gateway_id(gateway)?, body).await
        }
        (&Method::DELETE, ["v1", "gateways", gateway]) => close_gateway(&control, gateway_id(gateway)?).await,
        (&Method::GET, ["v1", "frozen"]) => Ok(json(&control.freezes.list())),
        (&Method::POST, ["v1", "freeze"]) => change(&control, Change::Freeze, body).await,
        (&Method::POST, ["v1", "thaw"]) => change(&control, Change::Thaw, body).await,
        (&Method::POST, ["v1", "reload"]) => Ok(json(&reload::reload(&control).await?)),
        (&Method::GET, ["v1", "runs", run, "tap"]) => streams::tap(&control, &run_id(run)?, &head.uri),
        (&Method::GET, ["v1", "runs", run, "trace"]) => streams::trace(&control, &run_id(run)?),
        _ => Err(Error::NotFound),
    }
}

fn check_protocol(head: &Parts) -> Result<(), Error> {
    let theirs =
        head.headers.get(own::CONTROL_PROTOCOL).and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    if theirs == CONTROL_PROTOCOL.to_string() {
        return Ok(());
    }
    Err(Error::Protocol { ours: CONTROL_PROTOCOL, theirs: theirs.to_owned() })
}

fn run_id(text: &str) -> Result<RunId, Error> {
    RunId::parse(text).map_err(|error| Error::Invalid(error.to_string()))
}

fn socket_dir(text: &str) -> Result<SocketDirName, Error> {
    SocketDirName::parse(text).map_err(|error| Error::Invalid(error.to_string()))
}

fn gateway_id(text: &str) -> Result<GatewayId, Error> {
    GatewayId::parse(text).map_err(|error| Error::Invalid(error.to_string()))
}

fn health(control: &Control) -> Health {
    let (runs, in_flight) = control.runs.load();
    let config = control.config.load();
    Health {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_s: control.started.elapsed().as_secs(),
        runs,
        in_flight,
        journal_id: control.journal.id().to_owned(),
        journal_seq: control.journal.last_seq(),
        journal: control.journal.state(),
        lost: control.journal.lost().to_vec(),
        unstored: control.unstored(),
        upstream: config.settings.upstream.base_url.clone(),
        upstream_state: control.upstream.target().circuit().state(),
        longest_stop_ms: config.settings.proxy.longest_stop().0,
    }
}

async fn acknowledge(control: &Control, name: &str, body: Incoming) -> Result<Answer, Error> {
    let cursor: Cursor = parsed(body, "a cursor").await?;
    Ok(json(&control.journal.acknowledge(name, cursor)?))
}

fn forget(control: &Control, name: &str) -> Result<Answer, Error> {
    match control.journal.forget(name) {
        Ok(true) => Ok(json(&serde_json::json!({}))),
        Ok(false) => Err(Error::NotFound),
        Err(error) => Err(Unacknowledged::Write(error).into()),
    }
}

async fn register(control: &Arc<Control>, run: RunId, body: Incoming) -> Result<Answer, Error> {
    let register: Register = parsed(body, "a registration").await?;
    if register.grant.run_id != run {
        return Err(Error::Invalid(format!(
            "the grant is for run {}, the path says {run}",
            register.grant.run_id
        )));
    }
    if let Some(limit) = register.grant.limits.zero() {
        let problem = format!(
            "limits.{limit} of the grant is 0, and no call could be made: leave it out for its default"
        );
        return Err(Error::Invalid(problem));
    }
    // In a task of its own: a client that gives up waiting must not leave the run half open.
    let control = Arc::clone(control);
    let registering = task::spawn("registering a run", async move { control.runs.register(register).await });
    Ok(json(&registering.await.map_err(|_panicked| Error::Failed("registering the run"))??))
}

async fn open_gateway(control: &Arc<Control>, gateway: GatewayId, body: Incoming) -> Result<Answer, Error> {
    let door: GatewayListener = parsed(body, "a gateway's socket").await?;
    // In a task of its own: a client that gives up waiting must not leave it half open.
    let control = Arc::clone(control);
    let opening =
        task::spawn("opening a gateway", async move { control.runs.open_gateway(gateway, door).await });
    Ok(json(&opening.await.map_err(|_panicked| Error::Failed("opening the gateway's socket"))??))
}

async fn close_gateway(control: &Arc<Control>, gateway: GatewayId) -> Result<Answer, Error> {
    // Likewise.
    let control = Arc::clone(control);
    let closing = task::spawn("closing a gateway", async move { control.runs.close_gateway(&gateway).await });
    closing.await.map_err(|_panicked| Error::Failed("closing the gateway's socket"))??;
    Ok(json(&serde_json::json!({})))
}

fn view(control: &Control, run: &RunId) -> Result<Answer, Error> {
    control.runs.view(run).map(|view| json(&view)).ok_or_else(|| Error::UnknownRun(run.to_string()))
}

fn correlation((kind, id): (&str, &str)) -> Result<Correlation, Error> {
    let found = match kind {
        "traces" => Correlation::trace(id),
        "slots" => Correlation::slot(id),
        _ => return Err(Error::NotFound),
    };
    found.ok_or_else(|| {
        Error::Invalid("an id is 32 lower-case hexadecimal digits, not all of them zero".to_owned())
    })
}

fn correlate(control: &Control, run: &RunId, named: (&str, &str)) -> Result<Answer, Error> {
    let correlation = correlation(named)?;
    let live = control.runs.get(run).ok_or_else(|| Error::UnknownRun(run.to_string()))?;
    if live.closing().is_some() {
        return Err(Error::UnknownRun(run.to_string()));
    }
    if matches!(live.grant.listener, Listener::Unix { .. }) {
        return Err(Error::Invalid(format!("run {run} has a socket of its own")));
    }
    control.runs.correlate(correlation, &live)??;
    Ok(json(&serde_json::json!({})))
}

fn withdraw(control: &Control, run: RunId, named: (&str, &str), uri: &Uri) -> Result<Answer, Error> {
    let correlation = correlation(named)?;
    let grace = milliseconds(uri, "grace_ms")?.unwrap_or_default();
    let forgotten = control.runs.forget(&correlation, &run);
    let directory = Arc::clone(control.runs.directory());
    task::spawn("grace of a correlation", async move {
        tokio::time::sleep(grace).await;
        directory.withdraw(&correlation, &run);
    });
    // Calls with it end regardless: its removal must not depend on the disk.
    forgotten?;
    Ok(json(&serde_json::json!({})))
}

fn revoke(control: &Control, run: &RunId) -> Result<Answer, Error> {
    let stored = control.runs.revoke(run);
    let known = known::has_run(control, run);
    tracing::info!(%run, known, "revoked its tokens");
    stored.map_err(not_stored)?;
    Ok(json(&Revoked { known }))
}

async fn allow(control: &Control, run: &RunId, body: Incoming) -> Result<Answer, Error> {
    let budget: Budget = parsed(body, "a budget").await?;
    let view = control.runs.allow(run, budget)?;
    view.map(|view| json(&view)).ok_or_else(|| Error::UnknownRun(run.to_string()))
}

async fn allow_account(control: &Control, body: Incoming) -> Result<Answer, Error> {
    let AccountBudget { account, budget } = parsed(body, "an account's budget").await?;
    Ok(json(&control.runs.accounts().allow(account, &budget)))
}

async fn change(control: &Control, change: Change, body: Incoming) -> Result<Answer, Error> {
    let named: Vec<Frozen> = parsed(body, "a list of what to freeze or thaw").await?;
    let unmatched = known::unmatched(control, change, &named);
    let stored = control.freezes.change(change, named);
    control.runs.stir();
    let frozen = control.freezes.list();
    tracing::info!(?change, ?frozen, ?unmatched, "changed what is stopped");
    stored.map_err(not_stored)?;
    Ok(json(&FreezeChange { frozen, unmatched }))
}

/// Logs that a change holds and is not stored, and returns the error for it.
fn not_stored(error: std::io::Error) -> Error {
    tracing::error!(%error, "a change holds and is not stored: it is tried again every second");
    Error::NotStored(error)
}

async fn close(control: &Arc<Control>, run: &RunId, uri: &Uri) -> Result<Answer, Error> {
    let epoch = number(uri, "epoch")?.unwrap_or_default();
    let drain =
        milliseconds(uri, "drain_ms")?.unwrap_or(control.config.load().settings.proxy.drain.duration());
    // In a task of its own: a client that gives up waiting must not leave the run half closed.
    let (control, closed) = (Arc::clone(control), run.clone());
    let closing =
        task::spawn("closing a run", async move { control.runs.close(&closed, epoch, drain).await });
    let view = closing.await.map_err(|_panicked| Error::Failed("closing the run"))??;
    view.map(|view| json(&view)).ok_or_else(|| Error::UnknownRun(run.to_string()))
}

fn milliseconds(uri: &Uri, name: &str) -> Result<Option<Duration>, Error> {
    Ok(number(uri, name)?.map(Duration::from_millis))
}

fn number(uri: &Uri, name: &str) -> Result<Option<u64>, Error> {
    let parse =
        |text: &str| text.parse().map_err(|_error| Error::Invalid(format!("{name} is not a number: {text}")));
    query(uri, name).map(parse).transpose()
}

/// Returns the value of `name` in a query string. Control's values need no percent-decoding.
pub(super) fn query<'u>(uri: &'u Uri, name: &str) -> Option<&'u str> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// Parses the body of a request, which has to be `what`.
async fn parsed<T: DeserializeOwned>(body: Incoming, what: &str) -> Result<T, Error> {
    let body = read(body, LARGEST_BODY).await.map_err(Error::Invalid)?;
    serde_json::from_slice(&body).map_err(|error| Error::Invalid(format!("not {what}: {error}")))
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, String> {
    let mut body = Limited::new(body, limit);
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(piece) = frame.map_err(|error| error.to_string())?.into_data() {
            whole.extend_from_slice(&piece);
        }
    }
    Ok(whole.into())
}
