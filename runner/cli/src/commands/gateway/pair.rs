//! Implements `sluice gateway pair`.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use gateway_bridge::{DeviceKey, Error as Bridge, Gateway, Settings};
use platform_runtime::settings;
use runner_gateways::GatewayPool;

use super::{Context, Error, Exit, GatewayArgument};
use crate::commands::error::Misused;

/// Delay between two attempts to connect.
const RETRY_DELAY: Duration = Duration::from_secs(3);
/// Longest time of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    gateway: GatewayArgument,
    /// Longest wait for the approval, in seconds; 0 sends the request and returns
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    wait: u64,
}

pub(super) async fn pair(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let (id, gateway) = context.settings.gateway(&arguments.gateway.id)?;
    let key = device_key(gateway)?;
    let mut out = io::stdout();
    writeln!(out, "this client is device {}", key.id())?;
    let pool = GatewayPool::of(&context.settings);
    let connection = pool.named(id.as_str())?;
    let deadline = Instant::now() + Duration::from_secs(arguments.wait);
    let mut shown_request = None;
    loop {
        match attempt_connection(connection.settings()?).await? {
            Attempt::Connected => {
                writeln!(out, "{id} knows this client: runs can be sessions of it")?;
                return Ok(Exit::Success);
            }
            Attempt::PairingRequested(request) => {
                if shown_request.as_ref() != Some(&request) {
                    writeln!(out, "where the gateway runs, type:\n  openclaw devices approve {request}")?;
                    out.flush()?;
                    shown_request = Some(request);
                }
            }
            Attempt::Unavailable(why) => writeln!(io::stderr(), "sluice: trying {id} again: {why}")?,
        }
        if Instant::now() >= deadline {
            writeln!(out, "not approved so far; `sluice gateway pair {id}` continues")?;
            return Ok(Exit::TryAgain);
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Opens the key that identifies this client. Creates it if it does not exist.
fn device_key(gateway: &settings::Gateway) -> Result<DeviceKey, Error> {
    let path = gateway.device_key_file.as_deref().ok_or_else(|| {
        Misused(
            "the gateway has no file for this client's key: set `device_key_file` in its [gateways.NAME]"
                .to_owned(),
        )
    })?;
    Ok(DeviceKey::open(path)?)
}

/// Result of an attempt to connect.
enum Attempt {
    /// The gateway accepted the client.
    Connected,
    /// Pairing was requested under this id.
    PairingRequested(String),
    /// The gateway did not answer in time, for this reason.
    Unavailable(String),
}

async fn attempt_connection(settings: Settings) -> Result<Attempt, Error> {
    let gateway = Gateway::open(settings);
    let ready = tokio::time::timeout(ATTEMPT_TIMEOUT, gateway.ready()).await;
    let problem = gateway.trouble();
    gateway.close().await;
    match ready {
        Ok(Ok(_hello)) => Ok(Attempt::Connected),
        Ok(Err(Bridge::PairingRequired { request })) => Ok(Attempt::PairingRequested(request)),
        Ok(Err(error)) => Err(error.into()),
        Err(_elapsed) => Ok(Attempt::Unavailable(
            problem.map_or_else(|| "it does not answer".to_owned(), |error| error.to_string()),
        )),
    }
}
