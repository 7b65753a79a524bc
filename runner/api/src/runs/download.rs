//! Gives out one file of a run, as an attachment that no browser shows. Follows no link.

use std::{ffi::OsString, mem, os::unix::ffi::OsStringExt};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
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

use super::{
    RUNS,
    file_job::{do_blocking, find_files},
};
use crate::{
    body::refuse_query, caller::Caller, context::ApiContext, error::Error, stream_permits::StreamPermit,
};

/// Bytes that are read at a time.
const PIECE_SIZE: usize = 256 << 10;

/// Answers with the content of one file.
pub(crate) async fn download(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let FileAddress { run_id, path } = FileAddress::read(request.uri().path()).ok_or(Error::Route)?;
    let permit = context.stream_permits.acquire(caller.name()).ok_or(Error::TooManyStreams)?;
    let files = find_files(&context, &caller, &run_id).await?;
    let disposition = disposition(&path)?;
    let opened = do_blocking(&context, &caller, move |_given_up| {
        files.open_file(&path).map_err(|why| match why {
            Unreadable::Missing | Unreadable::NotAFile => Error::Route,
            why => Error::File(why),
        })
    });
    let file = opened.await?;
    let headers: [(HeaderName, HeaderValue); 3] = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, disposition),
        (CONTENT_LENGTH, file.size().into()),
    ];
    let content = Content { file: Some(file), pending: Vec::new(), _permit: permit };
    Ok((headers, Body::from_stream(content.pieces())).into_response())
}

/// Run and file that a request names.
struct FileAddress {
    run_id: String,
    path: RelativePath,
}

impl FileAddress {
    /// Reads the path of a request. Names of files need not be UTF-8, so no extractor of axum can.
    fn read(uri_path: &str) -> Option<Self> {
        let below = uri_path.strip_prefix(RUNS)?.strip_prefix('/')?;
        let (run_id, path) = below.split_once("/files/")?;
        let run_id = String::from_utf8(percent::decode(run_id)?).ok()?;
        let path = RelativePath::parse(OsString::from_vec(percent::decode(path)?)).ok()?;
        Some(Self { run_id, path })
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
    fn names_of_files_are_read_byte_by_byte() {
        let path = |uri: &str| FileAddress::read(uri).map(|address| address.path);
        let named = |bytes: &[u8]| Some(RelativePath::parse(OsStr::from_bytes(bytes)).unwrap());
        for (uri, expected) in [
            ("/api/v1/runs/r1/files/a.txt", named(b"a.txt")),
            ("/api/v1/runs/r1/files/a/files/b%20c", named(b"a/files/b c")),
            ("/api/v1/runs/r1/files/a%2Fb", named(b"a/b")),
            ("/api/v1/runs/r1/files/%ff%FE", named(b"\xff\xfe")),
            ("/api/v1/runs/r1/files/../x", None),
            ("/api/v1/runs/r1/files/a/%2e%2e/x", None),
            ("/api/v1/runs/r1/files//etc/passwd", None),
            ("/api/v1/runs/r1/files/%2Fetc/passwd", None),
            ("/api/v1/runs/r1/files/a%00", None),
            ("/api/v1/runs/r1/files/a%", None),
            ("/api/v1/runs/r1/files/a%+1", None),
        ] {
            assert_eq!(path(uri), expected, "{uri}");
        }
    }

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
