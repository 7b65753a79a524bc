//! Reads the answer to `connect`.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use platform_core::json::Raw;
use serde::Deserialize;

use super::Malformed;
use crate::{
    boot_id::BootId,
    error::Error,
    hello::{GatewayVersion, Generation, Hello},
    settings::Scopes,
};

/// Tick interval of a gateway that does not report one.
const DEFAULT_TICK_INTERVAL: Duration = Duration::from_secs(30);

/// Largest frame of a gateway that reports no size: the limit of older gateways.
const DEFAULT_MAX_PAYLOAD: u64 = 512 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawHello {
    protocol: u64,
    #[serde(default)]
    server: RawServer,
    #[serde(default)]
    features: RawFeatures,
    #[serde(default)]
    auth: RawAuth,
    #[serde(default)]
    policy: RawPolicy,
    #[serde(default)]
    snapshot: RawSnapshot,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawServer {
    version: String,
    conn_id: String,
    boot_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawFeatures {
    methods: BTreeSet<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawAuth {
    scopes: Option<BTreeSet<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPolicy {
    max_payload: Option<u64>,
    max_buffered_bytes: Option<u64>,
    tick_interval_ms: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSnapshot {
    uptime_ms: Option<u64>,
}

/// Reads a hello that came `now`, and checks that it grants the requested rights. Older gateways grant all rights, and
/// do not list them.
pub(crate) fn read(
    payload: Option<Raw<'_>>,
    wanted: &Scopes,
    now: SystemTime,
) -> Result<Result<Hello, Error>, Malformed> {
    let payload = payload.ok_or(Malformed)?;
    let raw: RawHello = payload.read().map_err(|_error| Malformed)?;
    let generation = match raw.protocol {
        3 => Generation::Three,
        4 => Generation::Four,
        other => return Ok(Err(Error::ProtocolMismatch { expected: Some(other) })),
    };
    if let Some(granted) = &raw.auth.scopes {
        let lacks = |scope: &&str| !granted.contains(*scope);
        let missing: Vec<_> = wanted.iter().map(crate::settings::Scope::as_str).filter(lacks).collect();
        if !missing.is_empty() {
            return Ok(Err(Error::MissingScopes { missing }));
        }
    }
    let size = |size: Option<u64>| usize::try_from(size.unwrap_or(DEFAULT_MAX_PAYLOAD)).unwrap_or(usize::MAX);
    let uptime = raw.snapshot.uptime_ms.map(Duration::from_millis);
    Ok(Ok(Hello {
        generation,
        version: GatewayVersion::parse(&raw.server.version),
        boot: BootId::from_report(raw.server.boot_id, uptime, now),
        uptime,
        connection: raw.server.conn_id,
        max_payload: size(raw.policy.max_payload),
        max_buffered: size(raw.policy.max_buffered_bytes),
        tick: raw
            .policy
            .tick_interval_ms
            .filter(|tick| *tick > 0)
            .map_or(DEFAULT_TICK_INTERVAL, Duration::from_millis),
        methods: Arc::new(raw.features.methods),
    }))
}
