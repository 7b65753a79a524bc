//! Tests exit codes and texts of errors.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use gateway_bridge::DeviceError;
use platform_core::id::GatewayId;
use platform_runtime::{
    config::{ConfigErrors, Sources},
    report,
    settings::{NoGateway, Sandbox, Settings, token_secrets},
};
use runner_api as api;
use runner_billing::ReconcileError;
use runner_docker as docker;
use runner_engine::{agent_data::BehaviourError, pricing::Unpriced, run::LeaseError, run_order::OrderError};
use runner_files as files;
use runner_gateways::{self as gateways, managed};
use runner_repos as repos;
use runner_store as store;
use runner_telemetry::traces;
use runner_workspace::{self as workspace, Workspaces};

use super::*;
use crate::{setup, supervise};

fn unknown_run() -> store::Error {
    store::Error::Unknown { run_id: RunId::parse("run-1").unwrap() }
}

fn refused(code: &str) -> data_plane::Error {
    data_plane::Error::Refused { code: code.to_owned(), message: String::new() }
}

fn docker_error(error: docker::Error) -> Error {
    repos::Error::from(error).into()
}

fn invalid_json() -> serde_json::Error {
    serde_json::from_str::<u8>("").unwrap_err()
}

fn insufficient_disk() -> workspace::InsufficientDisk {
    let dir = std::env::temp_dir().join(format!("sluice-exit-code-{}", std::process::id()));
    let text = "[sandbox]\nworkspaces = \"directory\"\ndisk_reserve = \"1000000GiB\"";
    let file = Some(("sluice.toml".into(), text.to_owned()));
    let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap().sandbox;
    let workspaces = Workspaces::open(&Sandbox { workspace_dir: dir.clone(), ..settings }).unwrap();
    let space = workspaces.disk_space().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    space.enough().unwrap_err()
}

