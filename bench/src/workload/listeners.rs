//! Opens and closes one listener again and again while many others are held. Latency is that of opening.
//!
//! The predecessor started a proxy container per run. Of the peers only Sluicegate opens a listener on request. The
//! others need a line of configuration and a reload.

use std::{io, sync::Arc, time::Duration};

use super::{Load, Workload};
use crate::{
    load::{Connection, Round, Target},
    measure::clock,
    peer::sluicegate,
};

/// Leaves free a third of the files that a process may open on the smallest measured machine.
pub(super) const WORKLOAD: Workload = Workload {
    name: "listeners-10000",
    about: "10,000 run listeners held, one more opened (latency) and closed at a time",
    load: Load::Listeners { held: 10_000 },
    request: || Arc::from([]),
    ..Workload::CLOSED
};

/// Opens `count` listeners and keeps them open.
pub(super) async fn hold(control: &Target, count: usize) -> io::Result<()> {
    let mut connection = Connection::open(control).await?;
    for index in 0..count {
        connection.exchange(&sluicegate::registration(&format!("held-{index}"))).await?;
    }
    Ok(())
}

/// Opens and closes one listener at a time for `span`.
pub(super) async fn open_and_close(control: &Target, span: Duration) -> io::Result<Round> {
    let mut connection = Connection::open(control).await?;
    let mut round = Round::default();
    let began = clock::nanos();
    while u128::from(clock::nanos() - began) < span.as_nanos() {
        let run = format!("opened-{}", round.requests);
        let sent = clock::nanos();
        let received = connection.exchange(&sluicegate::registration(&run)).await?;
        round.requests += 1;
        round.latency.push(received.last_byte_ns - sent);
        round.first_byte.push(received.first_byte_ns - sent);
        connection.exchange(&sluicegate::closing(&run)).await?;
    }
    round.elapsed_ns = clock::nanos() - began;
    Ok(round)
}
