//! Parses metrics more strictly than Prometheus does: exposition format 0.0.4, each family and each series once.

use std::collections::{BTreeMap, BTreeSet};

/// A strictly parsed exposition.
#[derive(Debug)]
pub struct Scrape {
    /// Text of the exposition.
    pub text: String,
    /// Values by series; a key is the series as it is written.
    pub series: BTreeMap<String, f64>,
}

impl Scrape {
    /// Parses `text`.
    ///
    /// # Panics
    /// If Prometheus would reject it, or the buckets of a histogram do not match its count.
    #[must_use]
    pub fn of(text: String) -> Self {
        let (mut families, mut series) = (BTreeMap::new(), BTreeMap::new());
        let mut family = ("", "");
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(help.ends_with('.'), "{line}");
                family = (name, "");
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!((name, ""), family, "TYPE follows its HELP");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                assert!(families.insert(name, kind).is_none(), "{name} begins twice");
                family = (name, kind);
                continue;
            }
            let (key, value) = line.rsplit_once(' ').unwrap();
            let suffix =
                name_of(key).strip_prefix(family.0).unwrap_or_else(|| panic!("{line} in {family:?}"));
            let fits = if family.1 == "histogram" { &["_bucket", "_sum", "_count"][..] } else { &[""] };
            assert!(fits.contains(&suffix), "{line} in {family:?}");
            labels_of(key);
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(series.insert(key.to_owned(), value).is_none(), "{key} twice");
        }
        let scrape = Self { text, series };
        scrape.check_histograms();
        scrape
    }

    /// Asserts that the buckets of each histogram grow, up to its count.
    fn check_histograms(&self) {
        let mut histograms: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        for (key, value) in &self.series {
            let mut labels = labels_of(key);
            if let (Some(family), Some(bound)) = (name_of(key).strip_suffix("_bucket"), labels.remove("le")) {
                let bound = bound.parse().unwrap();
                histograms.entry((family.to_owned(), labels)).or_default().push((bound, *value));
            }
        }
        assert!(!histograms.is_empty());
        for ((family, labels), mut buckets) in histograms {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{family} {labels:?}: {buckets:?}");
            let (last, count) = *buckets.last().unwrap();
            assert!(last.is_infinite());
            let labels: Vec<_> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(self.sum(&format!("{family}_count"), &labels), count, "{family} {labels:?}");
        }
    }

    /// Returns the sum over the series of `name` that have at least these labels.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let matches = |key: &str| {
            let present = labels_of(key);
            labels.iter().all(|(label, value)| present.get(*label).is_some_and(|present| present == value))
        };
        self.series
            .iter()
            .filter(|(key, _)| name_of(key) == name && matches(key))
            .map(|(_, value)| value)
            .sum()
    }

    /// Returns the value of the series `name`, which has no labels.
    ///
    /// # Panics
    /// If it does not exist.
    #[must_use]
    pub fn one(&self, name: &str) -> f64 {
        *self.series.get(name).unwrap_or_else(|| panic!("no {name} in {}", self.text))
    }

    /// Returns all values of a label.
    #[must_use]
    pub fn values(&self, label: &str) -> BTreeSet<String> {
        self.series.keys().filter_map(|key| labels_of(key).remove(label)).collect()
    }

    /// Returns all series.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<&str> {
        self.series.keys().map(String::as_str).collect()
    }
}

/// Returns the name of a series, without its labels.
#[must_use]
pub fn name_of(key: &str) -> &str {
    key.split('{').next().unwrap()
}

/// Returns the labels of a series. No label of Sluicegate needs a backslash, so a backslash is an error.
fn labels_of(key: &str) -> BTreeMap<String, String> {
    let Some((_, rest)) = key.split_once('{') else { return BTreeMap::new() };
    let labels = rest.strip_suffix("\"}").unwrap_or_else(|| panic!("{key}"));
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").unwrap_or_else(|| panic!("{key}"));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{key}");
        assert!(!value.contains(['"', '\\', '{', '}', '\n']), "{key}");
        (name.to_owned(), value.to_owned())
    };
    labels.split("\",").map(label).collect()
}
