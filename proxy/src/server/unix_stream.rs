//! Reads and writes a client's unix socket, which the event loop watches for reading alone.
//!
//! The kernel reports a unix socket as writable each time its client reads. Watched for both, as tokio's own stream is,
//! it would wake the thread a second time for every event of an answer. So it is watched for writing only while the
//! client takes nothing.

use std::{
    io::{self, IoSlice, IoSliceMut},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix,
    },
    pin::Pin,
    task::{Context, Poll, ready},
};

use rustix::{
    io::{Errno, ioctl_fionread},
    net::{
        RecvAncillaryBuffer, RecvFlags, RecvMsg, ReturnFlags, SendAncillaryBuffer, SendFlags, Shutdown,
        recvmsg, send, sendmsg, shutdown,
    },
};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

use super::sensor_io::{ClientStream, is_at_end};

/// Largest buffer that is offered to the kernel whole. Of a larger one only as much as has come: what is offered has to be
/// initialized first.
const MAX_OFFERED_WHOLE: usize = 16 << 10;

/// Stream of a client on a unix socket.
#[derive(Debug)]
pub(super) struct ClientUnixStream {
    /// Socket with its registration; `None` once the event loop has refused to watch it.
    socket: Option<AsyncFd<OwnedFd>>,
    watched: Watched,
}

/// Events for which the event loop watches a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    Reading,
    /// Until the client has taken all that it was sent.
    ReadingAndWriting,
}

/// Registers `socket` with the event loop of the current thread.
#[expect(deprecated, reason = "its successor is unsafe, because other types may close the descriptor early")]
fn register(socket: OwnedFd, watched: Watched) -> io::Result<AsyncFd<OwnedFd>> {
    let interest = match watched {
        Watched::Reading => Interest::READABLE,
        Watched::ReadingAndWriting => Interest::READABLE | Interest::WRITABLE,
    };
    AsyncFd::with_interest(socket, interest)
}

impl ClientUnixStream {
    /// Takes over a socket that does not block and that no event loop watches.
    ///
    /// # Errors
    /// If the event loop of this thread cannot watch it.
    pub(super) fn new(socket: unix::net::UnixStream) -> io::Result<Self> {
        Ok(Self { socket: Some(register(socket.into(), Watched::Reading)?), watched: Watched::Reading })
    }

