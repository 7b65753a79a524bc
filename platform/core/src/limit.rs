//! Defines sizes and durations with their unit in the type, and keeps every default in one place.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

/// Number of bytes, written with a binary unit: `64KiB`, `32 MiB`, or plain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl ByteSize {
    /// Returns `count` binary kilobytes.
    #[must_use]
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// Returns `count` binary megabytes.
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// Returns the size as an index into memory. A size that memory cannot hold becomes the largest one it can.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Error for a text that is not a size or duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct InvalidLimit {
    /// Text that was given.
    pub text: String,
    /// Description of a valid text, with an example.
    pub expected: &'static str,
}

impl FromStr for ByteSize {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let invalid = || InvalidLimit {
            text: text.to_owned(),
            expected: "a size such as `512 KiB`, `32 MiB` or `1 GiB`",
        };
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, unit)| text.trim().strip_suffix(name).map(|number| (number.trim_end(), *unit)))
            .unwrap_or((text.trim(), 1));
        number.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, unit): &&(&str, u64)| self.0 >= *unit && self.0.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
        write!(f, "{} {name}", self.0 / unit)
    }
}

/// Duration on the wire, in whole milliseconds. In configuration it is written `1500ms` or `2m 30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Returns `count` seconds.
    #[must_use]
    pub const fn seconds(count: u64) -> Self {
        Self(count * 1000)
    }

    /// Returns the same span as the standard library's type.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Millis {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        humantime::parse_duration(text)
            .ok()
            .and_then(|span| u64::try_from(span.as_millis()).ok())
            .map(Self)
            .ok_or_else(|| InvalidLimit {
                text: text.to_owned(),
                expected: "a duration such as `1500ms`, `90s` or `2m 30s`",
            })
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: u64 = 24 * 3600 * 1000;
        // humantime would say "2months 29days 3h" for 90 days.
        if self.0 > DAY && self.0.is_multiple_of(DAY) {
            return write!(f, "{}days", self.0 / DAY);
        }
        humantime::format_duration(self.duration()).fmt(f)
    }
}

/// Longest path of a unix socket on Linux: `sun_path` is 108 bytes with its terminating zero (unix(7)).
pub const MAX_SOCKET_PATH: usize = 107;

/// Defaults of the data plane.
pub mod data_plane {
    use super::{ByteSize, Millis};

    /// Largest request body.
    pub const REQUEST_BODY: ByteSize = ByteSize::mib(32);
    /// Request bodies of one run that are held in memory at a time.
    pub const RUN_BODIES: ByteSize = ByteSize::mib(64);
    /// Request bodies of all runs that are held in memory at a time.
    pub const ALL_BODIES: ByteSize = ByteSize::mib(512);
    /// Least memory for request bodies; less would refuse bodies that any SDK sends.
    pub const LEAST_BODIES: ByteSize = ByteSize::kib(64);
    /// Period over which a body must reach [`BODY_RATE`] on average.
    pub const BODY: Millis = Millis::seconds(10);
    /// Bytes per second below which a body is too slow: a tenth of what a bad telephone line gives.
    pub const BODY_RATE: ByteSize = ByteSize::kib(1);
    /// Longest wait for an answer to begin. An answer that is not streamed begins when it is complete. The same limit
    /// is sent to the upstream.
    pub const FIRST_BYTE: Millis = Millis::seconds(3600);
    /// Longest silence in the middle of an answer. Models think for minutes between two events, and official SDKs give
    /// up by themselves after ten, so no client is cut while it still waits.
    pub const BETWEEN_BYTES: Millis = Millis::seconds(900);
    /// Longest time in which a client reads nothing of its answer.
    pub const CLIENT: Millis = Millis::seconds(300);
    /// Longest duration of a whole call: a run of an hour may be one call.
    pub const CALL: Millis = Millis::seconds(3600);
    /// Most tokens of one answer.
    pub const OUTPUT_TOKENS: u64 = 8192;
    /// Time to open a connection to the upstream.
    pub const CONNECT: Millis = Millis::seconds(5);
    /// Time to open a TLS session on it.
    pub const TLS_HANDSHAKE: Millis = Millis::seconds(5);
    /// Idle connections to the upstream that each thread keeps: a burst of calls leaves that many behind.
    pub const POOL_MAX: u32 = 256;
    /// Longest time for a client to send a request's head.
    pub const HEADER_READ: Millis = Millis::seconds(30);
    /// Longest time that a connection may be idle between two calls. An agent thinks and works in between; one that
    /// returns later opens a new connection.
    pub const KEEP_ALIVE: Millis = Millis::seconds(300);
    /// Longest time that a call goes on after its client has left: most answers end sooner, and no client waits for one.
    pub const CLIENT_GONE: Millis = Millis::seconds(120);
    /// Connections of one run at a time, many more than calls that it may have in flight.
    pub const RUN_CONNECTIONS: u32 = 512;
    /// Connections on the shared listener at a time.
    pub const LISTEN_CONNECTIONS: u32 = 4096;
    /// Memory of the unfinished request heads of all connections: four listeners that are flooded.
    pub const HEADER_BYTES: ByteSize = ByteSize::mib(64);
    /// Memory of the unfinished request heads of one listener: a thousand heads of ordinary size.
    pub const LISTENER_HEADER_BYTES: ByteSize = ByteSize::mib(16);
    /// Idle time after which an upstream connection is not used again, shorter than the upstream's own timeout: uvicorn
    /// closes after 5 s, gunicorn after 2 s.
    pub const POOL_IDLE: Millis = Millis(1500);
    /// Time that a run token stays valid after its expiry, because the clock of the process that minted it may differ.
    pub const TOKEN_SKEW: Millis = Millis::seconds(30);
    /// Time in which calls in flight may end after a stop or a close was requested.
    pub const DRAIN: Millis = Millis::seconds(20);
    /// Time to cut and record the calls that are left after the drain.
    pub const DRAIN_CUT: Millis = Millis::seconds(5);
    /// Memory of the tap for each run that is watched: the last few thousand words.
    pub const TAP_RING: ByteSize = ByteSize::kib(256);
    /// Memory of the tap for all runs together, which is enough for 256 of them. With more runs, each gets less.
    pub const TAP_RINGS: ByteSize = ByteSize::mib(64);
    /// Time from the end of a run's last watcher until the run's tap memory is released. A worker reconnects sooner
    /// after a restart.
    pub const TAP_REST: Millis = Millis::seconds(600);
    /// Most bytes of text in one line of the tap.
    pub const TAP_DELTA: usize = 4096;
}

