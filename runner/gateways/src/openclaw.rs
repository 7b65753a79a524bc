//! Lists the versions of OpenClaw with which each feature of it was tested. Pure.
//!
//! The book shows this one table, `make test-openclaw` tests the ends of its ranges, and `sluice gateway check` names a
//! version outside them.

use std::{cmp::Ordering, fmt};

use platform_runtime::settings::{Attribution, Gateway};

/// Features of OpenClaw that depend on its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// `attribution = "trace"`.
    Trace,
    /// `attribution = "slot"`.
    Slot,
    /// `attribution = "plugin"`.
    Plugin,
    /// A gateway of `sluice gateway up`.
    Managed,
    /// Its own container for each run: `services/sandbox-openclaw`.
    Image,
}

/// Knowledge about versions older than the tested ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OlderVersions {
    /// The feature is known not to work up to this version.
    Fails(&'static str),
    /// Older versions were not tried.
    Untested,
}

/// Versions with which a feature was tested: the oldest, the newest, and what is known of older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TestedRange {
    feature: Feature,
    oldest: &'static str,
    newest: &'static str,
    older: OlderVersions,
}

/// The newest version that was tested; the one that set-up installs.
const NEWEST_TESTED: &str = "2026.9.6";

const TESTED_RANGES: [TestedRange; 5] = [
    TestedRange {
        feature: Feature::Trace,
        oldest: "2026.8.2",
        newest: NEWEST_TESTED,
        older: OlderVersions::Untested,
    },
    TestedRange {
        feature: Feature::Slot,
        oldest: "2026.2.6-3",
        newest: NEWEST_TESTED,
        older: OlderVersions::Untested,
    },
    // Up to that version OpenClaw calls no hook of a plugin for a provider of the configuration: the plugin loads, and
    // adds nothing.
    TestedRange {
        feature: Feature::Plugin,
        oldest: "2026.9.5",
        newest: NEWEST_TESTED,
        older: OlderVersions::Fails("2026.9.3"),
    },
    TestedRange {
        feature: Feature::Managed,
        oldest: NEWEST_TESTED,
        newest: NEWEST_TESTED,
        older: OlderVersions::Untested,
    },
    TestedRange {
        feature: Feature::Image,
        oldest: "2026.8.2",
        newest: NEWEST_TESTED,
        older: OlderVersions::Untested,
    },
];

/// A version outside the range in which a feature was tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntestedVersion {
    version: String,
    tested: TestedRange,
    fails: bool,
}

impl UntestedVersion {
    /// Returns whether the version is known not to work.
    pub(crate) const fn fails(&self) -> bool {
        self.fails
    }
}

impl fmt::Display for UntestedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, tested: TestedRange { feature, oldest, newest, .. }, .. } = self;
        let verdict = if self.fails() { "does not work" } else { "was not tested" };
        write!(f, "{} {verdict} with its OpenClaw {version}: use {oldest}", feature.name())?;
        if oldest == newest { Ok(()) } else { write!(f, " to {newest}") }
    }
}

impl Feature {
    /// Returns the feature's name in messages and documents.
    const fn name(self) -> &'static str {
        match self {
            Self::Trace => "`attribution = \"trace\"`",
            Self::Slot => "`attribution = \"slot\"`",
            Self::Plugin => "`attribution = \"plugin\"`",
            Self::Managed => "a gateway that runs here",
            Self::Image => "`sandbox:openclaw`",
        }
    }

    /// Returns the range of versions with which the feature was tested.
    fn tested(self) -> Option<TestedRange> {
        TESTED_RANGES.into_iter().find(|tested| tested.feature == self)
    }

    /// Returns the warning about using `version`, if that is outside the range or a pre-release, none of which was
    /// tested. An invalid version, such as the `dev` of protocol 3, gives none.
    pub(crate) fn untested(self, version: &str) -> Option<UntestedVersion> {
        let tested = self.tested()?;
        let OpenClawVersion { numbers, is_release } = OpenClawVersion::of(version)?;
        let compare_to = |other| OpenClawVersion::of(other).map(|other| numbers.cmp(&other.numbers));
        let is_within = is_release
            && compare_to(tested.oldest).is_some_and(Ordering::is_ge)
            && compare_to(tested.newest).is_some_and(Ordering::is_le);
        let fails = matches!(tested.older, OlderVersions::Fails(newest) if compare_to(newest).is_some_and(Ordering::is_le));
        (!is_within).then(|| UntestedVersion { version: version.to_owned(), tested, fails })
    }
}

/// Returns the features of OpenClaw that `gateway` uses.
pub(crate) fn features(gateway: &Gateway) -> Vec<Feature> {
    let attribution = match gateway.attribution {
        Attribution::Trace => Some(Feature::Trace),
        Attribution::Slot => Some(Feature::Slot),
        Attribution::Plugin => Some(Feature::Plugin),
        // The features of a patched gateway are not known here.
        Attribution::Headers => None,
    };
    attribution.into_iter().chain(gateway.is_managed().then_some(Feature::Managed)).collect()
}

