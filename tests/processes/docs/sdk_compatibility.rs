//! The page on SDK compatibility is what `scripts/sdk-suites.sh` recorded.
//!
//! After a new record, delete the page: this test writes it anew, and fails once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde::Deserialize;

use super::reference::published;

const INTRODUCTION: &str = "# SDK compatibility\n\n\
    For developers: how the official Python SDKs' own test suites end through Sluicegate.\n\n\
    `scripts/sdk-suites.sh PROXY` runs them against a mock that takes everything, once directly and once through a\n\
    proxy, as a run without capabilities. A test passes if its call is answered; shapes of answers are not compared.\n\
    Tables have the modules of which a test passes through.\n";

/// Reasons for which calls are refused, in words.
const CODES: [(&str, &str); 6] = [
    ("route_unknown", "no such route"),
    ("token_missing", "a key of an administrator, which is not a run token"),
    ("field_unknown", "a field that says who calls, or that names a second model"),
    ("not_granted", "needs a capability"),
    ("body_invalid", "no model, or a value of another type"),
    ("other", "another answer"),
];

#[derive(Deserialize)]
struct SdkRecord {
    suites: Vec<Suite>,
}

#[derive(Deserialize)]
struct Suite {
    sdk: String,
    version: String,
    modules: Vec<Module>,
}

#[derive(Deserialize)]
struct Module {
    module: String,
    tests: u32,
    direct: u32,
    through: u32,
    differing: BTreeMap<String, u32>,
}

impl Suite {
    fn page(&self) -> String {
        let sum = |count: fn(&Module) -> u32| self.modules.iter().map(count).sum::<u32>();
        let (tests, direct, through) = (sum(|it| it.tests), sum(|it| it.direct), sum(|it| it.through));
        let (served, others): (Vec<_>, Vec<_>) = self.modules.iter().partition(|module| module.through > 0);
        let mut page = format!(
            "\n## {} {}\n\n{tests} tests: {direct} pass directly, {through} through.\n\n\
             | module | tests | direct | through | reasons of the others |\n|---|--:|--:|--:|---|\n",
            self.sdk, self.version
        );
        for Module { module, tests, direct, through, differing } in served {
            let reasons: Vec<_> =
                differing.iter().map(|(code, count)| format!("{count}: {}", in_words(code))).collect();
            let reasons = reasons.join("; ");
            writeln!(page, "| `{module}` | {tests} | {direct} | {through} | {reasons} |").unwrap();
        }
        let names: BTreeSet<_> = others.iter().map(|module| module.family()).collect();
        let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
        let count: u32 = others.iter().map(|module| module.tests).sum();
        writeln!(page, "\nModules left out, {count} tests: {}.", names.join(", ")).unwrap();
        page
    }
}

impl Module {
    /// Returns the first part of its name, two for those in `beta`.
    fn family(&self) -> String {
        let parts = if self.module.starts_with("beta.") { 2 } else { 1 };
        self.module.split('.').take(parts).collect::<Vec<_>>().join(".")
    }
}

fn in_words(code: &str) -> &str {
    CODES.iter().find(|(known, _)| *known == code).map_or(code, |(_, words)| words)
}

#[test]
fn the_sdk_page_is_what_was_recorded() {
    let record: SdkRecord = serde_json::from_str(include_str!("../../records/sdk-suites.json")).unwrap();
    let mut page = INTRODUCTION.to_owned();
    record.suites.iter().for_each(|suite| page += &suite.page());
    for suite in &record.suites {
        assert!(suite.modules.iter().any(|module| module.through > 0), "{} was not served at all", suite.sdk);
        let gained = suite.modules.iter().find(|module| module.through > module.direct);
        assert!(gained.is_none(), "more passes through than directly: {:?}", gained.map(|it| &it.module));
    }
    published("sdk-compatibility.md", &page);
}
