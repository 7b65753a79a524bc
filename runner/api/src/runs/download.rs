//! Gives out one file of a run. Follows no link.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use platform_core::percent;
use runner_files::RelativePath;

use super::{RUNS, files::find_files};
use crate::{
    attachment::{attachment, refusal},
    body::refuse_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    file_job::do_blocking,
};

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
    let wanted = path.clone();
    let opened =
        do_blocking(&context, &caller, move |_given_up| files.open_file(&wanted).map_err(refusal)).await?;
    attachment(opened, &path, permit)
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
}