/// A version of OpenClaw.
#[derive(Debug, Clone, Copy)]
struct OpenClawVersion {
    /// Year, month, number and repetition: `2026.2.6-3`.
    numbers: [u32; 4],
    /// True if nothing follows the numbers, such as the `-beta.1` of a pre-release.
    is_release: bool,
}

impl OpenClawVersion {
    /// Parses `text`; `None` if it is not a version.
    fn of(text: &str) -> Option<Self> {
        let (main, rest) =
            text.split_once(['-', '+']).map_or((text, None), |(main, rest)| (main, Some(rest)));
        let mut parts = main.split('.');
        let mut next = || parts.next()?.parse().ok();
        let repetition = rest.map_or(Ok(0), str::parse);
        let numbers = [next()?, next()?, next()?, *repetition.as_ref().unwrap_or(&0)];
        (parts.next().is_none() && numbers[0] >= 2000)
            .then_some(Self { numbers, is_release: repetition.is_ok() })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn text(file: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
    }

    #[test]
    fn a_version_outside_the_range_is_named() {
        for (feature, version, verdict) in [
            (Feature::Plugin, "2026.9.5", None),
            (Feature::Plugin, "2026.9.6", None),
            (Feature::Plugin, "2026.8.2", Some((true, "does not work with its OpenClaw 2026.8.2"))),
            (Feature::Plugin, "2026.9.3", Some((true, "use 2026.9.5 to 2026.9.6"))),
            (Feature::Plugin, "2026.9.4", Some((false, "was not tested with its OpenClaw 2026.9.4"))),
            (Feature::Plugin, "2026.9.5-beta.1", Some((false, "was not tested"))),
            (Feature::Plugin, "2026.9.3-beta.1", Some((true, "does not work"))),
            (Feature::Plugin, "2026.9.6+local", Some((false, "was not tested"))),
            (Feature::Plugin, "2026.10.1", Some((false, "was not tested"))),
            (Feature::Trace, "2026.8.2", None),
            (Feature::Trace, "2026.8.1", Some((false, "`attribution = \"trace\"` was not tested"))),
            (Feature::Slot, "2026.2.6-3", None),
            (Feature::Slot, "2026.2.6-2", Some((false, "use 2026.2.6-3 to"))),
            (Feature::Slot, "2026.2.6", Some((false, "was not tested"))),
            (Feature::Slot, "dev", None),
            (Feature::Managed, "2026.9.5", Some((false, "use 2026.9.6"))),
            (Feature::Image, "2027.1.0", Some((false, "`sandbox:openclaw` was not tested"))),
        ] {
            let untested = feature.untested(version);
            assert_eq!(untested.is_some(), verdict.is_some(), "{feature:?} {version}");
            if let (Some(untested), Some((fails, words))) = (untested, verdict) {
                assert_eq!(untested.fails(), fails, "{feature:?} {version}");
                assert!(untested.to_string().contains(words), "{untested}");
            }
        }
    }

    #[test]
    fn documents_and_scripts_have_these_versions() {
        let pages = ["how-to/gateways-shared.md", "explanation/attribution.md"];
        for TestedRange { feature, oldest, newest, .. } in TESTED_RANGES {
            let row = format!("| {} | {oldest} | {newest} |", feature.name());
            for page in pages {
                let page = format!("docs/src/{page}");
                assert!(text(&page).contains(&row), "{page} has no row {row}");
            }
            let tested = format!("{} {oldest} {newest}\n", format!("{feature:?}").to_lowercase());
            assert!(text("scripts/test-openclaw.sh").contains(&tested), "scripts/test-openclaw.sh: {tested}");
        }
        assert!(text("scripts/openclaw.sh").contains(&format!("\nNEWEST={NEWEST_TESTED}\n")));
        let plugin = Feature::Plugin.tested().unwrap();
        for file in ["services/openclaw-headers-plugin/README.md", "gateway-bridge/README.md"] {
            let range = format!("{} to {}", plugin.oldest, plugin.newest);
            assert!(text(file).contains(&range), "{file} does not say {range}");
        }
        let [trace, slot] = [Feature::Trace, Feature::Slot].map(|feature| feature.tested().unwrap().oldest);
        for (file, words) in [
            (
                "platform/config/sluice.example.toml",
                format!("OpenClaw from {trace}; \"slot\": from {slot}; "),
            ),
            ("platform/runtime/src/settings/gateways.rs", format!("OpenClaw from {trace} passes it")),
            ("platform/runtime/src/settings/gateways.rs", format!("(tested with OpenClaw from {trace})")),
            ("platform/config/sluice.schema.json", format!("(tested with OpenClaw from {trace})")),
            ("platform/config/sluice.schema.json", format!("(from {slot})")),
            ("platform/config/sluice.schema.json", format!("our plugin (from {})", plugin.oldest)),
        ] {
            assert!(text(file).contains(&words), "{file} does not say {words}");
        }
        for file in ["platform/config/sluice.example.toml", "platform/config/sluice.schema.json"] {
            assert!(!text(file).contains("any version"), "{file} speaks of versions that were not tested");
        }
    }
}