    fn socket(&self) -> io::Result<&AsyncFd<OwnedFd>> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Changes what the socket is watched for. Its connection is polled again: a read that waits has to register anew.
    fn watch(&mut self, watched: Watched, cx: &Context<'_>) -> io::Result<()> {
        let socket = self.socket.take().ok_or(io::ErrorKind::NotConnected)?;
        self.socket = Some(register(socket.into_inner(), watched)?);
        self.watched = watched;
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Sends `length` bytes by `send`, or as many as the client takes.
    fn poll_send(
        &mut self,
        length: usize,
        cx: &mut Context<'_>,
        send: impl Fn(BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let socket = self.socket()?;
            let guard = match self.watched {
                Watched::Reading => None,
                Watched::ReadingAndWriting => Some(ready!(socket.poll_write_ready(cx))?),
            };
            match (send(socket.get_ref().as_fd()), guard) {
                (Err(Errno::INTR), _) => {}
                (Err(Errno::AGAIN), Some(mut guard)) => guard.clear_ready(),
                (Err(Errno::AGAIN), None) => self.watch(Watched::ReadingAndWriting, cx)?,
                (sent, guard) => {
                    if guard.is_some() && sent == Ok(length) {
                        self.watch(Watched::Reading, cx)?;
                    }
                    return Poll::Ready(sent.map_err(io::Error::from));
                }
            }
        }
    }
}

impl ClientStream for ClientUnixStream {
    fn has_ended(&self) -> bool {
        self.socket().is_ok_and(is_at_end)
    }
}

impl AsyncRead for ClientUnixStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.socket()?;
        loop {
            let mut guard = ready!(socket.poll_read_ready(cx))?;
            let offered = match buffer.remaining() {
                length @ ..=MAX_OFFERED_WHOLE => length,
                // At least one byte, so that the end is read.
                length => {
                    usize::try_from(ioctl_fionread(socket)?).map_or(length, |come| come.clamp(1, length))
                }
            };
            let mut pieces = [IoSliceMut::new(buffer.initialize_unfilled_to(offered))];
            match recvmsg(socket, &mut pieces, &mut RecvAncillaryBuffer::default(), RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(error) => return Poll::Ready(Err(error.into())),
                Ok(RecvMsg { bytes: received, flags, .. }) => {
                    // Less than fits: the socket is empty, and its next bytes are reported. The kernel also stops behind
                    // bytes that came with descriptors. It closes those, because nothing takes them, and says so.
                    let is_empty = !flags.contains(ReturnFlags::CTRUNC);
                    if is_empty && (1..buffer.remaining()).contains(&received) {
                        guard.clear_ready();
                    }
                    buffer.advance(received);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for ClientUnixStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(bytes.len(), cx, |socket| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        self.poll_send(length, cx, |socket| {
            sendmsg(socket, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(self.socket()?, Shutdown::Write).map_err(io::Error::from))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{Read, Write},
        mem::MaybeUninit,
        net,
        os::unix::net::UnixStream as StdUnixStream,
        thread,
        time::Duration,
    };

    use rustix::net::{SendAncillaryMessage, recv};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpStream, UnixStream},
    };

    use super::*;

    /// Events of an answer, each in its time.
    const EVENTS: u64 = 200;
    const EVENT_INTERVAL: Duration = Duration::from_millis(2);
    /// Time that the client takes to read an event: the thread that sent it is asleep by then.
    const READ_DELAY: Duration = Duration::from_millis(1);

    fn voluntary_switches() -> u64 {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        count.trim().parse().unwrap()
    }

    /// Passes the bytes of `upstream` on to `client`, and watches the client meanwhile, as a connection with a call does.
    async fn pass_on(mut upstream: TcpStream, client: impl AsyncRead + AsyncWrite) {
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let mut event = [0; 64];
        let mut request = [0; 64];
        loop {
            tokio::select! {
                read = upstream.read(&mut event) => match read.unwrap() {
                    0 => return,
                    length => to_client.write_all(&event[..length]).await.unwrap(),
                },
                read = from_client.read(&mut request) => panic!("{read:?}"),
            }
        }
    }

    /// Returns how often a thread sleeps while it passes on a paced stream to the client's stream that `of` makes.
    fn sleeps_per_stream<S: AsyncRead + AsyncWrite + 'static>(of: fn(StdUnixStream) -> io::Result<S>) -> u64 {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (server, mut client) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let upstream = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for _ in 0..EVENTS {
                thread::sleep(EVENT_INTERVAL);
                stream.write_all(b"data: {}\n\n").unwrap();
            }
        });
        let reader = thread::spawn(move || {
            let mut event = [0; 64];
            while recv(&client, &mut event, RecvFlags::PEEK).unwrap().1 > 0 {
                thread::sleep(READ_DELAY);
                assert!(client.read(&mut event).unwrap() > 0);
            }
        });
        let served = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let upstream = TcpStream::connect(address).await.unwrap();
                let before = voluntary_switches();
                pass_on(upstream, of(server).unwrap()).await;
                voluntary_switches() - before
            })
        });
        let sleeps = served.join().unwrap();
        upstream.join().unwrap();
        reader.join().unwrap();
        sleeps
    }

    #[test]
    fn a_paced_event_wakes_its_thread_once() {
        // Another process on the machine adds sleeps, and takes none away.
        let ours = (0..3).map(|_| sleeps_per_stream(ClientUnixStream::new)).min().unwrap();
        assert!(ours * 10 < EVENTS * 13, "{ours} wake-ups for {EVENTS} events");
        // The control: tokio's own stream is watched for writing as well.
        let tokios = sleeps_per_stream(UnixStream::from_std);
        assert!(tokios * 10 > EVENTS * 16, "{tokios} wake-ups for {EVENTS} events");
    }

    /// Longer than the kernel holds for a client, by far.
    fn long_text() -> Vec<u8> {
        (0..4 << 20).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect()
    }

    #[tokio::test]
    async fn a_slow_client_gets_every_byte() {
        let (server, mut client) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let reader = thread::spawn(move || {
            let (mut all, mut piece) = (Vec::new(), vec![0; 50_000]);
            loop {
                match client.read(&mut piece).unwrap() {
                    0 => return all,
                    length => all.extend_from_slice(&piece[..length]),
                }
                thread::sleep(Duration::from_micros(100));
            }
        });
        let text = long_text();
        let mut stream = ClientUnixStream::new(server).unwrap();
        for piece in text.chunks(1 << 20) {
            stream.write_all(piece).await.unwrap();
            assert_eq!(stream.watched, Watched::Reading, "the client has caught up");
        }
        stream.shutdown().await.unwrap();
        assert!(reader.join().unwrap() == text);
    }

    #[tokio::test]
    async fn what_a_client_sends_is_read_whole() {
        let (server, mut client) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let text = long_text();
        let sent = text.clone();
        let writer = thread::spawn(move || {
            for (number, piece) in sent.chunks(70_001).enumerate() {
                client.write_all(piece).unwrap();
                if number % 8 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let mut stream = ClientUnixStream::new(server).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        assert!(all == text);
        assert!(stream.has_ended());
        writer.join().unwrap();
    }

    /// The kernel ends a read behind bytes with a descriptor, although more have come.
    #[tokio::test]
    async fn bytes_behind_a_descriptor_are_read() {
        let (server, client) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let pipe = std::io::pipe().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        let descriptors = [pipe.1.as_fd()];
        assert!(attached.push(SendAncillaryMessage::ScmRights(&descriptors)));
        send(&client, b"he", SendFlags::empty()).unwrap();
        sendmsg(&client, &[IoSlice::new(b"ad")], &mut attached, SendFlags::empty()).unwrap();
        send(&client, b" body", SendFlags::empty()).unwrap();
        let mut piece = [0; 64];
        let (_, first) = recv(&server, &mut piece, RecvFlags::PEEK).unwrap();
        assert_eq!(&piece[..first], b"head", "control: one read does not get all that has come");

        let mut stream = ClientUnixStream::new(server).unwrap();
        let mut all = [0; 9];
        let read = tokio::time::timeout(Duration::from_secs(10), stream.read_exact(&mut all)).await;
        read.expect("no byte has to come for it").unwrap();
        assert_eq!(&all, b"head body");
        drop(pipe.1);
        let mut left = pipe.0;
        assert_eq!(left.read(&mut piece).unwrap(), 0, "the descriptor is closed");
    }

    /// A connection with a stuck answer still learns at once that its client has left.
    #[tokio::test]
    async fn a_blocked_client_that_leaves_is_noticed() {
        let (server, client) = StdUnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut stream = ClientUnixStream::new(server).unwrap();
        let text = long_text();
        let stuck = tokio::time::timeout(Duration::from_millis(20), stream.write_all(&text)).await;
        assert!(stuck.is_err(), "the client reads nothing");
        assert_eq!(stream.watched, Watched::ReadingAndWriting);
        drop(client);
        let error = stream.write_all(&text).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
