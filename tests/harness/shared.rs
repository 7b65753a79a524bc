//! The listener that runs share, and tokens for it.

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

/// The secrets that a shared listener takes tokens of, as their file holds them.
pub const SECRETS: &str = "new:canary-5d20e8b1-new\nold:canary-5d20e8b1-old\n";

/// Starts the world's proxy anew with a listener that runs share and that serves `whom`, `clients` or `gateways`.
pub async fn share(world: &mut World, whom: &str) {
    assert!(world.stop_proxy().await);
    private_file(&world.path().join("tokens"), SECRETS);
    let settings = format!(
        "threads = 2\nlisten = '127.0.0.1:0'\nlisten_serves = '{whom}'\ntoken_secrets_file = '{}/tokens'",
        world.path().display()
    );
    world.reconfigure("threads = 2", &settings);
    world.start_proxy().await;
}

/// Registers a run for the shared listener, and returns where that is.
///
/// # Panics
/// If it is refused.
pub async fn register_shared(world: &World, grant: RunGrant) -> SocketAddr {
    let registered = world.control.register(&RunGrant { listener: Listener::Shared, ..grant }).await.unwrap();
    assert_eq!(registered.socket, None);
    registered.shared.unwrap()
}

/// A token of `run`, signed with one of the secrets above or another, that holds for `lasts` seconds.
///
/// # Panics
/// If `run` is no run's name.
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
