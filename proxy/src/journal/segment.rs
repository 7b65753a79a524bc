//! The journal's files: finding the end of what is there, and cutting off a torn line.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use platform_core::record::JournalLine;

use super::{Error, NO_LINE, hash};

/// The end of a journal file.
pub(super) struct End {
    pub(super) file: File,
    pub(super) seq: u64,
    pub(super) hash: [u8; 64],
}

/// A segment is named after its first line, so that rotation only adds files.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(format!("{:020}.ndjson", 1))
}

/// The id kept in `dir`, made on first use.
pub(super) fn journal_id(dir: &Path) -> Result<String, Error> {
    let path = dir.join("id");
    match fs::read_to_string(&path) {
        Ok(id) => Ok(id.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = format!("{:032x}", platform_runtime::random::bits());
            let mut file = private(OpenOptions::new().create_new(true).write(true))
                .open(&path)
                .map_err(Error::io("create", &path))?;
            file.write_all(id.as_bytes()).map_err(Error::io("write", &path))?;
            Ok(id)
        }
        Err(error) => Err(Error::io("read", &path)(error)),
    }
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Opens the file for appending after its last whole line.
pub(super) fn open_at_end(path: &Path) -> Result<End, Error> {
    let mut file = private(OpenOptions::new().create(true).read(true).append(true))
        .open(path)
        .map_err(Error::io("open", path))?;
    let (mut seq, mut last_hash, mut whole) = (0, NO_LINE, 0);
    let mut reader = BufReader::new(&file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(Error::io("read", path))?;
        if line.pop() != Some(b'\n') {
            break;
        }
        let parsed: JournalLine = serde_json::from_slice(&line)
            .map_err(|_error| Error::Corrupt { path: path.to_owned(), offset: whole })?;
        (seq, last_hash) = (parsed.seq, hash(&line));
        whole += length as u64;
    }
    cut_torn_line(&mut file, whole, path)?;
    Ok(End { file, seq, hash: last_hash })
}

fn cut_torn_line(file: &mut File, whole: u64, path: &Path) -> Result<(), Error> {
    let length = file.metadata().map_err(Error::io("look at", path))?.len();
    if length > whole {
        tracing::warn!(path = %path.display(), bytes = length - whole, "cutting off an unfinished line");
        file.set_len(whole).map_err(Error::io("shorten", path))?;
    }
    file.seek(SeekFrom::End(0)).map_err(Error::io("seek in", path))?;
    Ok(())
}
