//! Waits for the start file of a container without a command, and reads it.
//!
//! The host renames the file into place, so it is complete when it appears. A file that is written in place is not
//! noticed.

use std::{
    ffi::CStr,
    fs::File,
    io::{self, Read},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use platform_core::{
    json::{self, Bounds},
    start::{MAX_SIZE, Start},
};
use rustix::{
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};
use tokio::io::unix::AsyncFd;

use crate::error::Error;

/// Buffer for some hundred events: an event is 16 bytes and a name.
const EVENT_BUFFER_SIZE: usize = 4096;

/// Waits until `file` exists, and reads it.
pub(crate) async fn wait_and_read(file: &Path) -> Result<Start, Error> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let failed = |source| Error::Watch { directory: directory.to_owned(), source };
    // The watch begins before the first read, so the file cannot appear unnoticed in between.
    let watch = watch(directory).map_err(failed)?;
    match read(file) {
        Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    wait_for_rename(&watch, file).await.map_err(failed)?;
    read(file)
}

#[expect(deprecated, reason = "its successor is unsafe and requires an OwnedFd, which this passes")]
fn watch(directory: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&events, directory, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
    AsyncFd::new(events)
}

/// Waits until a file is renamed to `file`.
async fn wait_for_rename(watch: &AsyncFd<OwnedFd>, file: &Path) -> io::Result<()> {
    let name = file.file_name().map(OsStrExt::as_bytes);
    let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER_SIZE];
    let mut events = Reader::new(watch, &mut buffer);
    loop {
        let mut ready = watch.readable().await?;
        loop {
            match events.next() {
                Ok(event) if event.file_name().map(CStr::to_bytes) == name => return Ok(()),
                Ok(_another) => {}
                Err(Errno::AGAIN) => break ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn read(file: &Path) -> Result<Start, Error> {
    let failed = |source| Error::Read { file: file.to_owned(), source };
    let mut text = Vec::new();
    File::open(file).and_then(|open| open.take(MAX_SIZE + 1).read_to_end(&mut text)).map_err(failed)?;
    if text.len() as u64 > MAX_SIZE {
        return Err(Error::TooLarge { file: file.to_owned() });
    }
    json::from_slice(&text, Bounds::STORED).map_err(|source| Error::Content { file: file.to_owned(), source })
}
