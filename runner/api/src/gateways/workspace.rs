//! Shows the files of a managed gateway's agent. They are read while the agent may write them, and never written here.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::percent;
use runner_files::{AgentDirectory, DirectoryEntry, DirectoryEntryForm, RelativePath, Unreadable};
use runner_gateways::managed;
use runner_model::gateway_agent::session_directory;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::agents::FoundGateway;
use crate::{
    attachment::{attachment, refusal},
    body::read_query,
    caller::Caller,
    context::ApiContext,
    error::Error,
    file_job::do_blocking,
    json_response,
    operation::{AnswerSpec, Operation},
    problem::Problem,
};

/// Most entries of one answer.
const MAX_ENTRIES: usize = 5000;

/// Query of a directory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct DirectoryQuery {
    /// Directory to list, by its path in the agent's; the agent's if absent.
    #[param(nullable = false)]
    path: Option<String>,
    /// Session with the files, by its name at the gateway; the agent's own files if absent.
    #[param(nullable = false, max_length = 512)]
    session: Option<String>,
}

/// Query of a file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct FileQuery {
    /// Session with the file, by its name at the gateway; the agent's own files if absent.
    #[param(nullable = false, max_length = 512)]
    session: Option<String>,
}

/// Directory of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GatewayAgentDirectory)]
#[serde(rename_all = "camelCase")]
struct DirectoryView {
    entries: Vec<EntryView>,
    /// True if there are more entries than the 5000 that are listed, or some that no path can name.
    is_cut: bool,
}

/// File of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GatewayAgentDirectoryEntry)]
struct EntryView {
    /// Path in the agent's directory. Bytes that are not UTF-8 are replaced.
    path: String,
    /// `file`, `directory`, `link` or `special`.
    r#type: &'static str,
    /// Size of a file in bytes; null for others.
    #[schema(required = true)]
    size: Option<u64>,
}

impl EntryView {
    fn of(entry: &DirectoryEntry) -> Self {
        let (form, size) = match entry.form {
            DirectoryEntryForm::File(size) => ("file", Some(size)),
            DirectoryEntryForm::Directory => ("directory", None),
            DirectoryEntryForm::Link => ("link", None),
            DirectoryEntryForm::Special => ("special", None),
        };
        Self { path: entry.path.as_path().to_string_lossy().into_owned(), r#type: form, size }
    }
}

/// Lists one directory of an agent's files.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    let query: DirectoryQuery = read_query(request.uri())?;
    let below = query.path.map(RelativePath::parse).transpose();
    let below = below.map_err(|error| Error::Invalid(format!("`path`: {error}")))?;
    let directory =
        RequestedDirectory { gateway: &gateway, agent: &agent, session: query.session.as_deref() };
    let open = directory.find(&context, &caller).await?;
    let listed = do_blocking(&context, &caller, move |_given_up| {
        open().and_then(|directory| directory.list(below.as_ref(), MAX_ENTRIES)).map_err(refusal)
    });
    let listed = listed.await?;
    Ok(json_response(&DirectoryView {
        entries: listed.entries.iter().map(EntryView::of).collect(),
        is_cut: listed.is_cut,
    }))
}

pub(crate) fn list_operation() -> Operation {
    let directory = AnswerSpec::json::<DirectoryView>(StatusCode::OK, "The directory.");
    Operation::new("listGatewayAgentWorkspace", "Lists a directory of an agent's files.", directory)
        .described(
            "Only a managed gateway's files are on this host. A directory exists once an agent has worked there.",
        )
        .query::<DirectoryQuery>()
        .refuses([Problem::GATEWAY_REFUSED, Problem::FILE_REFUSED])
}

/// Answers with the content of one of an agent's files.
pub(crate) async fn read(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Error> {
    let query: FileQuery = read_query(request.uri())?;
    let FileAddress { gateway, agent, path } = FileAddress::read(request.uri().path()).ok_or(Error::Route)?;
    let permit = context.stream_permits.acquire(caller.name()).ok_or(Error::TooManyStreams)?;
    let directory =
        RequestedDirectory { gateway: &gateway, agent: &agent, session: query.session.as_deref() };
    let open = directory.find(&context, &caller).await?;
    let wanted = path.clone();
    let opened = do_blocking(&context, &caller, move |_given_up| {
        open().and_then(|directory| directory.open_file(&wanted)).map_err(refusal)
    });
    attachment(opened.await?, &path, permit)
}

pub(crate) fn read_operation() -> Operation {
    let content = AnswerSpec::bytes("The content of the file.")
        .with_header("content-disposition", "Name under which a browser stores the file.");
    Operation::new("readGatewayAgentFile", "Answers with the content of one of an agent's files.", content)
        .described("The path's slashes may be escaped.")
        .query::<FileQuery>()
        .refuses([Problem::GATEWAY_REFUSED, Problem::FILE_REFUSED, Problem::TOO_MANY_STREAMS])
}

/// Directory that a request names.
struct RequestedDirectory<'r> {
    gateway: &'r str,
    agent: &'r str,
    session: Option<&'r str>,
}

impl RequestedDirectory<'_> {
    /// Returns what opens the directory, if it exists for `caller`. That may wait for a disk.
    async fn find(
        self,
        context: &ApiContext,
        caller: &Caller,
    ) -> Result<impl FnOnce() -> Result<AgentDirectory, Unreadable> + Send + 'static, Error> {
        caller.refuse_limited()?;
        let settings = context.settings().get();
        let found = FoundGateway::find(&settings, caller, self.gateway)?;
        let key = found.key(self.agent)?;
        if !found.gateway.is_managed() {
            return Err(Error::GatewayFilesElsewhere(key.gateway));
        }
        let store = &context.opened().await?.store;
        let inside = match self.session {
            None => {
                found.check_exists(store, caller, &key).await?;
                managed::agent_workspace(key.agent.as_str())
            }
            Some(name) => {
                let exists = store.has_gateway_session(&key, &caller.scope(), name).await?;
                exists.then(|| session_directory(name)).ok_or(Error::Route)?
            }
        };
        Ok(move || managed::open_directory(&settings, &key.gateway, &inside))
    }
}

/// Agent and path that a request names.
struct FileAddress {
    gateway: String,
    agent: String,
    path: RelativePath,
}

impl FileAddress {
    /// Reads the path of a request. Names of files need not be UTF-8, so no extractor of axum can.
    fn read(uri_path: &str) -> Option<Self> {
        let (gateway, rest) = uri_path.strip_prefix("/api/v1/gateways/")?.split_once("/agents/")?;
        let (agent, path) = rest.split_once("/workspace/")?;
        let plain = |text| String::from_utf8(percent::decode(text)?).ok();
        let path = RelativePath::parse(OsString::from_vec(percent::decode(path)?)).ok()?;
        Some(Self { gateway: plain(gateway)?, agent: plain(agent)?, path })
    }
}
