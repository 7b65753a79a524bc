//! Tests exit codes and texts of errors.

use std::time::{SystemTime, UNIX_EPOCH};

use platform_core::id::GatewayId;
use platform_runtime::{
    config::Sources,
    report,
    settings::{Sandbox, Settings},
};
use runner_engine::{agent_data::BehaviourError, pricing::Unpriced};
use runner_workspace::Workspaces;

use super::*;

fn unknown_run() -> store::Error {
    store::Error::Unknown { run_id: RunId::parse("run-1").unwrap() }
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

#[tokio::test]
async fn every_error_has_its_exit_code() {
    let gateway = || GatewayId::parse("coding").unwrap();
    let address = "127.0.0.1:4180".parse().unwrap();
    let unbound = api::StartError::Unbound { address, source: io::ErrorKind::AddrInUse.into() };
    let no_certificate = api::StartError::from(api::TlsError::NoCertificate { path: "/c.pem".into() });
    let before_1970 = UNIX_EPOCH.duration_since(SystemTime::now()).unwrap_err();
    let run_id = || RunId::parse("run-1").unwrap();
    let cases: [(Error, Exit); 40] = [
        (ConfigErrors(Vec::new()).into(), Exit::Usage),
        (Misused(String::new()).into(), Exit::Usage),
        (OrderError::from(BehaviourError::Missing { dir: "/agents".into() }).into(), Exit::Usage),
        (NoGateway::among([], "coding").into(), Exit::Usage),
        (token_secrets::Error::Empty { path: "/secrets".into() }.into(), Exit::Usage),
        (no_certificate.into(), Exit::Usage),
        (traces::Unusable::Endpoint(String::new()).into(), Exit::Usage),
        (OrderError::from(Unpriced::UnderRunLimit { model: String::new() }).into(), Exit::Usage),
        (Unknown(String::new()).into(), Exit::Failure),
        (unknown_run().into(), Exit::Failure),
        (store::DecideError::Unknown { run_id: run_id(), id: String::new() }.into(), Exit::Failure),
        (store::Error::SessionBusy { by: String::new() }.into(), Exit::TryAgain),
        (store::Error::NotEmpty { store: String::new() }.into(), Exit::Usage),
        (store::Error::OnlyReads.into(), Exit::Unavailable),
        (LeaseError::NotStored(unknown_run()).into(), Exit::Failure),
        (LeaseError::Unwritable(invalid_json()).into(), Exit::Internal),
        (managed::Error::Elsewhere { id: gateway(), url: String::new() }.into(), Exit::Usage),
        (managed::Error::Unsafe { id: gateway(), findings: Vec::new() }.into(), Exit::Failure),
        (managed::Error::NoModel(gateway()).into(), Exit::Unavailable),
        (managed::Error::Ended { id: gateway(), tail: String::new() }.into(), Exit::Internal),
        (repos::Error::Exists { name: "web".parse().unwrap() }.into(), Exit::Usage),
        (docker_error(docker::Error::VolumeInUse { volume: String::new() }), Exit::TryAgain),
        (data_plane::Error::Gone.into(), Exit::Unavailable),
        (docker::Error::ImageGone { id: String::new() }.into(), Exit::Unavailable),
        (workspace::Error::Thread.into(), Exit::Unavailable),
        (files::Error::NoFiles { run_id: run_id() }.into(), Exit::Failure),
        (files::ApplyError::Refused { problems: Vec::new() }.into(), Exit::Failure),
        (NotEnded { run_id: run_id(), state: State::Running }.into(), Exit::TryAgain),
        (insufficient_disk().into(), Exit::Unavailable),
        (supervise::Error::NotReady.into(), Exit::Unavailable),
        (unbound.into(), Exit::Unavailable),
        (setup::Error::Stopped.into(), Exit::Cancelled),
        (setup::Error::Unusable(Vec::new()).into(), Exit::Usage),
        (gateways::Error::NoSecret(gateway()).into(), Exit::Internal),
        (gateway_bridge::Error::NotIdentified.into(), Exit::Internal),
        (DeviceError::NotAKey { path: "/key".into() }.into(), Exit::Internal),
        (RunId::parse("").unwrap_err().into(), Exit::Internal),
        (invalid_json().into(), Exit::Internal),
        (before_1970.into(), Exit::Internal),
        (io::Error::from(io::ErrorKind::BrokenPipe).into(), Exit::ClosedPipe),
    ];
    for (error, code) in cases {
        assert_eq!(error.exit_code(), code, "{error:?}");
    }
    for error in [Error::Failpoint(String::new()), Error::DisplayPanicked, io::Error::other("disk").into()] {
        assert_eq!(error.exit_code(), Exit::Internal, "{error:?}");
    }
}

#[test]
fn an_error_reads_as_its_cause_does() {
    let cause = || supervise::Error::Wait(io::Error::other("no child"));
    assert_eq!(report::chain(&Error::from(cause())), report::chain(&cause()));
    assert_eq!(report::chain(&cause()), "cannot wait for the proxy: no child");
}
