//! Lists the operations of a play and their frequency.

use std::time::Duration;

use http::Method;
use platform_runtime::task;
use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    task::JoinHandle,
};

use super::Stage;
use crate::{
    agent::{Agent, Answering, chat_body},
    pace::pace,
    raw::Raw,
};

/// Models: answers that end, streams that do not, upstreams that break off, fail, and never answer.
const MODELS: [&str; 11] = [
    "fake-words5",
    "fake-words40",
    "fake-words40-gap1ms",
    "fake-words200-gap2ms",
    "fake-firstbyte20ms",
    "fake-stall1",
    "fake-stall20",
    "fake-hang",
    "fake-cut0",
    "fake-cut3-gap1ms",
    "fake-errmid2",
];
/// Calls in flight beyond which the oldest are cut.
const CALLS: usize = 48;
/// Token limit of an answer. The longest answer exceeds it, because the upstream ignores it.
const MAX_TOKENS: u64 = 100;
/// Largest error of the clock, in seconds, after which it is set the other way.
const MAX_CLOCK_ERROR: i64 = 3 * 3600;
/// Largest change of the clock, in seconds.
const MAX_CLOCK_STEP: usize = 3600;
const CHAT: &str = "/v1/chat/completions";

impl Stage {
    pub(super) async fn operate(&mut self) {
        let operation = match self.random.below(1000) {
            0..25 => "kill",
            25..65 => "close a run",
            65..90 => "cut the upstream",
            90..110 => "upstream away for a while",
            110..130 => "stop and go on",
            130..150 => "cut the follower",
            150..154 => "kill the control plane",
            154..175 if self.volume.is_some() => "fill or free the disk",
            175..275 => "cut a client",
            275..320 => "half a request",
            320..440 => "finish",
            440..455 => "set the clock",
            _ => "call",
        };
        self.unavailable_for = self.unavailable_for.saturating_sub(1);
        if self.unavailable_for == 0 {
            self.fault_proxy.let_through();
        }
        *self.findings.operations.entry(operation).or_default() += 1;
        match operation {
            "kill" => self.kill().await,
            "close a run" => self.close().await,
            "cut the upstream" => self.fault_proxy.cut(),
            "upstream away for a while" => {
                self.fault_proxy.turn_away();
                self.fault_proxy.cut();
                self.unavailable_for = 1 + self.random.below(12);
            }
            "stop and go on" => self.stop_and_go_on().await,
            "cut the follower" => self.auditor.cut(),
            "kill the control plane" => self.kill_the_control_plane().await,
            "fill or free the disk" => self.fill_or_free(),
            "cut a client" => self.cut().await,
            "half a request" => self.send_half_a_request().await,
            "finish" => self.finish().await,
            "set the clock" => self.set_the_clock().await,
            _ => self.call().await,
        }
    }

    /// Begins calls of one run, which continue in the background.
    async fn call(&mut self) {
        let run = self.random.below(self.runs.len());
        for _ in 0..=self.random.below(4) {
            let model = MODELS[self.random.below(MODELS.len())];
            let streamed = if self.random.below(3) > 0 { Answering::Streamed } else { Answering::Whole };
            if self.calls.len() >= CALLS {
                abandon(self.calls.remove(0)).await;
            }
            self.calls.push(task::spawn("a call", call_model(self.runs[run].agent.clone(), model, streamed)));
        }
    }

    /// Makes a call with an answer that ends, and waits for its end.
    async fn finish(&mut self) {
        let run = self.random.below(self.runs.len());
        call_model(self.runs[run].agent.clone(), MODELS[self.random.below(2)], Answering::Streamed).await;
    }

    /// Sends a part of a request and keeps the connection open.
    async fn send_half_a_request(&mut self) {
        let run = self.random.below(self.runs.len());
        let bytes = Raw::post(CHAT, &chat_body("fake", Answering::Whole)).bytes();
        let length = 1 + self.random.below(bytes.len() - 1);
        if let Ok(mut wire) = self.runs[run].agent.connect().await
            && wire.write_all(&bytes[..length]).await.is_ok()
        {
            self.halves.push(wire);
        }
    }

    async fn cut(&mut self) {
        if !self.calls.is_empty() {
            let at = self.random.below(self.calls.len());
            abandon(self.calls.swap_remove(at)).await;
        }
    }

    async fn close(&mut self) {
        let at = self.random.below(self.runs.len());
        let run = self.runs.swap_remove(at);
        let drain_ms = [0, 20][self.random.below(2)];
        self.world.control.close(&run.grant.run_id, drain_ms).await.unwrap();
        self.closed.push(run.grant);
        self.open().await;
    }

    /// Sets the clock forward or back, but never far from the machine's.
    async fn set_the_clock(&mut self) {
        let by = 1 + self.random.below(MAX_CLOCK_STEP) as i64;
        let ahead = self.clock.ahead();
        let is_back = ahead > MAX_CLOCK_ERROR || (ahead > -MAX_CLOCK_ERROR && self.random.below(2) == 0);
        self.clock.step(if is_back { -by } else { by });
        self.close_expired_runs().await;
    }

    async fn stop_and_go_on(&mut self) {
        self.world.signal_proxy(Signal::STOP);
        pace(Duration::from_millis(1 + self.random.below(30) as u64)).await;
        self.world.signal_proxy(Signal::CONT);
    }

    /// Starts a `sluice up` that adopts the proxy, and kills it.
    async fn kill_the_control_plane(&self) {
        let mut up = self.world.sluice().spawn(&["up"]);
        let mut output = BufReader::new(up.stdout.take().unwrap()).lines();
        while let Some(line) = output.next_line().await.unwrap() {
            if line.starts_with("ready") {
                break;
            }
        }
        up.kill().await.unwrap();
        assert_eq!(self.world.control.health().await.unwrap().pid, self.world.proxy_pid());
    }

    fn fill_or_free(&self) {
        match &self.volume {
            Some(volume) if volume.is_full() => volume.free(),
            Some(volume) => volume.fill(),
            None => {}
        }
    }
}

/// Makes a call and reads its answer until the answer ends or breaks.
async fn call_model(agent: Agent, model: &'static str, answering: Answering) {
    let mut body = chat_body(model, answering);
    // A smaller reservation for each call lets more of them run at a time.
    body["max_tokens"] = MAX_TOKENS.into();
    let body = body.to_string();
    if let Ok(stream) = agent.send(Method::POST, CHAT, body.into()).await {
        drop(stream.until_break().await);
    }
}

/// Ends a call as a client that leaves.
pub(super) async fn abandon(call: JoinHandle<()>) {
    call.abort();
    drop(call.await);
}
