//! Routes the requests of the control socket.

use std::sync::{Arc, atomic::Ordering};

use http::{Method, Request, Uri, request::Parts};
use hyper::body::Incoming;
use platform_core::{
    budget::Budget,
    control::{
        AccountBudget, Correlation, Cursor, ExhaustedAccounts, FreezeChange, Frozen, GatewayListener, Health,
        Register, Revoked,
    },
    grant::Listener,
    id::{GatewayId, RunId, SocketDirName},
    name::{CONTROL_PROTOCOL, header as own},
};
use platform_runtime::{metrics::CONTENT_TYPE, report, task};

use super::{
    Control,
    answer::{ControlResponse, Error, json, text},
    corrections, known, metrics, ready, reload,
    request::{milliseconds, number, parse_body},
    spend, streams,
};
use crate::{freezes::Change, journal::AcknowledgeError, runs::Holder};

/// Answers one request.
pub(super) async fn respond(control: Arc<Control>, request: Request<Incoming>) -> ControlResponse {
    route(control, request).await.unwrap_or_else(Error::into_response)
}

async fn route(control: Arc<Control>, request: Request<Incoming>) -> Result<ControlResponse, Error> {
    let (head, body) = request.into_parts();
    check_protocol(&head)?;
    let path: Vec<&str> = head.uri.path().trim_start_matches('/').split('/').collect();
    match (&head.method, path.as_slice()) {
        (&Method::GET, ["v1", "health"]) => Ok(json(&health(&control))),
        (&Method::GET, ["v1", "ready"]) => {
            let readiness = ready::readiness(&control);
            Ok(ready::with_status(&readiness, json(&readiness)))
        }
        (&Method::GET, ["v1", "metrics"]) => Ok(text(CONTENT_TYPE, metrics::text(&control))),
        (&Method::GET, ["v1", "upstream"]) => Ok(json(&control.upstream_health().await)),
        (&Method::GET, ["v1", "prices"]) => Ok(json(&control.snapshot.load().prices.list())),
        (&Method::GET, ["v1", "upstream", "spend"]) => Ok(json(&spend::spend(&control, &head.uri).await?)),
        (&Method::GET, ["v1", "journal"]) => streams::journal(&control, &head.uri),
        (&Method::POST, ["v1", "corrections"]) => Ok(json(&corrections::correct(&control, body).await?)),
        (&Method::GET, ["v1", "consumers"]) => Ok(json(&control.journal.consumers())),
        (&Method::PUT, ["v1", "consumers", name]) => acknowledge(&control, name, body).await,
        (&Method::DELETE, ["v1", "consumers", name]) => remove_consumer(&control, name),
        (&Method::GET, ["v1", "runs"]) => Ok(json(&control.runs.views())),
        (&Method::PUT, ["v1", "runs", run]) => register(&control, run_id(run)?, body).await,
        (&Method::PUT, ["v1", "runs", run, "budget"]) => set_run_limits(&control, &run_id(run)?, body).await,
        (&Method::GET, ["v1", "accounts"]) => Ok(json(&control.runs.accounts().views())),
        (&Method::PUT, ["v1", "accounts"]) => set_account_limits(&control, body).await,
        (&Method::GET, ["v1", "runs", run]) => view(&control, &run_id(run)?),
        (&Method::DELETE, ["v1", "runs", run]) => close(&control, &run_id(run)?, &head.uri).await,
        (&Method::PUT, ["v1", "runs", run, kind, id]) => {
            correlate(&control, &run_id(run)?, correlation(kind, id)?)
        }
        (&Method::DELETE, ["v1", "runs", run, kind, id]) => {
            withdraw(&control, run_id(run)?, correlation(kind, id)?, &head.uri)
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
        (&Method::POST, ["v1", "freeze"]) => change_freezes(&control, Change::Freeze, body).await,
        (&Method::POST, ["v1", "thaw"]) => change_freezes(&control, Change::Thaw, body).await,
        (&Method::GET, ["v1", "exhausted"]) => Ok(json(&control.balances.lists())),
        (&Method::PUT, ["v1", "exhausted"]) => replace_exhausted(&control, body).await,
        (&Method::POST, ["v1", "reload"]) => Ok(json(&reload::reload(&control).await?)),
        (&Method::GET, ["v1", "runs", run, "tap"]) => streams::tap(&control, &run_id(run)?, &head.uri),
        (&Method::GET, ["v1", "runs", run, "trace"]) => streams::trace(&control, &run_id(run)?),
        _ => Err(Error::NotFound),
    }
}

fn check_protocol(head: &Parts) -> Result<(), Error> {
    let Some(theirs) = head.headers.get(own::CONTROL_PROTOCOL) else { return Err(Error::NoProtocol) };
    if theirs.as_bytes() == CONTROL_PROTOCOL.to_string().as_bytes() {
        return Ok(());
    }
    Err(Error::Protocol { theirs: theirs.as_bytes().escape_ascii().to_string() })
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
        upstream_prices: control.shown_prices.state(),
        longest_stop_ms: config.settings.proxy.longest_stop().0,
        reloads: control.reloads.load(Ordering::Relaxed),
    }
}

