//! Makes the system calls of a call in Sluicegate and nothing else. It receives, writes the mark, looks at the upstream's
//! connection and sends. It receives the answer, writes the record and sends. What remains above it is user space.
//!
//! It parses nothing. The first bytes after an answer's end begin a call, and an answer's end is known by the last bytes
//! that the fast upstream sends.

use std::{
    cell::Cell,
    fs::{self, File},
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::{SocketAddr, TcpStream},
    os::{
        fd::AsRawFd,
        unix::{fs::FileExt, net::UnixStream},
    },
    path::Path,
    rc::Rc,
};

use tokio::io::{Interest, unix::AsyncFd};

/// Bytes of a mark, and of a record.
const LINE: [u8; 1024] = [b'x'; 1024];
/// Size at which the file of records starts over, which is the size of a journal's segment.
const SEGMENT: u64 = 64 << 20;
const BUFFER: usize = 64 << 10;

/// A thread's files and upstream.
pub(super) struct Skeleton {
    upstream: SocketAddr,
    marks: File,
    records: File,
    end: Cell<u64>,
    /// Number of connections so far; each has a slot for its mark.
    slots: Cell<u64>,
}

/// Progress of a call on a connection.
#[derive(PartialEq)]
enum Progress {
    Idle,
    UnderWay,
}

impl Skeleton {
    pub(super) fn new(dir: &Path, upstream: SocketAddr) -> io::Result<Self> {
        let open = |name: &str| {
            let name = format!("{name}-{:?}", std::thread::current().id());
            fs::OpenOptions::new().create(true).truncate(true).write(true).open(dir.join(name))
        };
        let (end, slots) = (Cell::new(0), Cell::new(0));
        Ok(Self { upstream, marks: open("marks")?, records: open("records")?, end, slots })
    }

    /// Serves a client's connection until it closes.
    pub(super) async fn serve(self: Rc<Self>, client: impl Socket) {
        drop(self.pass(client).await);
    }

    async fn pass(&self, client: impl Socket) -> io::Result<()> {
        let slot = self.slots.replace(self.slots.get() + 1);
        let upstream = tokio::net::TcpStream::connect(self.upstream).await?.into_std()?;
        upstream.set_nodelay(true)?;
        let (client, upstream) = (Line::new(client)?, Line::new(upstream)?);
        let (mut request, mut answer) = (vec![0; BUFFER], vec![0; BUFFER]);
        let mut progress = Progress::Idle;
        loop {
            tokio::select! {
                received = client.receive(&mut request) => {
                    let count = received?;
                    if progress == Progress::Idle {
                        self.marks.write_at(&LINE, slot * LINE.len() as u64)?;
                        upstream.look()?;
                        progress = Progress::UnderWay;
                    }
                    upstream.send(&request[..count]).await?;
                }
                received = upstream.receive(&mut answer) => {
                    let piece = &answer[..received?];
                    if piece.ends_with(b"}") || piece.ends_with(b"0\r\n\r\n") {
                        self.record()?;
                        progress = Progress::Idle;
                    }
                    client.send(piece).await?;
                }
            }
        }
    }

    fn record(&self) -> io::Result<()> {
        let at = self.end.get();
        self.end.set((at + LINE.len() as u64) % SEGMENT);
        self.records.write_at(&LINE, at).map(drop)
    }
}

/// A stream socket.
pub(super) trait Socket: AsRawFd + Sized {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Returns a second descriptor of the socket, to wait on.
    fn duplicate(&self) -> io::Result<Self>;
}

impl Socket for TcpStream {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Read::read(&mut &*self, buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Write::write_vectored(&mut &*self, &[IoSlice::new(bytes)])
    }

    fn duplicate(&self) -> io::Result<Self> {
        self.try_clone()
    }
}

impl Socket for UnixStream {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Read::read(&mut &*self, buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Write::write_vectored(&mut &*self, &[IoSlice::new(bytes)])
    }

    fn duplicate(&self) -> io::Result<Self> {
        self.try_clone()
    }
}

/// A socket registered for reading only, so that the other side's reads wake no one.
struct Line<S: Socket>(AsyncFd<S>);

impl<S: Socket> Line<S> {
    fn new(socket: S) -> io::Result<Self> {
        register(socket, Interest::READABLE).map(Self)
    }

    /// Receives at least one byte. Cancel safe.
    async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let Ok(received) = ready.try_io(|socket| socket.get_ref().read(buffer)) else { continue };
            let count = received?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if count < buffer.len() {
                ready.clear_ready(); // all was read, so that trying again would be one call more
            }
            return Ok(count);
        }
    }

    /// Sends all bytes. Waits on a second descriptor if the socket takes no more.
    async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.0.get_ref().write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let second = self.0.get_ref().duplicate()?;
                    register(second, Interest::WRITABLE)?.writable().await?.retain_ready();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Line<TcpStream> {
    /// Fails if the upstream has closed the connection, as Sluicegate does before it sends a request on it.
    fn look(&self) -> io::Result<()> {
        match self.0.get_ref().peek(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(ErrorKind::ConnectionReset.into()),
        }
    }
}

#[expect(
    deprecated,
    reason = "the successor is unsafe; here the socket keeps its descriptor as long as it is registered"
)]
fn register<S: Socket>(socket: S, interest: Interest) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, interest)
}
