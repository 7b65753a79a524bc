//! process starts a program in its own group, feeds it, reads it within bounds, and kills the group on drop.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    sync::mpsc::{self, Sender},
    thread,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdin, Command},
    runtime::Handle,
    sync::oneshot,
};

use super::confine::Reach;

/// Bytes at the end of a program's messages that are kept.
const KEPT_MESSAGES: usize = 16 << 10;
/// Bytes that are read at once.
const PIECE: usize = 8 << 10;

/// Bytes for a program to read.
#[derive(Debug, Default)]
pub(super) enum Input {
    /// None.
    #[default]
    Nothing,
    /// A text.
    Bytes(Vec<u8>),
    /// The rest of an open file.
    File(std::fs::File),
}

/// Bytes that a program wrote, and how it ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Way in which it ended.
    pub(super) ending: Ending,
    /// Standard output, one byte more than allowed if it is too long.
    pub(super) stdout: Vec<u8>,
    /// Last part of the messages.
    pub(super) stderr: Vec<u8>,
}

/// Way in which a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Exit with this status.
    Status(i32),
    /// End by this signal.
    Signal(i32),
    /// None that was waited for: it printed too much.
    Abandoned,
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Abandoned,
        }
    }
}

/// Program that runs. It is killed with its children on drop.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: Vec<u8>,
    group: Option<Pid>,
    /// Keeps the thread that started the program: the kernel kills the program when that thread ends.
    _starter: Sender<()>,
}

impl Process {
    /// Starts `command`, which reaches only `reach`. The thread that starts it has lost its other rights. It does nothing
    /// else, and ends with the program.
    ///
    /// # Errors
    /// The system's.
    pub(super) async fn start(mut command: Command, input: Input, reach: Reach) -> io::Result<Self> {
        let (stdin, input) = match input {
            Input::Nothing => (Stdio::null(), Vec::new()),
            Input::Bytes(bytes) => (Stdio::piped(), bytes),
            Input::File(file) => (Stdio::from(file), Vec::new()),
        };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let (send, receive) = oneshot::channel();
        let (starter, end) = mpsc::channel();
        let runtime = Handle::current();
        let start = move || {
            let _context = runtime.enter();
            let started = reach.confine().and_then(|_extent| command.spawn());
            let group = |child: &Child| child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            let started = started.map(|child| Self { group: group(&child), child, input, _starter: starter });
            // If nothing waits for it any more, the process that comes back is dropped, and so killed.
            drop(send.send(started));
            // Nothing is sent: the other end goes with the process, and that ends the wait.
            let _gone = end.recv();
        };
        thread::Builder::new().name("git-start".to_owned()).spawn(start)?;
        receive.await.map_err(io::Error::other)?
    }

    /// Feeds the program and reads at most `max` bytes and one more.
    ///
    /// # Errors
    /// The system's.
    pub(super) async fn finish(mut self, max: usize) -> io::Result<Ended> {
        let input = std::mem::take(&mut self.input);
        let stdin = self.child.stdin.take();
        let stdout = self.child.stdout.take();
        let stderr = self.child.stderr.take();
        let read = read_bounded(stdout, max);
        let (fed, stdout, stderr) = tokio::join!(feed(stdin, &input), read, read_end(stderr));
        fed?;
        let stdout = stdout?;
        if stdout.len() > max {
            return Ok(Ended { ending: Ending::Abandoned, stdout, stderr: stderr? });
        }
        let status = self.child.wait().await?;
        // Its id may belong to another group from now on.
        self.group = None;
        Ok(Ended { ending: status.into(), stdout, stderr: stderr? })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            // It may have ended by itself.
            let _ended = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Writes all input. A program that ends before it has read all is not a failure of the writer.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match stdin.write_all(input).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Reads at most `max` bytes and one more, and closes the pipe: a program that writes on is ended by that.
async fn read_bounded(source: Option<impl AsyncRead + Unpin>, max: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if let Some(source) = source {
        source.take(max as u64 + 1).read_to_end(&mut content).await?;
    }
    Ok(content)
}

/// Reads everything and keeps the end.
async fn read_end(source: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let Some(mut source) = source else { return Ok(kept) };
    let mut piece = [0; PIECE];
    loop {
        let read = source.read(&mut piece).await?;
        if read == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&piece[..read]);
        let surplus = kept.len().saturating_sub(KEPT_MESSAGES);
        kept.drain(..surplus);
    }
}