/// Limits on the events that are stored for runs.
pub mod events {
    use super::{ByteSize, Millis};

    /// Bytes stored from the beginning of each output; as many are stored from its end.
    pub const LOG_END: ByteSize = ByteSize::kib(256);
    /// Most events of the beginning of an output. Otherwise an agent that prints a dot now and then would fill the
    /// store.
    pub const LOG_EVENTS: u64 = 2000;
    /// Most text of one log event.
    pub const LOG_EVENT: ByteSize = ByteSize::kib(8);
    /// Tool calls of a run that are stored by name. Further ones are only counted.
    pub const TOOLS: u64 = 1000;
    /// Longest line in which an agent reports an event.
    pub const AGENT_LINE: ByteSize = ByteSize::mib(1);
    /// Most text of the arguments of a tool call, or of its result.
    pub const TOOL_TEXT: ByteSize = ByteSize::kib(16);
    /// Most text of all arguments and results of a run. Later tool calls are stored without them.
    pub const TOOL_TEXTS: ByteSize = ByteSize::mib(1);
    /// Tool calls, results and reports of usage of an agent that are stored. Further ones are only counted.
    pub const AGENT_EVENTS: u64 = 2000;
    /// Reports of usage that are stored after that many: most agents print theirs last.
    pub const AGENT_USAGE_RESERVE: u64 = 100;
    /// Activities of a run on a gateway that are stored. Further ones are only counted.
    pub const ACTIVITIES: u64 = 2000;
    /// Most characters of an activity's label.
    pub const ACTIVITY_LABEL: usize = 64;
    /// Time that a run's events are kept after its end, so that its failure can still be explained.
    pub const KEEP: Millis = Millis::seconds(30 * 24 * 3600);
    /// Number of ended runs of an account that keep their events. The events of one run are bounded at some 5 MiB;
    /// most have a few KiB.
    pub const KEEP_OF: u32 = 10_000;
    /// Events after which a transaction that removes some stops.
    pub const PRUNE_EVENTS: u64 = 4000;
}

/// Defaults of the journal.
pub mod journal {
    use super::{ByteSize, Millis};

    const DAY: u64 = 24 * 3600;

    /// Size at which a file of the journal is full.
    pub const SEGMENT_SIZE: ByteSize = ByteSize::mib(64);
    /// Age at which a file of the journal is full.
    pub const SEGMENT_AGE: Millis = Millis::seconds(DAY);
    /// Age at which full files are removed.
    pub const KEEP: Millis = Millis::seconds(90 * DAY);
    /// Size of all files together at which the oldest are removed.
    pub const DISK_BUDGET: ByteSize = ByteSize::mib(8 << 10);
    /// Calls of a run that were never sent and still get a record each: most at once.
    pub const UNSENT_AT_ONCE: u32 = 100;
    /// The same per second, in the long run. Calls beyond that share one record.
    pub const UNSENT_PER_SECOND: u32 = 20;
}

/// Defaults of an agent.
pub mod agent {
    use crate::budget::Budget;

    /// Limits of all calls of one run together. More than an agent needs for its task; ends one in an endless loop.
    pub const BUDGET: Budget = Budget {
        requests: Some(2000),
        requests_per_minute: Some(600),
        calls_in_flight: Some(32),
        input_tokens: None,
        output_tokens: None,
        total_tokens: Some(50_000_000),
        cost_nanodollars: None,
    };
}

