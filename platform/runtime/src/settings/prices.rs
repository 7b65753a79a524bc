//! Reads the prices of models.

use std::collections::BTreeMap;

use platform_core::{
    budget::Price,
    tariff::{LongPromptPrice, PartialPrice, Tariff},
};

use super::SectionName;
use crate::config::Section;

pub(super) fn read(root: &Section<'_>) -> BTreeMap<String, Tariff> {
    let doc = "Price of a model, by the name in the request; `*` is each model that is not named. The higher of the cost \
               by this table and the cost that the upstream reports counts.";
    let read = |model: &str, section: &Section<'_>| (model.to_owned(), tariff(section));
    root.each(SectionName::Prices.name(), doc, read).into_iter().collect()
}

fn tariff(section: &Section<'_>) -> Tariff {
    let usual = read_price(section).price();
    let doc = "Price of calls whose prompt has more than `above` tokens, with the keys of the usual price. The dearer \
               one counts, for all tokens of the call.";
    let long_prompt = section.section("long_prompt", doc, long_prompt);
    let doc = "Price of calls that ask for a tier, speed or region that needs the capability `premium_service`, with the \
               keys of the usual price. The dearer one counts.";
    let premium = section.section("premium", doc, dearer);
    if usual.is_none() {
        reject(section);
    }
    Tariff { usual: usual.unwrap_or_default(), long_prompt, premium }
}

fn long_prompt(section: &Section<'_>) -> Option<LongPromptPrice> {
    let above: Option<u64> =
        section.field("above", "Most tokens of a prompt that has the usual price.").optional();
    let price = dearer(section);
    if above.is_some() != price.is_some() {
        section.reject_itself("a price of long prompts needs `above`, `input` and `output`".to_owned());
    }
    above.zip(price).map(|(above, price)| LongPromptPrice { above, price })
}

/// Reads a price that may be absent as a whole.
fn dearer(section: &Section<'_>) -> Option<Price> {
    let read = read_price(section);
    let price = read.price();
    if price.is_none() && !read.is_absent() {
        reject(section);
    }
    price
}

fn reject(section: &Section<'_>) {
    section.reject_itself("a price needs `input` and `output`, dollars for a million tokens".to_owned());
}

/// Reads a price as the file has it.
fn read_price(section: &Section<'_>) -> PartialPrice {
    let dollars = |name, doc| section.field(name, doc).may_be_zero().optional();
    PartialPrice {
        input: dollars("input", "Dollars for a million tokens of prompts, as text."),
        output: dollars("output", "Dollars for a million tokens of answers, as text."),
        cached: dollars("cached", "The same for tokens read from a cache; `input` if absent."),
        cache_written: dollars(
            "cache_written",
            "The same for tokens written to a cache; five quarters of `input` if absent.",
        ),
        cache_written_1h: dollars(
            "cache_written_1h",
            "The same for tokens written to a cache that keeps them for an hour; twice `input` if absent.",
        ),
    }
}
