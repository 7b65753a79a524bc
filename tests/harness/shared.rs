//! Opens the shared listener, and creates run tokens for it.

use std::{
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use platform_core::{
    grant::{Listener, RunGrant},
    id::SecretId,
    secret::Secret,
    token::{NamedSecret, RunToken, UnixSeconds},
};

use crate::{
    canary::{self, CANARY_SECRET},
    world::{World, private_file},
};

/// Content of the file of token secrets: tokens signed with one of these are valid.
pub const SECRETS: &str = "new:canary-5d20e8b1-new\nold:canary-5d20e8b1-old\n";

/// Restarts the world's proxy with a shared listener. `serves` is `clients` or `gateways`.
pub async fn share(world: &mut World, serves: &str) {
    assert!(world.stop_proxy().await);
    private_file(&world.path().join("tokens"), SECRETS);
    let settings = format!(
        "threads = 2\nlisten = '127.0.0.1:0'\nlisten_serves = '{serves}'\ntoken_secrets_file = '{}/tokens'",
        world.path().display()
    );
    world.reconfigure("threads = 2", &settings);
    world.start_proxy().await;
}

/// Registers a run on the shared listener, and returns the listener's address.
///
/// # Panics
/// If it is refused.
pub async fn register_shared(world: &World, grant: RunGrant) -> SocketAddr {
    let registered = world.control.register(&RunGrant { listener: Listener::Shared, ..grant }).await.unwrap();
    assert_eq!(registered.socket, None);
    registered.shared.unwrap()
}

/// Returns a token of `run` that is valid for `lasts` seconds. `secret` completes the signing secret: `new` and `old`
/// are those of [`SECRETS`], any other one is unknown to the proxy.
///
/// # Panics
/// If `run` is not a valid run id.
#[must_use]
pub fn token(run: &str, attempt: u32, secret: &str, lasts: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let expiry = UnixSeconds(now.saturating_add_signed(lasts));
    let name = SecretId::parse("any").unwrap();
    let secret = NamedSecret::new(name, &Secret::new(format!("{CANARY_SECRET}{secret}"))).unwrap();
    let token = RunToken { run_id: run.parse().unwrap(), attempt, expiry }.mint(&secret).expose().to_owned();
    canary::hand_out(&token);
    token
}