/// Defaults of a worker.
pub mod worker {
    use super::Millis;

    /// Runs that execute at a time.
    pub const RUNS: u32 = 16;
    /// Runs at a time between their claim and the start of their container. Docker starts eight at once more slowly
    /// than two times four.
    pub const STARTS: u32 = 4;
    /// Runs that may be queued.
    pub const QUEUE: u32 = 1000;
    /// Queued runs of one account.
    pub const QUEUE_PER_ACCOUNT: u32 = 250;
    /// Time without a renewal after which another worker takes a run over. Long compared with a pause of the machine,
    /// short for a run that no worker executes.
    pub const LEASE: Millis = Millis::seconds(15);
    /// Interval between two searches for leftover resources.
    pub const REAP_EVERY: Millis = Millis::seconds(60);
}

/// Defaults of a gateway that runs on this host.
pub mod gateway {
    use super::{ByteSize, Millis};

    /// Sessions with a turn at a time.
    pub const SESSIONS: u32 = 8;
    /// Memory of a gateway's container, swap included. OpenClaw 2026.9 takes 730 to 1,020 MB when idle.
    pub const MEMORY: ByteSize = ByteSize::mib(2048);
    /// Processes and threads of a gateway's container.
    pub const PIDS: u32 = 512;
    /// Disk space of a gateway: its conversations and its agents' files.
    pub const DISK: ByteSize = ByteSize::mib(4 << 10);
    /// Time in which a gateway's turns may go on after a stop was requested.
    pub const DRAIN: Millis = Millis::seconds(30);
}

/// Defaults of a sandbox.
pub mod sandbox {
    use super::{ByteSize, Millis};

    /// Wall-clock time of a run.
    pub const RUNTIME: Millis = Millis::seconds(120);
    /// Memory, swap included.
    pub const MEMORY: ByteSize = ByteSize::mib(512);
    /// Processes and threads: a headless browser and a test runner with a worker for each core fit.
    pub const PIDS: u32 = 1024;
    /// Least memory of a container that Docker accepts.
    pub const LEAST_MEMORY: ByteSize = ByteSize::mib(6);
    /// Processor time, in thousandths of a core.
    pub const MILLI_CPU: u32 = 2000;
    /// Least processor time that Docker accepts: a hundredth of a core.
    pub const LEAST_MILLI_CPU: u32 = 10;
    /// Bytes kept of each of stdout and stderr.
    pub const OUTPUT: ByteSize = ByteSize::mib(2);
    /// Size of `/tmp`, and of `/var/tmp`.
    pub const TMP: ByteSize = ByteSize::mib(1 << 10);
    /// Size of `/dev/shm`: shared memory of browsers, databases and worker processes.
    pub const SHM: ByteSize = ByteSize::mib(256);
    /// Least size of each of both: a page, as the kernel rounds up to.
    pub const LEAST_SCRATCH: ByteSize = ByteSize::kib(4);
    /// Size of `/tmp` of a container that runs no agent.
    pub const SMALL_TMP: ByteSize = ByteSize::mib(64);
    /// Size of `/run`.
    pub const RUN: ByteSize = ByteSize::mib(8);
    /// Size of a workspace.
    pub const WORKSPACE: ByteSize = ByteSize::mib(1 << 10);
    /// Size of a workspace for each file in it; allows for more files than a checkout with its dependencies has.
    pub const WORKSPACE_PER_FILE: ByteSize = ByteSize::kib(8);
    /// Space that must be left on the disk of workspaces before another one is created.
    pub const DISK_RESERVE: ByteSize = ByteSize::mib(2 << 10);
    /// Time that a kept workspace stays after its run.
    pub const KEEP: Millis = Millis::seconds(24 * 60 * 60);
    /// Space of all kept workspaces together.
    pub const KEPT_WORKSPACES: ByteSize = ByteSize::mib(2 << 10);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown_with_units() {
        for (text, bytes, shown) in [
            ("0", 0, "0 B"),
            ("1500", 1500, "1500 B"),
            ("64KiB", 65_536, "64 KiB"),
            (" 32 MiB ", 32 << 20, "32 MiB"),
            ("1GiB", 1 << 30, "1 GiB"),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap(), ByteSize(bytes));
            assert_eq!(ByteSize(bytes).to_string(), shown);
        }
        for text in ["", "MiB", "-1", "1.5 MiB", "1 MB", "99999999999 GiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text:?} was taken for a size");
        }
    }

    #[test]
    fn durations_are_read_and_shown_with_units() {
        assert_eq!("2m 30s".parse::<Millis>().unwrap(), Millis::seconds(150));
        assert_eq!(Millis::seconds(150).to_string(), "2m 30s");
        assert_eq!("90days".parse::<Millis>().unwrap().to_string(), "90days");
        let error = "soon".parse::<Millis>().unwrap_err().to_string();
        assert!(error.contains("such as"), "{error}");
    }
}
