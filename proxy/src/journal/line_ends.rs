//! Reads lines of a file from behind.

use std::{fs::File, io, os::unix::fs::FileExt};

/// Returns the end of the last line feed before `end`; 0 without one.
pub(super) fn line_end_before(file: &File, end: u64) -> io::Result<u64> {
    let mut piece = [0; 4096];
    let mut end = end;
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let read = &mut piece[..usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(read, start)?;
        if let Some(at) = memchr::memrchr(b'\n', read) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the line that has its line feed right before `end`: its beginning, and its text.
pub(super) fn line_before(file: &File, end: u64) -> io::Result<(u64, Vec<u8>)> {
    let feed = end.saturating_sub(1);
    let start = line_end_before(file, feed)?;
    let mut line = vec![0; usize::try_from(feed - start).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut line, start)?;
    Ok((start, line))
}

/// Reads the number of a line that begins with `text`.
pub(super) fn seq_of(text: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"seq\":";
    let digits = &text[memchr::memmem::find(text, KEY)? + KEY.len()..];
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
