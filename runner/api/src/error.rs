//! Turns errors of the API into HTTP answers. No other module does.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

/// Reason why the API refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// No resource exists at this path.
    #[error("there is nothing here: GET /api/v1/ai/agents lists the agents")]
    Route,
    /// The path exists, but not for this method.
    #[error("this path takes GET alone")]
    Method,
    /// The request was sent to a name that is not this host's own.
    #[error("only requests to localhost, 127.0.0.1 or [::1] are answered")]
    Host,
    /// A browser sent the request for a page from another site.
    #[error("requests from pages of other sites are refused")]
    Site,
}

impl Error {
    const fn status(self) -> StatusCode {
        match self {
            Self::Route => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Site => StatusCode::FORBIDDEN,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Route => "not_found",
            Self::Method => "method_not_allowed",
            Self::Host => "wrong_host",
            Self::Site => "wrong_site",
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code(), "message": self.to_string() } });
        (self.status(), super::json(&body)).into_response()
    }
}