async fn acknowledge(control: &Control, name: &str, body: Incoming) -> Result<ControlResponse, Error> {
    let cursor: Cursor = parse_body(body, "a cursor").await?;
    Ok(json(&control.journal.acknowledge(name, cursor)?))
}

fn remove_consumer(control: &Control, name: &str) -> Result<ControlResponse, Error> {
    match control.journal.forget(name) {
        Ok(true) => Ok(json(&serde_json::json!({}))),
        Ok(false) => Err(Error::NotFound),
        Err(error) => Err(AcknowledgeError::Write(error).into()),
    }
}

async fn register(control: &Arc<Control>, run_id: RunId, body: Incoming) -> Result<ControlResponse, Error> {
    let register: Register = parse_body(body, "a registration").await?;
    if register.grant.run_id != run_id {
        return Err(Error::Invalid(format!(
            "the grant is for run {}, the path says {run_id}",
            register.grant.run_id
        )));
    }
    if let Some(limit) = register.grant.limits.zero() {
        let problem = format!(
            "limits.{limit} of the grant is 0, and no call could be made: leave it out for its default"
        );
        return Err(Error::Invalid(problem));
    }
    // In its own task: a client that gives up waiting must not leave the run half open.
    let control = Arc::clone(control);
    let registering = task::spawn("registering a run", async move { control.runs.register(register).await });
    Ok(json(&registering.await.map_err(|_panicked| Error::Failed("registering the run"))??))
}

async fn open_gateway(
    control: &Arc<Control>,
    gateway: GatewayId,
    body: Incoming,
) -> Result<ControlResponse, Error> {
    let listener: GatewayListener = parse_body(body, "a gateway's socket").await?;
    // In its own task: a client that gives up waiting must not leave it half open.
    let control = Arc::clone(control);
    let opening =
        task::spawn("opening a gateway", async move { control.runs.open_gateway(gateway, listener).await });
    Ok(json(&opening.await.map_err(|_panicked| Error::Failed("opening the gateway's socket"))??))
}

async fn close_gateway(control: &Arc<Control>, gateway: GatewayId) -> Result<ControlResponse, Error> {
    // In its own task, as in `open_gateway`.
    let control = Arc::clone(control);
    let closing = task::spawn("closing a gateway", async move { control.runs.close_gateway(&gateway).await });
    closing.await.map_err(|_panicked| Error::Failed("closing the gateway's socket"))??;
    Ok(json(&serde_json::json!({})))
}

fn view(control: &Control, run_id: &RunId) -> Result<ControlResponse, Error> {
    control.runs.view(run_id).map(|view| json(&view)).ok_or_else(|| Error::UnknownRun(run_id.to_string()))
}

fn correlation(kind: &str, id: &str) -> Result<Correlation, Error> {
    let found = match kind {
        "traces" => Correlation::trace(id),
        "slots" => Correlation::slot(id),
        _ => return Err(Error::NotFound),
    };
    found.ok_or_else(|| {
        Error::Invalid("an id is 32 lower-case hexadecimal digits, not all of them zero".to_owned())
    })
}

