//! Runs a sandbox through its life: prepares it, supervises the agent, and ends what is left.

use std::{
    convert::Infallible, ffi::OsString, fs, future::pending, os::unix::fs::FileTypeExt, path::Path, pin::pin,
};

use platform_core::name::env::OPENAI_API_BASE;

use crate::{
    agent::{Agent, BY_SIGNAL, Program, exit_code},
    bridge::{Entry, Exit},
    error::Error,
    health,
    reap::Reaper,
    settings::Settings,
    signals::Signals,
    start,
};

/// Runs the sandbox with `command`, or with a start file. Returns the exit code.
pub(crate) async fn live(command: Vec<OsString>, settings: &Settings) -> Result<u8, Error> {
    let mut signals = Signals::listen().map_err(Error::Signals)?;
    let mut reaper = Reaper::install().map_err(Error::Signals)?;

    let mut preparing = pin!(prepare(command, settings));
    let (program, bridges) = loop {
        tokio::select! {
            prepared = &mut preparing => break prepared?,
            stop = signals.next_stop() => return Ok(u8::try_from(BY_SIGNAL + stop.as_raw()).unwrap_or(u8::MAX)),
            // A process brought in by `docker exec` may have left the orphan.
            orphan = reaper.next() => drop(orphan.map_err(Error::Wait)?),
        }
    };

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

    reaper.end_everybody().await;
    Ok(exit_code(status))
}

/// Returns the program to start with its bridges, as far as it has them. The way out works when this returns.
async fn prepare(command: Vec<OsString>, settings: &Settings) -> Result<(Program, Bridges), Error> {
    let (program, socket) = match (Program::from_command(command), &settings.start_file) {
        (Some(program), _) => (program, Socket::IsThere),
        (None, Some(file)) => (start::read_once_there(file).await?.into(), Socket::Comes),
        (None, None) => return Err(Error::NoCommand),
    };
    let expected = settings.expects_api || program.has_variable(OPENAI_API_BASE);
    let exit = match (is_socket(&settings.socket), expected, socket) {
        (true, ..) | (false, true, Socket::Comes) => {
            let exit = Exit::listen(settings.port, &settings.socket).await?;
            health::until_served(&settings.socket).await?;
            Some(exit)
        }
        (false, true, Socket::IsThere) => return Err(Error::NoSocket { socket: settings.socket.clone() }),
        (false, false, _) => None,
    };
    let entry = match &settings.entry {
        Some((socket, port)) => Some(Entry::listen(socket, *port).await?),
        None => None,
    };
    Ok((program, Bridges { exit, entry }))
}

/// Bridges out of a sandbox and into it.
struct Bridges {
    exit: Option<Exit>,
    entry: Option<Entry>,
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

/// Time at which the run's socket must exist if there is to be one.
enum Socket {
    /// Before the container starts.
    IsThere,
    /// Only once the run has its container.
    Comes,
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}
