//! Serves the state of what runs need: store, Docker, data plane and journal, with a fix for each that does not work.

mod finding;
mod view;

use std::time::Duration;

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::control::{Consumer, Health, Readiness};
use platform_runtime::report::ErrorText;
use runner_docker::{Docker, Version};
use runner_store::{Present, Queue, StoredCspReport};
use tokio::time::timeout;

use self::view::SystemView;
use crate::{
    body::refuse_query,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation},
};

/// Longest wait for the answer of one part.
const PART_TIMEOUT: Duration = Duration::from_secs(5);

/// State of all parts, or the reason why one does not answer.
struct SystemState {
    store: Result<StoreState, ErrorText>,
    docker: Result<Version, ErrorText>,
    data_plane: Result<DataPlaneState, ErrorText>,
}

/// State of the store, with the numbers that it has.
struct StoreState {
    description: String,
    present: Present,
    queue: Queue,
    csp_reports: Vec<StoredCspReport>,
}

struct DataPlaneState {
    health: Health,
    readiness: Readiness,
    consumers: Vec<Consumer>,
}

/// Answers with the state of all parts. A part that does not answer fails no other.
pub(crate) async fn show(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let (store, docker, data_plane) =
        tokio::join!(context.store_state(), context.docker_state(), context.data_plane_state());
    Ok(json_response(&SystemView::of(&SystemState { store, docker, data_plane })))
}

pub(crate) fn show_operation() -> Operation {
    let state = AnswerSpec::json::<SystemView>(StatusCode::OK, "The state of all parts.");
    Operation::new("getSystem", "Answers with the state of store, Docker, data plane and journal.", state)
        .described("The answer is 200 also if a part does not work: `ready` and `findings` say so.")
        .without_query()
}

impl ApiContext {
    async fn store_state(&self) -> Result<StoreState, ErrorText> {
        let read = async {
            let store = &self.opened().await?.store;
            Ok::<_, Error>(StoreState {
                description: store.describe(),
                present: store.present().await?,
                queue: store.queue().await?,
                csp_reports: store.csp_reports().await?,
            })
        };
        in_time(read).await
    }

    async fn docker_state(&self) -> Result<Version, ErrorText> {
        let settings = self.settings().get();
        let read = async { Docker::connect(&settings.sandbox.docker_socket).await?.version().await };
        in_time(read).await
    }

    async fn data_plane_state(&self) -> Result<DataPlaneState, ErrorText> {
        let read = async {
            Ok::<_, runner_control_client::Error>(DataPlaneState {
                health: self.data_plane.health().await?,
                readiness: self.data_plane.ready().await?,
                consumers: self.data_plane.consumers().await?,
            })
        };
        in_time(read).await
    }
}

async fn in_time<T, E: std::error::Error>(read: impl Future<Output = Result<T, E>>) -> Result<T, ErrorText> {
    match timeout(PART_TIMEOUT, read).await {
        Ok(read) => read.map_err(|error| ErrorText::of(&error)),
        Err(_elapsed) => Err(ErrorText(format!("it did not answer within {} s", PART_TIMEOUT.as_secs()))),
    }
}
