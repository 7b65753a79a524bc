//! Asks the upstream with its own key. Callers get the documents that it answers with, and never the key.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use platform_runtime::report;

use super::{Error, ReadError, Upstream};
use crate::pieces::Pieces;

/// Reason why a query has no answer, for a sentence that names the query.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("{0}")]
    Unanswered(String),
    #[error(transparent)]
    Unread(ReadError),
}

impl Upstream {
    /// Returns the document at `uri`, if it has at most `max_bytes`, with the status of its answer.
    ///
    /// # Errors
    /// If it is longer, or does not come whole.
    pub(super) async fn get(
        &self,
        uri: Uri,
        authorization: Option<&HeaderValue>,
        max_bytes: usize,
    ) -> Result<(StatusCode, Bytes), QueryError> {
        let mut request = Request::new(Pieces::from(Vec::new()));
        *request.uri_mut() = uri;
        self.ask(request, authorization, max_bytes).await
    }

    /// Returns the answer to a `POST` of the JSON `body` at `uri`, if it has at most `max_bytes`, with its status.
    ///
    /// # Errors
    /// If it is longer, or does not come whole.
    pub(crate) async fn post(
        &self,
        uri: Uri,
        authorization: &HeaderValue,
        body: String,
        max_bytes: usize,
    ) -> Result<(StatusCode, Bytes), QueryError> {
        let mut request = Request::new(Pieces::from(vec![Bytes::from(body)]));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.ask(request, Some(authorization), max_bytes).await
    }

    async fn ask(
        &self,
        mut request: Request<Pieces>,
        authorization: Option<&HeaderValue>,
        max_bytes: usize,
    ) -> Result<(StatusCode, Bytes), QueryError> {
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let answered = self.send_on_new_connection(request).await;
        let (answer, mut connection) = answered.map_err(|error| match &error {
            // The sentence that this completes says already that the upstream was not reached.
            Error::Unreachable(failure) => QueryError::Unanswered(report::chain(failure)),
            Error::Down { .. } | Error::Reset(_) | Error::Broken(_) => {
                QueryError::Unanswered(report::chain(&error))
            }
        })?;
        let (head, body) = answer.into_parts();
        let body = connection.read_whole(body, max_bytes).await.map_err(QueryError::Unread)?;
        Ok((head.status, body))
    }
}
