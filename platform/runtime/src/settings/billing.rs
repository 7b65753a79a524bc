//! Reads the settings of receipts.

use std::collections::BTreeSet;

use platform_core::{credits::CreditRate, id::ModelName};

use crate::config::Section;

/// `[billing]`
#[derive(Debug, Clone, Default)]
pub struct Billing {
    /// Models whose calls cost nothing, by the name in the request.
    pub free_models: BTreeSet<ModelName>,
    /// Rate by which costs become credits.
    pub rate: CreditRate,
}

impl Billing {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let free_models = section.field(
            "free_models",
            "Models whose calls cost nothing, by the name in the request. A call of any other model with a cost of 0 is unpriced.",
        );
        Self {
            free_models: free_models.list_or(Vec::new()).into_iter().collect(),
            rate: CreditRate::default(),
        }
    }
}
