//! Defines the settings of one connection to a gateway.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use platform_core::{id::GatewayProvider, limit::ByteSize, secret::Secret};

use crate::{device::DeviceKey, endpoint::Endpoint};

/// Settings that [`crate::Gateway::open`] needs. [`Settings::new`] fills in the values that most callers want.
#[derive(Debug)]
pub struct Settings {
    /// Address at which the gateway listens.
    pub endpoint: Endpoint,
    /// Token of the gateway, or the token it gave this device when the device was paired.
    pub token: Option<Secret>,
    /// Key of this device: needed off the loopback, where newer gateways give a bare token no rights.
    pub device: Option<DeviceKey>,
    /// TLS configuration for a [`Endpoint::Tls`]. Without it the operating system's certificates are trusted.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Rights that this client requests. If a gateway grants fewer, that is a final error.
    pub scopes: Scopes,
    /// Provider of the gateway's configuration that a turn's model belongs to, unless the turn has its own slot.
    /// Without it a model's name goes to the gateway unchanged, and the gateway reads the part before the first `/` as
    /// a provider.
    pub provider: Option<GatewayProvider>,
    /// Seed of the jitter between attempts to connect.
    pub seed: u64,
    /// Timeouts and sizes.
    pub limits: GatewayLimits,
}

impl Settings {
    /// Returns settings with the rights to run turns, no device, and the limits of [`GatewayLimits::default`].
    #[must_use]
    pub fn new(endpoint: Endpoint, token: Option<Secret>) -> Self {
        Self {
            endpoint,
            token,
            device: None,
            tls: None,
            scopes: Scopes::default(),
            provider: None,
            seed: 0,
            limits: GatewayLimits::default(),
        }
    }
}

/// Timeouts, delays and sizes of one connection.
#[derive(Debug, Clone, Copy)]
pub struct GatewayLimits {
    /// Timeout from the first byte to the gateway's hello. After it the client tries again, as with a gateway that is
    /// starting.
    pub handshake: Duration,
    /// Timeout of the answer to a call that is not a turn.
    pub call: Duration,
    /// Time for the gateway to confirm an abort.
    pub abort: Duration,
    /// Shortest pause before a new attempt to connect.
    pub first_pause: Duration,
    /// Longest pause; what a gateway asks for is cut to it, too.
    pub longest_pause: Duration,
    /// Largest frame that is accepted from a gateway. A larger one ends the connection before it is read.
    pub receive: ByteSize,
    /// Unread text of one turn that is kept; text above it is reported as missed.
    pub unread: ByteSize,
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(20),
            call: Duration::from_secs(30),
            abort: Duration::from_secs(5),
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(30),
            receive: ByteSize::mib(26),
            unread: ByteSize::kib(256),
        }
    }
}

/// Right of a gateway's operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `operator.admin`: choose a session's model, give it headers.
    Admin,
    /// `operator.read`: receive events, read histories.
    Read,
    /// `operator.write`: run turns, abort them.
    Write,
    /// `operator.approvals`: answer requests for approval. A client that asks for it declares that an operator answers
    /// them. Then a turn waits for an answer where it would otherwise be refused the command.
    Approvals,
    /// `operator.pairing`: approve devices.
    Pairing,
}

impl Scope {
    /// Returns the name of the right on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "operator.admin",
            Self::Read => "operator.read",
            Self::Write => "operator.write",
            Self::Approvals => "operator.approvals",
            Self::Pairing => "operator.pairing",
        }
    }
}

/// Requested rights, in the order in which they are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// Returns a request for these rights and no other.
    #[must_use]
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(scopes.into_iter().collect())
    }

    /// Returns whether this right is requested.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Iterates over the requested rights.
    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }

    /// Returns the capabilities that this client declares.
    pub(crate) fn caps(&self) -> Vec<&'static str> {
        let approvals = self.has(Scope::Approvals);
        let mut caps = vec!["tool-events"];
        caps.extend(["exec-approvals", "approvals"].into_iter().filter(|_| approvals));
        caps
    }
}

/// Rights that turns need: only an administrator may choose the model of a session.
impl Default for Scopes {
    fn default() -> Self {
        Self::of([Scope::Admin, Scope::Read, Scope::Write])
    }
}