fn check(cases: impl IntoIterator<Item = (Error, Exit, &'static str)>) {
    for (error, code, word) in cases {
        assert_eq!((error.exit_code(), error.word()), (code, word), "{error:?}");
    }
}

#[tokio::test]
async fn a_refusal_has_exit_code_and_word() {
    let gateway = || GatewayId::parse("coding").unwrap();
    let no_certificate = api::StartError::from(api::TlsError::NoCertificate { path: "/c.pem".into() });
    let run_id = || RunId::parse("run-1").unwrap();
    check([
        (ConfigErrors(Vec::new()).into(), Exit::Usage, "configuration_invalid"),
        (Misused(String::new()).into(), Exit::Usage, "usage"),
        (
            OrderError::from(BehaviourError::Missing { dir: "/agents".into() }).into(),
            Exit::Usage,
            "configuration_invalid",
        ),
        (NoGateway::among([], "coding").into(), Exit::Usage, "not_found"),
        (
            token_secrets::Error::Empty { path: "/secrets".into() }.into(),
            Exit::Usage,
            "token_secrets_unusable",
        ),
        (no_certificate.into(), Exit::Usage, "certificate_unusable"),
        (traces::Unusable::Endpoint(String::new()).into(), Exit::Usage, "configuration_invalid"),
        (
            OrderError::from(Unpriced::UnderRunLimit { model: String::new() }).into(),
            Exit::Usage,
            "model_unpriced",
        ),
        (Unknown(String::new()).into(), Exit::Failure, "not_found"),
        (unknown_run().into(), Exit::Failure, "not_found"),
        (
            store::DecideError::Unknown { run_id: run_id(), id: String::new() }.into(),
            Exit::Failure,
            "not_found",
        ),
        (store::Error::SessionBusy { by: String::new() }.into(), Exit::TryAgain, "session_busy"),
        (store::Error::NotEmpty { store: String::new() }.into(), Exit::Usage, "store_not_empty"),
        (store::Error::OnlyReads.into(), Exit::Unavailable, "store_failed"),
        (LeaseError::NotStored(unknown_run()).into(), Exit::Failure, "not_found"),
        (LeaseError::Unwritable(invalid_json()).into(), Exit::Internal, "internal"),
        (
            managed::Error::Elsewhere { id: gateway(), url: String::new() }.into(),
            Exit::Usage,
            "gateway_failed",
        ),
        (
            managed::Error::Unsafe { id: gateway(), findings: Vec::new() }.into(),
            Exit::Failure,
            "gateway_failed",
        ),
        (managed::Error::NoModel(gateway()).into(), Exit::Unavailable, "gateway_failed"),
        (
            managed::Error::Ended { id: gateway(), tail: String::new() }.into(),
            Exit::Internal,
            "gateway_failed",
        ),
        (repos::Error::Exists { name: "web".parse().unwrap() }.into(), Exit::Usage, "repository_failed"),
        (
            docker_error(docker::Error::VolumeInUse { volume: String::new() }),
            Exit::TryAgain,
            "docker_unavailable",
        ),
    ]);
}

#[tokio::test]
async fn a_failure_has_exit_code_and_word() {
    let gateway = || GatewayId::parse("coding").unwrap();
    let address = "127.0.0.1:4180".parse().unwrap();
    let unbound = api::StartError::Unbound { address, source: io::ErrorKind::AddrInUse.into() };
    let before_1970 = UNIX_EPOCH.duration_since(SystemTime::now()).unwrap_err();
    let run_id = || RunId::parse("run-1").unwrap();
    check([
        (data_plane::Error::Gone.into(), Exit::Unavailable, "data_plane_unavailable"),
        (refused("ledger_refused").into(), Exit::Unavailable, "ledger_refused"),
        (ReconcileError::from(refused("ledger_refused")).into(), Exit::Unavailable, "ledger_refused"),
        (ReconcileError::Busy.into(), Exit::TryAgain, "ledger_in_use"),
        (docker::Error::ImageGone { id: String::new() }.into(), Exit::Unavailable, "docker_unavailable"),
        (workspace::Error::Thread.into(), Exit::Unavailable, "workspace_failed"),
        (files::Error::NoFiles { run_id: run_id() }.into(), Exit::Failure, "files_refused"),
        (files::ApplyError::Refused { problems: Vec::new() }.into(), Exit::Failure, "apply_refused"),
        (NotEnded { run_id: run_id(), state: State::Running }.into(), Exit::TryAgain, "run_not_ended"),
        (insufficient_disk().into(), Exit::Unavailable, "insufficient_disk"),
        (supervise::Error::NotReady.into(), Exit::Unavailable, "data_plane_unavailable"),
        (unbound.into(), Exit::Unavailable, "address_in_use"),
        (setup::Error::Stopped.into(), Exit::Cancelled, "setup_refused"),
        (setup::Error::Unusable(Vec::new()).into(), Exit::Usage, "setup_refused"),
        (gateways::Error::NoSecret(gateway()).into(), Exit::Internal, "gateway_failed"),
        (gateway_bridge::Error::NotIdentified.into(), Exit::Internal, "gateway_failed"),
        (DeviceError::NotAKey { path: "/key".into() }.into(), Exit::Internal, "gateway_failed"),
        (RunId::parse("").unwrap_err().into(), Exit::Internal, "internal"),
        (invalid_json().into(), Exit::Internal, "internal"),
        (before_1970.into(), Exit::Internal, "internal"),
        (io::Error::from(io::ErrorKind::BrokenPipe).into(), Exit::ClosedPipe, "internal"),
    ]);
}

#[test]
fn an_error_reads_as_its_cause_does() {
    let cause = || supervise::Error::Wait(io::Error::other("no child"));
    assert_eq!(report::chain(&Error::from(cause())), report::chain(&cause()));
    assert_eq!(report::chain(&cause()), "cannot wait for the proxy: no child");
}
