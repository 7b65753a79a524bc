//! Serves one connection: answers requests, and tells of the runs of the account's sessions.
//!
//! All is sent from one place, one frame after the other. While a client does not read, its events stay in the store, its
//! requests stay unread, and after a while it is told to leave. Other connections notice nothing.

use std::{
    future::{pending, ready},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use gateway_bridge::client_frame::ClientRequest;
use platform_core::{host_tools::ToolCallState, id::RunId};
use platform_runtime::{report, task};
use runner_store::Error as StoreError;
use serde_json::{Value, json};
use tokio::{
    task::coop::consume_budget,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    channel::{ClientEvent, FromClient, SocketChannel},
    clock::now,
    followed::{FollowedRuns, NewsOfRun, RunChange},
    handshake::TICK_INTERVAL,
    methods::{self, LaterAnswer, MethodAnswer},
    refusal::{Farewell, SocketRefusal},
    tenant::SocketTenant,
    transcript::RunNews,
};
use crate::error::Error;

/// Most requests of a connection that are being answered. Further ones stay unread.
const MAX_REQUESTS: usize = 16;
/// Most runs for the end of which a connection waits.
const MAX_WAITS: usize = 64;
/// Method that waits for the end of a run.
const WAIT_METHOD: &str = "agent.wait";
/// Longest time for which a client may read nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence of a client: it answers pings.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Shortest delay between two pieces of text. Those that come sooner are one.
const FLUSH_DELAY: Duration = Duration::from_millis(25);

/// Connection of a client that is admitted.
pub(super) struct GatewayConnection {
    channel: SocketChannel,
    tenant: Arc<SocketTenant>,
    followed: FollowedRuns,
    requests: FuturesUnordered<BoxFuture<'static, Settled>>,
    /// Requests that wait for the end of a run. They keep no other request from being read.
    waits: FuturesUnordered<BoxFuture<'static, Settled>>,
    tick: Pin<Box<Interval>>,
    last_heard: Instant,
    flush_at: Option<Instant>,
    /// Time of the last flush.
    flushed: Instant,
    /// Requests for decisions that the client was told of.
    asked: Vec<(RunId, String)>,
}

/// Request that is answered.
struct Settled {
    id: String,
    answer: Result<Value, SocketRefusal>,
    later: Option<LaterAnswer>,
}

/// Occurrence on which a connection acts.
enum Happening {
    Received(Result<FromClient, Farewell>),
    Settled(Settled),
    Changed(RunChange),
    Flush,
    Tick,
}

impl GatewayConnection {
    pub(super) async fn begin(
        channel: SocketChannel,
        tenant: Arc<SocketTenant>,
    ) -> Result<Self, BrokenBegin> {
        let followed = match FollowedRuns::begin(Arc::clone(&tenant)).await {
            Ok(followed) => followed,
            Err(error) => return Err(BrokenBegin { channel, farewell: store_failed(&error) }),
        };
        let mut tick = Box::pin(interval_at(Instant::now() + TICK_INTERVAL, TICK_INTERVAL));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            channel,
            tenant,
            followed,
            requests: FuturesUnordered::new(),
            waits: FuturesUnordered::new(),
            tick,
            last_heard: Instant::now(),
            flush_at: None,
            flushed: Instant::now(),
            asked: Vec::new(),
        })
    }

    /// Serves the client until the connection ends, and says why it does.
    pub(super) async fn serve(mut self) {
        let watch = Arc::clone(&self.tenant).watch();
        let stop = self.tenant.context.stop.clone();
        // Whatever is going on: a revoked client is answered nothing more.
        let farewell = tokio::select! {
            biased;
            farewell = watch => farewell,
            () = stop.cancelled() => Farewell::restart(),
            farewell = self.go_on() => farewell,
        };
        let Self { channel, tenant, followed, requests, waits, .. } = self;
        drop((followed, requests, waits));
        let principal = tenant.caller.name();
        tracing::info!(gateway = %tenant.gateway, by = principal, code = farewell.code, reason = farewell.reason(), "a client of a gateway leaves");
        channel.close(&farewell).await;
    }

    /// Acts on what happens until the client leaves, or has to.
    async fn go_on(&mut self) -> Farewell {
        loop {
            let happening = self.wait().await;
            if let Err(farewell) = self.act(happening).await {
                return farewell;
            }
            // Frames that have arrived at once would keep this thread from all others.
            consume_budget().await;
        }
    }

    async fn wait(&mut self) -> Happening {
        let Self { channel, followed, requests, waits, tick, flush_at, .. } = self;
        let has_room = requests.len() < MAX_REQUESTS;
        let flush = async {
            match *flush_at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            received = channel.receive(), if has_room => Happening::Received(received),
            Some(settled) = requests.next() => Happening::Settled(settled),
            Some(settled) = waits.next() => Happening::Settled(settled),
            change = followed.next() => Happening::Changed(change),
            () = flush => Happening::Flush,
            _ = tick.tick() => Happening::Tick,
        }
    }

    async fn act(&mut self, happening: Happening) -> Result<(), Farewell> {
        match happening {
            Happening::Received(received) => self.receive(received?),
            Happening::Settled(settled) => self.settle(settled).await,
            Happening::Changed(change) => {
                let news = self.followed.take(change).await.map_err(|error| store_failed(&error))?;
                if self.followed.take_gap() {
                    self.channel.skip_event();
                }
                self.tell(news).await?;
                if self.followed.have_untold() && self.flush_at.is_none() {
                    self.flush_at = Some(self.flushed + FLUSH_DELAY);
                }
                Ok(())
            }
            Happening::Flush => {
                self.flush_at = None;
                self.flushed = Instant::now();
                let news = self.followed.flush();
                self.tell(news).await
            }
            Happening::Tick => self.pulse().await,
        }
    }

    /// Takes a frame of the client, and begins to answer it.
    fn receive(&mut self, received: FromClient) -> Result<(), Farewell> {
        self.last_heard = Instant::now();
        let FromClient::Text(text) = received else { return Ok(()) };
        let request = ClientRequest::read(&text).map_err(|refusal| Farewell::policy(&refusal.message))?;
        let tenant = Arc::clone(&self.tenant);
        let ClientRequest { id, method, params } = request;
        let settled_id = id.clone();
        let waits = method == WAIT_METHOD;
        let answering = async move {
            match methods::answer(tenant, &method, params).await {
                Ok(MethodAnswer { payload, later }) => Settled { id: settled_id, answer: Ok(payload), later },
                Err(refusal) => Settled { id: settled_id, answer: Err(refusal), later: None },
            }
        };
        match waits {
            true => self.wait_for_end(id, answering),
            false => self.requests.push(spawn_answer(id, answering)),
        }
        Ok(())
    }

    /// Answers the request `id` once a run has ended.
    fn wait_for_end(&mut self, id: String, answering: impl Future<Output = Settled> + Send + 'static) {
        if self.waits.len() < MAX_WAITS {
            return self.waits.push(spawn_answer(id, answering));
        }
        let why = format!("the connection waits for {MAX_WAITS} runs already: wait for the end of one");
        let answer = Err(SocketRefusal::unavailable("TOO_MANY_WAITS", why, READ_TIMEOUT));
        self.requests.push(ready(Settled { id, answer, later: None }).boxed());
    }

    async fn settle(&mut self, Settled { id, answer, later }: Settled) -> Result<(), Farewell> {
        read_in_time(self.channel.respond(&id, &answer)).await?;
        if let Some(later) = later {
            let settled_id = id.clone();
            let settling = async move { Settled { id: settled_id, answer: later.await, later: None } };
            self.wait_for_end(id, settling);
        }
        Ok(())
    }

    /// Tells the client of runs.
    async fn tell(&mut self, news: Vec<NewsOfRun>) -> Result<(), Farewell> {
        for NewsOfRun { run_id, news } in news {
            match news {
                RunNews::Event(event) => self.send(event).await?,
                RunNews::Approval { call, state } => self.tell_of_approval(run_id, call, state).await?,
                RunNews::Ended => self.tell_of_end(&run_id).await?,
            }
        }
        Ok(())
    }

    async fn tell_of_approval(
        &mut self,
        run_id: RunId,
        call: String,
        state: ToolCallState,
    ) -> Result<(), Farewell> {
        if state == ToolCallState::Waiting {
            let event = methods::approval_event(&self.tenant, &run_id, &call).await;
            // It was decided already, or is a call of a host tool.
            let Ok(Some(event)) = event else { return Ok(()) };
            self.asked.push((run_id, call));
            return self.send(event).await;
        }
        let asked = self.asked.iter().position(|(run, id)| *run == run_id && *id == call);
        let Some(at) = asked else { return Ok(()) };
        self.asked.swap_remove(at);
        self.send(methods::resolved_event(&self.tenant, &run_id, &call, state)).await
    }

    async fn tell_of_end(&mut self, run_id: &RunId) -> Result<(), Farewell> {
        self.asked.retain(|(run, _)| run != run_id);
        let Some(session) = self.followed.session_of(run_id) else { return Ok(()) };
        let payload = json!({ "sessionKey": session, "runId": run_id.as_str(), "phase": "end", "ts": now() });
        self.send(ClientEvent::new("sessions.changed", payload)).await
    }

    /// Shows that both ends are there.
    async fn pulse(&mut self) -> Result<(), Farewell> {
        // While too many requests are answered, its pongs stay unread.
        let is_read = self.requests.len() < MAX_REQUESTS;
        if is_read && self.last_heard.elapsed() > SILENCE_TIMEOUT {
            return Err(Farewell::policy("the client answered no ping for 60 s"));
        }
        self.send(ClientEvent::new("tick", json!({ "ts": now() }))).await?;
        read_in_time(self.channel.ping()).await
    }

    async fn send(&mut self, event: ClientEvent) -> Result<(), Farewell> {
        read_in_time(self.channel.send_event(&event)).await
    }
}

