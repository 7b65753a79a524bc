//! Lists the versions of OpenClaw with which each use of it was tested. Pure.
//!
//! One table: the README shows it, `make test-openclaw` tests its ends, and `sluice gateway check` names a version outside it.

use std::fmt;

use platform_runtime::settings::{Attribution, Gateway};

/// Uses of OpenClaw that depend on its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// `attribution = "trace"`.
    Trace,
    /// `attribution = "slot"`.
    Slot,
    /// `attribution = "plugin"`.
    Plugin,
    /// A gateway of `sluice gateway up`.
    Sealed,
    /// A container of its own for each run: `services/sandbox-openclaw`.
    Image,
}

/// Outcome of a version below those that were tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Older {
    /// It is known not to work.
    Fails,
    /// It was not tried.
    Untested,
}

/// Versions with which a use was tested: the oldest, the newest, and what is known of older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tested {
    what: Use,
    oldest: &'static str,
    newest: &'static str,
    older: Older,
}

/// The newest version that was tested; the one that set-up installs.
const NEWEST: &str = "2026.9.6";

const TESTED: [Tested; 5] = [
    Tested { what: Use::Trace, oldest: "2026.8.2", newest: NEWEST, older: Older::Untested },
    Tested { what: Use::Slot, oldest: "2026.2.6-3", newest: NEWEST, older: Older::Untested },
    // Up to 2026.9.3 it calls no hook of a plugin for a provider of the configuration: the plugin loads, and adds nothing.
    Tested { what: Use::Plugin, oldest: "2026.9.5", newest: NEWEST, older: Older::Fails },
    Tested { what: Use::Sealed, oldest: NEWEST, newest: NEWEST, older: Older::Untested },
    Tested { what: Use::Image, oldest: "2026.8.2", newest: NEWEST, older: Older::Untested },
];

/// A version outside the range in which a use was tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    version: String,
    tested: Tested,
    is_older: bool,
}

impl Outside {
    /// Returns whether the version is known not to work.
    pub(crate) fn fails(&self) -> bool {
        self.is_older && self.tested.older == Older::Fails
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, tested: Tested { what, oldest, newest, .. }, .. } = self;
        let verdict = if self.fails() { "does not work" } else { "was not tested" };
        write!(f, "{} {verdict} with its OpenClaw {version}: use {oldest}", what.name())?;
        if oldest == newest { Ok(()) } else { write!(f, " to {newest}") }
    }
}

impl Use {
    /// Returns the use in words.
    const fn name(self) -> &'static str {
        match self {
            Self::Trace => "`attribution = \"trace\"`",
            Self::Slot => "`attribution = \"slot\"`",
            Self::Plugin => "`attribution = \"plugin\"`",
            Self::Sealed => "a gateway that runs here",
            Self::Image => "`sandbox:openclaw`",
        }
    }

    /// Returns the range with which it was tested.
    fn tested(self) -> Option<Tested> {
        TESTED.into_iter().find(|tested| tested.what == self)
    }

    /// Returns what is to be known of using `version`, if that is outside the range. A version that is none, such as the `dev` of
    /// protocol 3, tells nothing.
    pub(crate) fn outside(self, version: &str) -> Option<Outside> {
        let (tested, number) = (self.tested()?, numbers(version)?);
        let is_older = numbers(tested.oldest).is_some_and(|oldest| number < oldest);
        let is_newer = numbers(tested.newest).is_some_and(|newest| number > newest);
        (is_older || is_newer).then(|| Outside { version: version.to_owned(), tested, is_older })
    }
}

/// Returns the uses that `gateway` makes of its OpenClaw.
pub(crate) fn uses(gateway: &Gateway) -> Vec<Use> {
    let attribution = match gateway.attribution {
        Attribution::Trace => Some(Use::Trace),
        Attribution::Slot => Some(Use::Slot),
        Attribution::Plugin => Some(Use::Plugin),
        // Of a patched gateway only who patched it knows.
        Attribution::Headers => None,
    };
    attribution.into_iter().chain(gateway.is_sealed().then_some(Use::Sealed)).collect()
}

/// Returns year, month, number and repetition: `2026.2.6-3`, with nothing but a tag behind it.
fn numbers(version: &str) -> Option<[u32; 4]> {
    let (main, rest) = version.split_once('-').unwrap_or((version, ""));
    let mut parts = main.split('.');
    let mut next = || parts.next()?.parse().ok();
    let numbers = [next()?, next()?, next()?, rest.parse().unwrap_or(0)];
    (parts.next().is_none() && numbers[0] >= 2000).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn text(file: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).unwrap()
    }

    #[test]
    fn a_version_outside_the_range_is_named() {
        for (what, version, verdict) in [
            (Use::Plugin, "2026.9.5", None),
            (Use::Plugin, "2026.9.6", None),
            (Use::Plugin, "2026.8.2", Some((true, "does not work with its OpenClaw 2026.8.2"))),
            (Use::Plugin, "2026.9.4", Some((true, "use 2026.9.5 to 2026.9.6"))),
            (Use::Plugin, "2026.10.1", Some((false, "was not tested"))),
            (Use::Trace, "2026.8.2", None),
            (Use::Trace, "2026.8.1", Some((false, "`attribution = \"trace\"` was not tested"))),
            (Use::Slot, "2026.2.6-3", None),
            (Use::Slot, "2026.2.6-2", Some((false, "use 2026.2.6-3 to"))),
            (Use::Slot, "2026.2.6", Some((false, "was not tested"))),
            (Use::Slot, "dev", None),
            (Use::Sealed, "2026.9.5", Some((false, "use 2026.9.6"))),
            (Use::Image, "2027.1.0", Some((false, "`sandbox:openclaw` was not tested"))),
        ] {
            let outside = what.outside(version);
            assert_eq!(outside.is_some(), verdict.is_some(), "{what:?} {version}");
            if let (Some(outside), Some((fails, said))) = (outside, verdict) {
                assert_eq!(outside.fails(), fails, "{what:?} {version}");
                assert!(outside.to_string().contains(said), "{outside}");
            }
        }
    }

    #[test]
    fn documents_and_scripts_have_these_versions() {
        let readme = text("README.md");
        for Tested { what, oldest, newest, .. } in TESTED {
            let row = format!("| {} | {oldest} | {newest} |", what.name());
            assert!(readme.contains(&row), "README.md has no row {row}");
            let tested = format!("{} {oldest} {newest}\n", format!("{what:?}").to_lowercase());
            assert!(text("scripts/test-openclaw.sh").contains(&tested), "scripts/test-openclaw.sh: {tested}");
        }
        assert!(text("scripts/openclaw.sh").contains(&format!("\nNEWEST={NEWEST}\n")));
        let plugin = Use::Plugin.tested().unwrap();
        for file in ["services/openclaw-headers-plugin/README.md", "gateway-bridge/README.md"] {
            let range = format!("{} to {}", plugin.oldest, plugin.newest);
            assert!(text(file).contains(&range), "{file} does not say {range}");
        }
    }
}
