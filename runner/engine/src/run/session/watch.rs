//! Watches a turn that was sent to its gateway, and ends it at its timeout or after a cancel.

use std::{convert::Infallible, future::pending, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use gateway_bridge::{Ending, Event, Failure as Frames, Phase as Reached, Running};
use platform_core::{control::Correlation, id::ToolName, limit::Millis};
use platform_runtime::report;
use runner_docker::KilledBy;
use runner_model::{away::Away, failpoint::Point, lifecycle::Failure};
use runner_store::{self as store, Change, Kind, Stage};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{ABORT, At, tell::Told};
use crate::{
    run::{
        Error, Scene,
        calls::{self, Calls},
        relay::relay,
        things::Things,
    },
    verdict::turn as verdict,
};

/// Silence after which a turn that is over counts as settled, so that calls of the gateway's own cleanup belong to the
/// run.
const QUIET: Duration = Duration::from_millis(300);
/// The same for a turn that has started sub-agents: these may begin and go on after the turn is done.
const QUIET_OF_MANY: Duration = Duration::from_secs(5);
/// Longest wait for that, unless there are sub-agents: those have the time of the run.
const TIDYING: Duration = Duration::from_secs(10);
/// Delay after the data plane could not be asked.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for deltas after the end.
const TAP_GRACE: Duration = Duration::from_millis(200);

/// Waits for the turn's end, and ends the turn at its timeout or after a cancel.
pub(super) async fn watch(
    scene: &Scene<'_>,
    things: &mut Things,
    (at, told): (At<'_>, Told),
) -> Result<Result<String, Failure>, Error> {
    let At { hello, left, tap, steps, .. } = at;
    let (calls, gone) = (Calls::new(), CancellationToken::new());
    let plane = (&scene.host.data_plane, &scene.order().run_id);
    let beside = async {
        tokio::join!(relay(plane, tap, &scene.telling, &gone), calls.follow(plane, steps));
        pending::<Infallible>().await
    };
    let deadline = Instant::now() + left;
    let ended = async {
        let (ending, killed_by) = Box::pin(hear(scene, things, (told.running, deadline))).await?;
        if killed_by.is_none() {
            let is_waited_for = match &ending {
                Ending::Completed { .. } => true,
                // The gateway's state is not known.
                Ending::Failed(Frames::Lost | Frames::Aborted | Frames::Deadline) => false,
                Ending::Failed(_) => told.slot.is_some(),
            };
            if is_waited_for && settled(scene, &calls, deadline).await == Settled::Yes {
                give_back(scene, told.slot).await;
            }
        }
        gone.cancel();
        sleep(TAP_GRACE).await;
        Point::Ended.reach();
        let is_open = killed_by.is_none() && verdict::is_open(&ending, hello.generation);
        let last = if is_open { calls::last(scene).await } else { None };
        let seen = verdict::Seen { killed_by, generation: hello.generation, last };
        Ok::<_, Error>(verdict::judge(&scene.order().wanted.agent, ending, seen))
    };
    tokio::select! {
        ended = ended => ended,
        never = beside => match never {},
        never = scene.telling.keep(scene.booked) => match never {},
    }
}

/// Returns a slot at which no call is made any more: the gateway has reported the end of the turn, and its calls are
/// quiet. Other slots go into quarantine: sub-agents may still use them.
async fn give_back(scene: &Scene<'_>, slot: Option<Correlation>) {
    let Some(slot) = slot.filter(|_| !scene.telling.has_delegated()) else { return };
    let run = &scene.order().run_id;
    if let Err(error) = scene.host.data_plane.withdraw(run, slot).await {
        tracing::debug!(%run, error = %report::chain(&error), "a slot rests");
    }
}

/// Reads a turn's events to its end. Dropping this future leaves the turn as it is, for the worker that takes the run
/// over.
async fn hear(
    scene: &Scene<'_>,
    things: &mut Things,
    (mut running, deadline): (Running, Instant),
) -> Result<(Ending, Option<KilledBy>), Error> {
    running.detach();
    let mut killed_by = None;
    // Stored beside everything else: an unavailable store delays neither a deadline nor a cancel.
    let mut taken: Option<(Change, LocalBoxFuture<'_, Result<(), store::Error>>)> = None;
    loop {
        let until = if killed_by.is_some() { Instant::now() + ABORT } else { deadline };
        let by = tokio::select! {
            event = running.next() => match event {
                Some(Event::Text(text)) => {
                    scene.telling.said(text);
                    continue;
                }
                Some(Event::Status(Reached::Accepted)) => {
                    let change = things.last(Kind::Turn).map(|turn| turn.to(Stage::Made));
                    taken = change.map(|change| (change.clone(), scene.booked.change([change]).boxed_local()));
                    continue;
                }
                // The data plane reports tools, whatever the gateway's version.
                Some(Event::Tool { name, .. }) => {
                    scene.telling.uses(name.as_ref().map_or("", ToolName::as_str));
                    continue;
                }
                Some(Event::Status(_) | Event::Usage(_) | Event::Missed { .. }) => continue,
                None => return Ok((running.ending().await, killed_by)),
            },
            stored = kept(&mut taken) => {
                things.change(&[stored?]);
                taken = None;
                Point::TurnTaken.reach();
                continue;
            }
            () = sleep_until(until) => KilledBy::Timeout,
            () = scene.cancel.cancelled(), if killed_by.is_none() => KilledBy::Cancel,
        };
        if killed_by.is_some() {
            // The abort was sent, and the gateway does not answer.
            return Ok((Ending::Failed(Frames::Aborted), killed_by));
        }
        killed_by = Some(by);
        running.cancel();
        stop(scene, by).await?;
    }
}

/// Waits until the acceptance of the turn is stored; never ready if there is nothing to store.
async fn kept(
    taken: &mut Option<(Change, LocalBoxFuture<'_, Result<(), store::Error>>)>,
) -> Result<Change, store::Error> {
    match taken {
        Some((change, storing)) => storing.await.map(|()| change.clone()),
        None => pending().await,
    }
}

/// Stores that the turn is to end and closes its grant, and retries while the data plane is unavailable. A turn that is
/// over its time is ended even if another worker holds the run by now, because that worker would end it too.
pub(super) async fn stop(scene: &Scene<'_>, by: KilledBy) -> Result<(), Error> {
    let Scene { host, booked, .. } = *scene;
    let run = &booked.order.run_id;
    let close = async {
        loop {
            let close = host.data_plane.close(run, booked.epoch(), Millis(0));
            let closed = match by {
                KilledBy::Timeout | KilledBy::Disk => close.await,
                KilledBy::Cancel => booked.act(close).await?,
            };
            match closed {
                Err(error) if error.is_away() => sleep(PAUSE).await,
                Err(error) if !error.is_unknown_run() => return Err(error.into()),
                _ => return Ok::<_, Error>(()),
            }
        }
    };
    let (stored, closed) = tokio::join!(booked.stopping(by), close);
    stored?;
    closed
}

/// State of a turn after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    Yes,
    /// The wait was given up.
    No,
}

/// Waits until the gateway's work after a turn is done, such as shortening the conversation or the work of sub-agents:
/// its calls belong to the run. A cancel ends the wait.
async fn settled(scene: &Scene<'_>, calls: &Calls, deadline: Instant) -> Settled {
    let (data_plane, run) = (&scene.host.data_plane, &scene.order().run_id);
    let (least, longest) = if scene.telling.has_delegated() {
        (QUIET_OF_MANY, deadline.saturating_duration_since(Instant::now()))
    } else {
        (QUIET, TIDYING)
    };
    let quiet = async {
        loop {
            sleep(QUIET / 3).await;
            let is_idle = data_plane.run(run).await.is_ok_and(|view| view.in_flight == 0);
            if is_idle && calls.quiet() >= least {
                return;
            }
        }
    };
    tokio::select! {
        done = timeout(longest, quiet) => done.map_or(Settled::No, |()| Settled::Yes),
        () = scene.cancel.cancelled() => Settled::No,
    }
}
