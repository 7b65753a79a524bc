//! content is what is sealed: a secret, and the access token that was got with it.

use platform_core::{
    json::{self, Bounds},
    secret::Secret,
};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Secrets of a connection.
#[derive(Debug)]
pub(crate) struct SealedContent {
    /// Token, private key or refresh token.
    pub(crate) secret: Secret,
    /// Access token of the last refresh.
    pub(crate) access: Option<Secret>,
}

#[derive(Serialize)]
struct WrittenContent<'c> {
    secret: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<&'c str>,
}

#[derive(Deserialize)]
struct ReadContent {
    secret: String,
    access: Option<String>,
}

impl SealedContent {
    /// Returns the content as bytes, which are wiped when dropped.
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let written =
            WrittenContent { secret: self.secret.expose(), access: self.access.as_ref().map(Secret::expose) };
        // Larger than the JSON of any content, so that no copy is left behind where it grows.
        let longest = written.secret.len() + written.access.map_or(0, str::len);
        let mut bytes = Zeroizing::new(Vec::with_capacity(6 * longest + 64));
        // A map of texts always has a form in JSON, and a vector takes all bytes.
        drop(serde_json::to_writer(&mut *bytes, &written));
        bytes
    }

    /// Reads the content.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let ReadContent { secret, access } = json::from_slice(bytes, Bounds::STORED).ok()?;
        Some(Self { secret: Secret::new(secret), access: access.map(Secret::new) })
    }
}
