//! Parses the names of images for agents' containers. Does not check that an image exists on the host.

use std::{fmt, str::FromStr};

use platform_core::invalid::InvalidValue;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::config::{Section, Value};

/// An image, named by a tag, which may move to another image, or pinned by its digest or id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Image(String);

/// Error for a text that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an image: expected `name:tag`, or pinned `name@sha256:…` or `sha256:…`, with 64 hexadecimal digits"
)]
pub struct InvalidImage {
    text: String,
}

/// Prefix of an image's id and of a digest.
const ALGORITHM: &str = "sha256:";

/// Reads the image of a container, `default` if none is named.
pub(in crate::settings) fn read_or(section: &Section<'_>, default: &str) -> Image {
    let doc =
        "Image of the container: `name:tag`, or pinned as `name@sha256:…` or `sha256:…`. It is never pulled.";
    section.field("image", doc).or(Image(default.to_owned()))
}

impl Image {
    /// Returns the image as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the name always identifies the same image.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.0.starts_with(ALGORITHM) || self.0.contains('@')
    }
}

impl FromStr for Image {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, InvalidImage> {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphanumeric())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte))
        };
        let is_digest = |digest: &str| {
            let digits = digest.strip_prefix(ALGORITHM).unwrap_or_default();
            digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_image = match text.split_once('@') {
            Some((name, digest)) => is_name(name) && is_digest(digest),
            None if text.starts_with(ALGORITHM) => is_digest(text),
            None => is_name(text),
        };
        if is_image {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidImage { text: text.chars().take(120).flat_map(char::escape_default).collect() })
        }
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Value for Image {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(InvalidValue::of)
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "string" })
    }

    fn to_json(&self) -> serde_json::Value {
        json!(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_a_name_or_pinned() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let by_digest = format!("registry.example:5000/team/reviewer@{digest}");
        for (text, pinned) in [
            ("reviewer", false),
            ("reviewer:1", false),
            ("registry.example:5000/team/reviewer:1.0-Rc_2", false),
            (&by_digest, true),
            (&digest, true),
        ] {
            assert_eq!(text.parse::<Image>().unwrap().is_pinned(), pinned, "{text}");
        }
        let short = digest[..70].to_owned();
        let upper = digest.to_uppercase().replace("SHA", "sha");
        for text in
            ["", "-x", "a b", "reviewer@", "reviewer@sha256:1", "@", "sha256:1", &short, &upper, "a\n"]
        {
            assert!(text.parse::<Image>().is_err(), "{text:?} was taken for an image");
        }
    }
}
