//! Lists the files of a run, and shows what the run changed in them.

use axum::{
    Extension,
    extract::{Request, State},
    http::{HeaderValue, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use runner_engine::run_files::RunFiles;
use runner_files::{
    Changes, DiffReader, HiddenEntries, ListedFile, RelativePath, Scope, UnreadableEntry, listing,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::{
    file_view::{
        ChangedFileView, HiddenFilesView, MAX_LISTED, RunDiffView, RunFileView, RunFilesView,
        UnreadableFileView,
    },
    find,
};
use crate::{
    body::{ObjectId, read_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    file_job::do_blocking,
    json_response,
    stream_response::accepts,
};

/// Largest difference of one answer, in bytes.
const MAX_DIFF: usize = 16 << 20;

/// Query of the files of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesQuery {
    /// Only the files at or below this path.
    #[param(nullable = false)]
    path: Option<String>,
    /// Also new files that the run's ignore rules name.
    #[serde(default)]
    #[param(required = false)]
    all: bool,
}

impl FilesQuery {
    const fn scope(&self) -> Scope {
        if self.all { Scope::All } else { Scope::Tracked }
    }

    fn paths(&self) -> Result<Vec<RelativePath>, Error> {
        let paths = self.path.iter().map(RelativePath::parse);
        paths.collect::<Result<_, _>>().map_err(|error| Error::Invalid(format!("`path`: {error}")))
    }
}

/// Finds the files of the run `run_id`, if it exists for `caller`.
pub(super) async fn find_files(
    context: &ApiContext,
    caller: &Caller,
    run_id: &str,
) -> Result<RunFiles, Error> {
    let opened = context.opened().await?;
    let run = find(&opened.store, caller, run_id).await?;
    Ok(RunFiles::open(&opened.store, &context.settings().get().sandbox, &run.run_id).await?)
}

/// Lists the files that a run has now, with the change of each.
pub(crate) async fn list_files(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: FilesQuery = read_query(request.uri())?;
    let paths = query.paths()?;
    let files = find_files(&context, &caller, &run_id).await?;
    let listed = do_blocking(&context, &caller, move |_given_up| {
        let result = files.result(query.scope())?;
        let changes = Changes::between(&files.stage, &result)?;
        let is_wanted =
            |file: &ListedFile<'_>| paths.is_empty() || paths.iter().any(|above| file.path.is_within(above));
        let mut listed = listing(&result, &changes);
        listed.retain(is_wanted);
        Ok(json!(RunFilesView {
            run_id: &run_id,
            files: listed.iter().take(MAX_LISTED).map(RunFileView::of).collect(),
            omitted_files: listed.len().saturating_sub(MAX_LISTED),
            hidden: HiddenFilesView::of(result.hidden()),
        }))
    });
    Ok(json_response(&listed.await?))
}

/// Answers with the differences between the files that a run received and those it has now.
pub(crate) async fn diff(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    ObjectId(run_id): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let query: FilesQuery = read_query(request.uri())?;
    let paths = query.paths()?;
    let wants_json = accepts(request.headers(), "application/json");
    let files = find_files(&context, &caller, &run_id).await?;
    let diff = do_blocking(&context, &caller, move |given_up| {
        RunDiff::read(&files, query.scope(), &paths, given_up)
    });
    let diff = diff.await?;
    if wants_json {
        return Ok(json_response(&diff.as_json(&run_id)));
    }
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    Ok(([(CONTENT_TYPE, plain)], diff.text).into_response())
}

/// Differences of a run.
#[derive(Debug, Default)]
struct RunDiff {
    files: Vec<ChangedFileView>,
    insertions: u64,
    deletions: u64,
    unreadable: Vec<UnreadableEntry>,
    hidden: HiddenEntries,
    /// All differences in git's format.
    text: Vec<u8>,
}

impl RunDiff {
    /// Reads the differences at or below `paths`, until the request is given up.
    fn read(
        files: &RunFiles,
        scope: Scope,
        paths: &[RelativePath],
        given_up: &CancellationToken,
    ) -> Result<Self, Error> {
        let result = files.result(scope)?;
        let changes = Changes::between(&files.stage, &result)?.within(paths);
        let reader = DiffReader { stage: &files.stage, result: &result };
        let mut diff = Self {
            unreadable: changes.unreadable().to_vec(),
            hidden: result.hidden().clone(),
            ..Self::default()
        };
        for change in changes.all() {
            if given_up.is_cancelled() {
                return Err(Error::TimedOut);
            }
            let of_file = reader.diff(change)?;
            if diff.text.len() + of_file.text.len() > MAX_DIFF {
                return Err(Error::LargeDiff { most: MAX_DIFF });
            }
            diff.text.extend_from_slice(&of_file.text);
            diff.insertions += of_file.figures.insertions();
            diff.deletions += of_file.figures.deletions();
            diff.files.push(ChangedFileView::of(change, of_file.figures));
        }
        Ok(diff)
    }

    fn as_json(&self, run_id: &str) -> Value {
        json!(RunDiffView {
            run_id,
            files: &self.files,
            insertions: self.insertions,
            deletions: self.deletions,
            unreadable: self.unreadable.iter().map(UnreadableFileView::of).collect(),
            hidden: HiddenFilesView::of(&self.hidden),
            diff: String::from_utf8_lossy(&self.text),
        })
    }
}
