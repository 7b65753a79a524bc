//! Tests the alerts that operators start from with Prometheus' own `promtool`. Each has a situation in which it fires, and
//! one in which it is silent.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

fn config(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../platform/config")).join(name)
}

/// Returns the names after `key` in the lines of a YAML file.
fn names_after(text: &str, key: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.trim().strip_prefix(key)).map(str::to_owned).collect()
}

/// Runs the cases against `rules`. Returns what promtool says if it finds a mistake.
fn mistake_in(rules: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("alerts.example.yml"), rules).unwrap();
    fs::copy(config("alerts.test.yml"), dir.path().join("alerts.test.yml")).unwrap();
    let mut promtool = Command::new("/usr/bin/promtool");
    let output = promtool.args(["test", "rules", "alerts.test.yml"]).current_dir(dir.path()).output();
    let output = output.expect("promtool: make setup-test installs it");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (!output.status.success()).then_some(said)
}

#[test]
fn each_alert_fires_and_is_silent() {
    let rules = fs::read_to_string(config("alerts.example.yml")).unwrap();
    let cases = fs::read_to_string(config("alerts.test.yml")).unwrap();
    let alerts = names_after(&rules, "- alert: ");
    assert!(alerts.len() > 10, "{alerts:?}");
    let mut covered: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for name in names_after(&cases, "- name: ") {
        let (alert, does) = name.split_once(' ').unwrap();
        covered.entry(alert.to_owned()).or_default().push(does.to_owned());
    }
    let mut more = 0;
    for alert in &alerts {
        let cases = covered.remove(alert).unwrap_or_default();
        assert_eq!(cases[..2], ["is silent", "fires"], "{alert}");
        more += cases.len() / 2 - 1;
    }
    assert!(covered.is_empty(), "cases of no alert: {covered:?}");
    let silent = names_after(&cases, "exp_alerts: []").len();
    let of_each = alerts.len() + more;
    assert_eq!((silent, names_after(&cases, "- exp_labels: ").len()), (of_each, of_each));
    assert_eq!(mistake_in(&rules), None);
}

/// The controls: rules that never fire, and rules that always do.
#[test]
fn promtool_sees_wrong_rules() {
    let rules = fs::read_to_string(config("alerts.example.yml")).unwrap();
    for (expression, wrong) in [
        ("sluicegate_journal_open == 0", "sluicegate_journal_open == 2"),
        ("sluicegate_journal_open == 0", "sluicegate_journal_open >= 0"),
        ("sluicegate_journal_lag) > 10000", "sluicegate_journal_lag) > 8000"),
        // A difference of two samples is negative after a restart.
        (
            r#"increase(sluice_receipts_total{reason="unpriced"}[10m])"#,
            r#"delta(sluice_receipts_total{reason="unpriced"}[10m])"#,
        ),
    ] {
        assert!(rules.contains(expression), "{expression}");
        let found = mistake_in(&rules.replace(expression, wrong)).unwrap();
        assert!(found.contains("FAILED") && found.contains("alertname: Sluicegate"), "{wrong}: {found}");
    }
}
