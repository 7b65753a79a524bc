//! Answers with one file of an agent, as an attachment that no browser shows.

use std::mem;

use axum::{
    body::Body,
    http::{
        HeaderName, HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use futures_util::{Stream, stream::unfold};
use platform_core::percent;
use runner_files::{PlainFile, RelativePath, Unreadable};
use tokio::task::spawn_blocking;

use crate::{error::Error, stream_permits::StreamPermit};

/// Bytes that are read at a time.
const PIECE_SIZE: usize = 256 << 10;

/// Returns the answer with the content of `file`, which has the path `path`. It holds the permit until it is sent.
pub(crate) fn attachment(
    file: PlainFile,
    path: &RelativePath,
    permit: StreamPermit,
) -> Result<Response, Error> {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, disposition(path)?),
        (CONTENT_LENGTH, file.size().into()),
    ];
    let content = Content { file: Some(file), pending: Vec::new(), _permit: permit };
    Ok((headers, Body::from_stream(content.pieces())).into_response())
}

/// Returns the error for a file that is not given out.
pub(crate) fn refusal(why: Unreadable) -> Error {
    match why {
        Unreadable::Missing | Unreadable::NotAFile => Error::Route,
        why => Error::File(why),
    }
}

/// Returns the header that has browsers store the file under its name (RFC 6266).
fn disposition(path: &RelativePath) -> Result<HeaderValue, Error> {
    let escaped = percent::encode(path.name().to_string_lossy().as_bytes()).replace('~', "%7E");
    let value = format!("attachment; filename*=UTF-8''{escaped}");
    HeaderValue::from_str(&value).map_err(|_never| Error::Internal)
}

/// Content of a file that is being sent.
struct Content {
    /// The file; absent once it has been read to its end.
    file: Option<PlainFile>,
    /// Piece that is sent once the next one was read: the last one only if the file has stayed the same.
    pending: Vec<u8>,
    _permit: StreamPermit,
}

impl Content {
    fn pieces(self) -> impl Stream<Item = Result<Vec<u8>, Unreadable>> + Send {
        unfold(self, async |mut content| {
            let piece = content.next().await.transpose()?;
            Some((piece, content))
        })
    }

    /// Returns the next piece; `None` at the end. An error cuts the answer short, which its length shows.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Unreadable> {
        while let Some(mut file) = self.file.take() {
            let read = spawn_blocking(move || {
                let mut piece = vec![0; PIECE_SIZE];
                let len = file.read_piece(&mut piece)?;
                piece.truncate(len);
                Ok((file, piece))
            });
            let (file, piece) = read.await.unwrap_or(Err(Unreadable::Changed))?;
            if piece.is_empty() {
                break;
            }
            self.file = Some(file);
            let before = mem::replace(&mut self.pending, piece);
            if !before.is_empty() {
                return Ok(Some(before));
            }
        }
        let last = mem::take(&mut self.pending);
        Ok((!last.is_empty()).then_some(last))
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;

    #[test]
    fn no_name_of_a_file_breaks_out_of_its_header() {
        let header = |name: &[u8]| {
            let path = RelativePath::parse(OsStr::from_bytes(name)).unwrap();
            disposition(&path).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(header(b"dir/a-b.txt"), "attachment; filename*=UTF-8''a-b.txt");
        assert_eq!(
            header(b"a\"; filename=b\r\nset-cookie: x"),
            "attachment; filename*=UTF-8''a%22%3B%20filename%3Db%0D%0Aset-cookie%3A%20x"
        );
        assert_eq!(header("ö".as_bytes()), "attachment; filename*=UTF-8''%C3%B6");
    }
}
