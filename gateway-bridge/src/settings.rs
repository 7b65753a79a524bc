//! What one connection to a gateway is made with.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use platform_core::{id::GatewayProvider, limit::ByteSize, secret::Secret};

use crate::{device::DeviceKey, endpoint::Endpoint};

/// Everything [`crate::Gateway::open`] needs. [`Settings::new`] fills in what most callers want.
#[derive(Debug)]
pub struct Settings {
    /// Where the gateway listens.
    pub endpoint: Endpoint,
    /// The gateway's token, or the token it gave this device when the device was paired.
    pub token: Option<Secret>,
    /// The key of this device: needed off the loopback, where newer gateways give a bare token no rights.
    pub device: Option<DeviceKey>,
    /// How to speak TLS with a [`Endpoint::Tls`]. Without it the operating system's certificates are trusted.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The rights that are asked for. A gateway that grants fewer is a final error.
    pub scopes: Scopes,
    /// The provider of the gateway's configuration that a turn's model belongs to, unless the turn has a slot of its
    /// own. Without it a model's name goes to the gateway as it is, which takes what stands before its first `/` for
    /// a provider.
    pub provider: Option<GatewayProvider>,
    /// Seed of the jitter between attempts to connect.
    pub seed: u64,
    /// How long and how large things may be.
    pub limits: Limits,
}

impl Settings {
    /// Rights to run turns, no device, limits as [`Limits::default`] has them.
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
            limits: Limits::default(),
        }
    }
}

/// Times and sizes of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the first byte to the gateway's hello. A gateway that is starting is asked again after it.
    pub handshake: Duration,
    /// For the answer to a call that is no turn.
    pub call: Duration,
    /// How long a turn that was aborted may take to say so.
    pub abort: Duration,
    /// The shortest pause before a new attempt to connect.
    pub first_pause: Duration,
    /// The longest one; what a gateway asks for is cut to it, too.
    pub longest_pause: Duration,
    /// Largest frame that is taken from a gateway. A larger one ends the connection before it is read.
    pub receive: ByteSize,
    /// Text of one turn that is kept for a reader that does not read; what is above it is told as missed.
    pub unread: ByteSize,
}

impl Default for Limits {
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

/// A right of a gateway's operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `operator.admin`: choose a session's model, give it headers.
    Admin,
    /// `operator.read`: hear events, read histories.
    Read,
    /// `operator.write`: run turns, abort them.
    Write,
    /// `operator.approvals`: answer requests for approval. Whoever asks for it says that somebody answers them, so
    /// that a turn waits for an answer where it would otherwise be refused the command.
    Approvals,
    /// `operator.pairing`: approve devices.
    Pairing,
}

impl Scope {
    /// The name of the right on the wire.
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

/// Rights that are asked for, in the order in which they are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// These rights and no other.
    #[must_use]
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(scopes.into_iter().collect())
    }

    /// Whether this one is asked for.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }

    /// What this client says it understands.
    pub(crate) fn caps(&self) -> Vec<&'static str> {
        let approvals = self.has(Scope::Approvals);
        let mut caps = vec!["tool-events"];
        caps.extend(["exec-approvals", "approvals"].into_iter().filter(|_| approvals));
        caps
    }
}

/// What turns need: the model of a session is an administrator's to choose.
impl Default for Scopes {
    fn default() -> Self {
        Self::of([Scope::Admin, Scope::Read, Scope::Write])
    }
}
