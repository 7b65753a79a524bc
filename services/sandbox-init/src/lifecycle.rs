//! Runs a sandbox through its life: prepares it, supervises the agent, and ends what is left.

use std::{
    convert::Infallible, ffi::OsString, fs, future::pending, os::unix::fs::FileTypeExt, path::Path, pin::pin,
    time::Duration,
};

use platform_core::name::env::OPENAI_API_BASE;
use tokio::time::{Instant, sleep};

use crate::{
    agent::{Agent, BY_SIGNAL, Program, exit_code},
    bridge::{EntryBridge, ExitBridge},
    error::Error,
    health, memory,
    reap::Reaper,
    settings::InitSettings,
    signals::Signals,
    start,
};

/// Longest wait for a socket that should exist before the container starts. A proxy that restarts binds it again.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay between two checks for the socket.
const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the program of `command`, or else of the start file, until it ends. Returns the exit code.
pub(crate) async fn run(command: Vec<OsString>, settings: &InitSettings) -> Result<u8, Error> {
    let mut signals = Signals::listen().map_err(Error::Signals)?;
    let mut reaper = Reaper::install().map_err(Error::Signals)?;

    let mut preparing = pin!(prepare(command, settings));
    let (program, bridges) = loop {
        tokio::select! {
            prepared = &mut preparing => break prepared?,
            stop = signals.next_stop() => return Ok(u8::try_from(BY_SIGNAL + stop.as_raw()).unwrap_or(u8::MAX)),
            // Orphans can exist before the agent: `docker exec` may have started their parents.
            orphan = reaper.next() => drop(orphan.map_err(Error::Wait)?),
        }
    };

    program.create_home(settings.home.as_deref());
    let agent = Agent::start(&program)?;
    let mut serving = pin!(bridges.serve());
    let status = loop {
        tokio::select! {
            ended = reaper.next() => match ended.map_err(Error::Wait)? {
                (pid, status) if agent.is(pid) => break status,
                _orphan => {}
            },
            signal = signals.next() => agent.signal(signal),
            never = &mut serving => match never {},
        }
    };

    reaper.end_all().await;
    memory::report_kills();
    Ok(exit_code(status))
}

/// Returns the program to start and its bridges. The exit bridge, if any, leads to a healthy proxy when this returns.
async fn prepare(command: Vec<OsString>, settings: &InitSettings) -> Result<(Program, Bridges), Error> {
    let (program, arrival) = match (Program::from_command(command), &settings.start_file) {
        (Some(program), _) => (program, SocketArrival::BeforeStart),
        (None, Some(file)) => (start::wait_and_read(file).await?.into(), SocketArrival::WithStartFile),
        (None, None) => return Err(Error::NoCommand),
    };
    let expected = settings.expects_api || program.has_variable(OPENAI_API_BASE);
    if expected && arrival == SocketArrival::BeforeStart {
        wait_for_socket(&settings.socket, SOCKET_TIMEOUT).await?;
    }
    let exit = if expected || is_socket(&settings.socket) {
        let exit = ExitBridge::listen(settings.port, &settings.socket).await?;
        health::wait_until_served(&settings.socket).await?;
        Some(exit)
    } else {
        None
    };
    let entry = match &settings.entry {
        Some((socket, port)) => Some(EntryBridge::listen(socket, *port).await?),
        None => None,
    };
    Ok((program, Bridges { exit, entry }))
}

/// Bridges out of a sandbox and into it.
struct Bridges {
    exit: Option<ExitBridge>,
    entry: Option<EntryBridge>,
}

impl Bridges {
    /// Serves both bridges until dropped.
    async fn serve(self) -> Infallible {
        let exit = async {
            match self.exit {
                Some(exit) => exit.serve().await,
                None => pending().await,
            }
        };
        let entry = async {
            match self.entry {
                Some(entry) => entry.serve().await,
                None => pending().await,
            }
        };
        tokio::select! {
            never = exit => match never {},
            never = entry => match never {},
        }
    }
}

/// Time by which the run's socket must exist, if the run has one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SocketArrival {
    /// Before the container starts.
    BeforeStart,
    /// With the start file, or soon after: the container is older than its run.
    WithStartFile,
}

/// Waits until `path` is a socket, for at most `timeout`.
async fn wait_for_socket(path: &Path, timeout: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + timeout;
    while !is_socket(path) {
        if Instant::now() >= deadline {
            return Err(Error::NoSocket { socket: path.to_owned() });
        }
        sleep(SOCKET_POLL_INTERVAL).await;
    }
    Ok(())
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::net::UnixListener, process};

    use super::*;

    #[tokio::test]
    async fn a_socket_that_appears_in_time_is_found() {
        let path = env::temp_dir().join(format!("sandbox-init-{}.sock", process::id()));
        let bind_later = async {
            sleep(Duration::from_millis(100)).await;
            UnixListener::bind(&path).unwrap()
        };
        let (waited, listener) = tokio::join!(wait_for_socket(&path, 60 * SOCKET_TIMEOUT), bind_later);
        drop(listener);
        fs::remove_file(&path).unwrap();
        waited.expect("the proxy has bound it in time");
    }

    #[tokio::test]
    async fn a_missing_socket_is_waited_for_and_reported() {
        // A file of another kind is not a socket, however long it exists.
        for path in ["/nowhere/llm.sock", "/proc/self/exe"] {
            let began = Instant::now();
            let timeout = Duration::from_millis(50);
            let refused = wait_for_socket(Path::new(path), timeout).await.unwrap_err();
            assert!(matches!(refused, Error::NoSocket { .. }), "{refused}");
            assert!(began.elapsed() >= timeout);
        }
    }
}
