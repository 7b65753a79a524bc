//! Measures load generator and upstream alone, without a peer.

use super::{Launch, PLAIN, Peer};
use crate::load::Target;

pub(super) const PEER: Peer = Peer {
    name: "direct",
    lacks: "everything: no hop",
    abilities: &[],
    launch: |site| {
        Ok(Launch {
            command: None,
            ready: Target::Tcp(site.setup.upstream),
            target: |site| Ok(Target::Tcp(site.setup.upstream)),
        })
    },
    ..PLAIN
};
