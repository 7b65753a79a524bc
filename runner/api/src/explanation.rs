//! Explains errors: the status and the code of each, and what would change the outcome.

use axum::http::StatusCode;
use platform_runtime::{report, retry::Transient};
use runner_control_client as data_plane;
use runner_engine::{
    order::OrderError,
    run::{NotAdmitted, NotAttempted},
    run_files::RunFilesError,
};
use runner_files as files;
use runner_store as store;

/// Help for requests whose outcome is not known.
pub(super) const ASK_AGAIN: &str =
    "send the request again; repeat an order only with its `Idempotency-Key`, or it may run twice";

/// Status and code of an error, and what would change the outcome.
pub(super) struct Explanation {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) help: &'static str,
}

pub(super) const fn explanation(status: StatusCode, code: &'static str, help: &'static str) -> Explanation {
    Explanation { status, code, help }
}

pub(super) const fn internal() -> Explanation {
    explanation(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the log of `sluice up` has the cause")
}

pub(super) fn order_explanation(error: &OrderError) -> Explanation {
    match error {
        OrderError::UnknownAgent { .. } => {
            explanation(StatusCode::NOT_FOUND, "unknown_agent", "order one of `agents`")
        }
        OrderError::NotGranted { .. } => explanation(
            StatusCode::BAD_REQUEST,
            "model_not_granted",
            "order one of `models`, or none for the default",
        ),
        OrderError::NoModel { .. } => explanation(
            StatusCode::BAD_REQUEST,
            "no_model",
            "name a model; GET /v1/models at the proxy lists them",
        ),
        OrderError::Unpriced(_) => {
            explanation(StatusCode::BAD_REQUEST, "model_unpriced", "order a model with a price")
        }
        OrderError::Store(error) => store_explanation(error),
        OrderError::InvalidModel { .. } | OrderError::Behaviour(_) => explanation(
            StatusCode::INTERNAL_SERVER_ERROR,
            "configuration_invalid",
            "`sluice agents check` names the cause",
        ),
    }
}

pub(super) const fn admission_explanation(error: &NotAdmitted) -> Explanation {
    match error {
        NotAdmitted::TooUrgent { .. } => {
            explanation(StatusCode::FORBIDDEN, "priority_too_high", "order a lower `priority`")
        }
    }
}

/// Returns the explanation of an error of a run that is not attempted again.
pub(super) fn attempt_explanation(error: &NotAttempted) -> Explanation {
    let conflict = |code, help| explanation(StatusCode::CONFLICT, code, help);
    match error {
        NotAttempted::Store(store::Error::Illegal { .. } | store::Error::Fenced { .. })
        | NotAttempted::NotEnded { .. } => conflict("run_not_ended", "ask again when the run has ended"),
        NotAttempted::Store(store::Error::Forgotten { .. }) => conflict("not_repeatable", "order a new run"),
        NotAttempted::Store(error) => store_explanation(error),
        NotAttempted::OtherAttempt { .. } => conflict(
            "other_attempt",
            "read the run, and ask for the attempt after its `attempt`, or for none",
        ),
        NotAttempted::FilesGone { .. } | NotAttempted::OnGateway { .. } => {
            conflict("not_repeatable", "order a new run")
        }
        NotAttempted::Unreadable(_) => internal(),
    }
}

pub(super) fn store_explanation(error: &store::Error) -> Explanation {
    match error {
        store::Error::Unknown { .. } | store::Error::NoPrincipal { .. } | store::Error::NoThread { .. } => {
            not_found()
        }
        store::Error::ThreadBusy { .. } => explanation(
            StatusCode::CONFLICT,
            "thread_busy",
            "wait for the end of the thread's last run, or cancel it",
        ),
        store::Error::StillActive { .. } => {
            explanation(StatusCode::CONFLICT, "run_active", "cancel the run, or wait for its end")
        }
        store::Error::Conflict { .. } => explanation(
            StatusCode::CONFLICT,
            "run_id_taken",
            "another order has this run id or idempotency key: choose another",
        ),
        store::Error::Full(_) => {
            explanation(StatusCode::TOO_MANY_REQUESTS, "queue_full", "order again after `retry-after`")
        }
        store::Error::TooLarge { .. } => explanation(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "send less"),
        error if error.is_transient() => {
            explanation(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", ASK_AGAIN)
        }
        _ => internal(),
    }
}

/// Returns the explanation of an error for what does not exist.
pub(super) const fn not_found() -> Explanation {
    explanation(StatusCode::NOT_FOUND, "not_found", "check the path and the id")
}

/// Returns the explanation of an error of the files of a run.
pub(super) fn files_explanation(error: &RunFilesError) -> Explanation {
    match error {
        RunFilesError::Store(error) => store_explanation(error),
        RunFilesError::NotYet { .. } => {
            explanation(StatusCode::CONFLICT, "no_files_yet", "ask again when the run has started")
        }
        RunFilesError::NoLongerKept { .. }
        | RunFilesError::Files(
            files::Error::NoFiles { .. } | files::Error::NoResult { .. } | files::Error::ResultRemoved { .. },
        ) => explanation(
            StatusCode::NOT_FOUND,
            "no_files",
            "start runs with `sluice run --workspace`; the agent's `keep` says how long files stay",
        ),
        RunFilesError::Files(files::Error::TooManyResults { .. }) => explanation(
            StatusCode::UNPROCESSABLE_ENTITY,
            "result_too_large",
            "let the agent remove what it does not need",
        ),
        _ => internal(),
    }
}

/// Returns the explanation of an error of the data plane.
pub(super) fn data_plane_explanation(error: &data_plane::Error) -> Explanation {
    match error {
        data_plane::Error::Refused { code, .. } if code == "not_stored" => explanation(
            StatusCode::INSUFFICIENT_STORAGE,
            "not_stored",
            "the change holds, and a restart may lose it: free the data plane's disk",
        ),
        error if error.is_refusal() => internal(),
        _ => explanation(
            StatusCode::SERVICE_UNAVAILABLE,
            "data_plane_unavailable",
            "send the request again; `sluice status` says what the data plane lacks",
        ),
    }
}

/// Returns the text for a client whose run has no files. Paths of this host are for operators, in the log.
pub(super) fn files_detail(error: &RunFilesError) -> String {
    use runner_files::Error as FilesError;
    match error {
        RunFilesError::Files(error @ (FilesError::NoResult { .. } | FilesError::ResultRemoved { .. })) => {
            tracing::debug!(error = report::chain(error), "a run has no files for the API");
            "the workspace has no files of the run any more".to_owned()
        }
        error => report::chain(error),
    }
}
