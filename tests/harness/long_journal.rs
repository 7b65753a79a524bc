//! Writes a journal of any length as a proxy leaves it: files with their chain of hashes, and the sums beside them.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use platform_core::{
    control::Usage,
    id::AccountId,
    limit::journal::SEGMENT_SIZE,
    record::{ExchangeRecord, NO_LINE, SCHEMA_VERSION, hash},
    record_text::write_fields,
};
use serde_json::json;

use crate::private_file;

/// Writer of a journal's files, in place of a proxy.
#[derive(Debug)]
pub struct JournalWriter {
    dir: PathBuf,
    segment: BufWriter<fs::File>,
    /// Bytes of the segment, and of all.
    length: u64,
    total: u64,
    seq: u64,
    hash: [u8; 64],
    usage: BTreeMap<AccountId, Usage>,
}

/// Journal that was written.
#[derive(Debug, Clone, Copy)]
pub struct WrittenJournal {
    /// Number of its lines.
    pub lines: u64,
    /// Bytes of all its files.
    pub bytes: u64,
}

impl JournalWriter {
    /// Begins a journal in the state directory of a proxy that has stopped. Removes the lines that it had.
    ///
    /// # Panics
    /// If no proxy has been there.
    #[must_use]
    pub fn in_place_of(state_dir: &Path) -> Self {
        let dir = state_dir.join("journal");
        for file in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "ndjson") {
                fs::remove_file(file).unwrap();
            }
        }
        let segment = segment(&dir, 1);
        Self { dir, segment, length: 0, total: 0, seq: 0, hash: NO_LINE, usage: BTreeMap::new() }
    }

    /// Writes all `records`, and the sums.
    ///
    /// # Panics
    /// If the disk is full.
    pub fn write(mut self, records: impl Iterator<Item = ExchangeRecord>) -> WrittenJournal {
        records.for_each(|record| self.append(&record));
        self.segment.flush().unwrap();
        let id = fs::read_to_string(self.dir.join("id")).unwrap();
        let sums = json!({
            "journal": id.trim(), "oldest": 1, "seq": self.seq, "hash": String::from_utf8_lossy(&self.hash),
            "accounts": self.usage, "runs": {}, "unsent": 0,
        });
        private_file(&self.dir.join("sums"), &sums.to_string());
        WrittenJournal { lines: self.seq, bytes: self.total }
    }

    fn append(&mut self, record: &ExchangeRecord) {
        if self.length >= SEGMENT_SIZE.0 {
            self.segment.flush().unwrap();
            self.segment = segment(&self.dir, self.seq + 1);
            self.length = 0;
        }
        self.seq += 1;
        let mut line = format!("{{\"v\":{SCHEMA_VERSION},\"seq\":{},", self.seq).into_bytes();
        write_fields(record, &mut line);
        line.extend_from_slice(b",\"prev\":\"");
        line.extend_from_slice(&self.hash);
        line.extend_from_slice(b"\"}");
        self.hash = hash(&line);
        line.push(b'\n');
        self.segment.write_all(&line).unwrap();
        self.length += line.len() as u64;
        self.total += line.len() as u64;
        match self.usage.get_mut(&record.account) {
            Some(usage) => usage.add(record),
            None => self.usage.entry(record.account.clone()).or_default().add(record),
        }
    }
}

/// Creates the file that begins with line `first`.
fn segment(dir: &Path, first: u64) -> BufWriter<fs::File> {
    let path = dir.join(format!("{first:020}.ndjson"));
    let file = fs::File::options().create_new(true).write(true).mode(0o600).open(path).unwrap();
    BufWriter::with_capacity(1 << 20, file)
}