fn correlate(control: &Control, run_id: &RunId, correlation: Correlation) -> Result<ControlResponse, Error> {
    let live = control.runs.get(run_id).ok_or_else(|| Error::UnknownRun(run_id.to_string()))?;
    if live.closing().is_some() {
        return Err(Error::UnknownRun(run_id.to_string()));
    }
    if matches!(live.grant.listener, Listener::Unix { .. }) {
        return Err(Error::Invalid(format!("run {run_id} has a socket of its own")));
    }
    control.runs.correlate(correlation, &live)??;
    Ok(json(&serde_json::json!({})))
}

fn withdraw(
    control: &Control,
    run_id: RunId,
    correlation: Correlation,
    uri: &Uri,
) -> Result<ControlResponse, Error> {
    let grace = milliseconds(uri, "grace_ms")?.unwrap_or_default();
    let removed = control.runs.forget(&correlation, &run_id);
    let registry = Arc::clone(control.runs.registry());
    task::spawn("grace of a correlation", async move {
        tokio::time::sleep(grace).await;
        registry.withdraw(&correlation, &run_id);
    });
    // The grace runs regardless: the end of a correlation must not depend on the disk.
    removed?;
    Ok(json(&serde_json::json!({})))
}

fn revoke(control: &Control, run_id: &RunId) -> Result<ControlResponse, Error> {
    let stored = control.runs.revoke(run_id);
    let known = known::has_run(control, run_id);
    tracing::info!(run = %run_id, known, "tokens of a run revoked");
    stored.map_err(not_stored)?;
    Ok(json(&Revoked { known }))
}

async fn set_run_limits(control: &Control, run_id: &RunId, body: Incoming) -> Result<ControlResponse, Error> {
    let budget: Budget = parse_body(body, "a budget").await?;
    let view = control.runs.set_limits(run_id, budget)?;
    view.map(|view| json(&view)).ok_or_else(|| Error::UnknownRun(run_id.to_string()))
}

async fn set_account_limits(control: &Control, body: Incoming) -> Result<ControlResponse, Error> {
    let AccountBudget { account, budget } = parse_body(body, "an account's budget").await?;
    let view = control.runs.accounts().set_limits(&account, budget).map_err(not_stored)?;
    Ok(json(&view))
}

async fn change_freezes(control: &Control, change: Change, body: Incoming) -> Result<ControlResponse, Error> {
    let named: Vec<Frozen> = parse_body(body, "a list of what to freeze or thaw").await?;
    let unmatched = known::unmatched(control, change, &named);
    let stored = control.freezes.change(change, named);
    control.runs.notify_cuts();
    let frozen = control.freezes.list();
    tracing::info!(?change, ?frozen, ?unmatched, "freezes changed");
    stored.map_err(not_stored)?;
    Ok(json(&FreezeChange { frozen, unmatched }))
}

async fn replace_exhausted(control: &Control, body: Incoming) -> Result<ControlResponse, Error> {
    let lists: ExhaustedAccounts = parse_body(body, "lists of accounts and free models").await?;
    let stored = control.balances.replace(lists);
    let lists = control.balances.lists();
    if stored.map_err(not_stored)? {
        tracing::info!(accounts = ?lists.accounts, "accounts below their floor changed");
    }
    Ok(json(&lists))
}

/// Logs that a change is in effect but not stored, and returns the error for it.
fn not_stored(error: std::io::Error) -> Error {
    tracing::error!(
        error = report::chain(&error),
        "a change is active but not persisted: trying again every second"
    );
    Error::NotStored(error)
}

async fn close(control: &Arc<Control>, run_id: &RunId, uri: &Uri) -> Result<ControlResponse, Error> {
    let epoch = number(uri, "epoch")?.unwrap_or_default();
    let attempt = number(uri, "attempt")?.unwrap_or_default();
    let attempt = u32::try_from(attempt).map_err(|_large| Error::Invalid("attempt: too large".to_owned()))?;
    let holder = Holder { attempt, epoch };
    let drain = milliseconds(uri, "drain_ms")?
        .unwrap_or(control.config.load().settings.proxy.drain_timeout.duration());
    // In its own task: a client that gives up waiting must not leave the run half closed.
    let control = Arc::clone(control);
    let closed = run_id.clone();
    let closing =
        task::spawn("closing a run", async move { control.runs.close(&closed, holder, drain).await });
    let view = closing.await.map_err(|_panicked| Error::Failed("closing the run"))??;
    view.map(|view| json(&view)).ok_or_else(|| Error::UnknownRun(run_id.to_string()))
}