/// Connection that ends before it begins.
pub(super) struct BrokenBegin {
    channel: SocketChannel,
    farewell: Farewell,
}

impl BrokenBegin {
    pub(super) async fn close(self) {
        self.channel.close(&self.farewell).await;
    }
}

/// Answers the request `id` in a task: it may hold a connection to the store, and goes on while the client does not read.
fn spawn_answer(
    id: String,
    answering: impl Future<Output = Settled> + Send + 'static,
) -> BoxFuture<'static, Settled> {
    let task = AbortOnDropHandle::new(task::spawn("gateway request", answering));
    let failed = |_panicked| Settled { id, answer: Err(Error::Internal.into()), later: None };
    task.map(|ended| ended.unwrap_or_else(failed)).boxed()
}

/// Sends a frame, unless the client does not take it in time.
async fn read_in_time(sending: impl Future<Output = Result<(), Farewell>>) -> Result<(), Farewell> {
    let late = |_elapsed| Err(Farewell::policy("slow consumer: the client read nothing for 10 s"));
    timeout(READ_TIMEOUT, sending).await.unwrap_or_else(late)
}

fn store_failed(error: &StoreError) -> Farewell {
    tracing::warn!(error = report::chain(error), "a connection of a gateway's client ends");
    Farewell::internal("the store of runs does not answer: connect again")
}
