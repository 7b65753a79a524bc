//! Explains a configuration: the value of each setting that is in effect, and its source.

use super::{Origin, Section, Sources, reader};

/// A setting as it is in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSetting {
    /// Dotted key.
    pub key: String,
    /// The value, if there is one.
    pub value: Option<serde_json::Value>,
    /// Source of the value; `None` for a default, and for a setting without a value.
    pub origin: Option<Origin>,
}

/// Returns every setting that `build` reads from `sources`, in the sequence in which it reads them. Wrong values are
/// left out: [`super::read`] reports them.
pub fn explain<T>(sources: &Sources, build: impl FnOnce(&Section<'_>) -> T) -> Vec<EffectiveSetting> {
    let mut records = reader::records_of(sources, build);
    let settings = records.fields.into_iter().filter(|field| field.schema.is_some());
    settings
        .map(|field| EffectiveSetting {
            value: records.values.remove(&field.key),
            origin: records.origins.remove(&field.key),
            key: field.key,
        })
        .collect()
}
