//! Tests that a managed gateway, and the mirror of a repository, are never leftovers.

use super::*;

fn gateway(name: &str, also: &[(&str, &str)]) -> FoundResource {
    container(name, &[(label::GATEWAY, "g"), (label::SETUP, "s")], also)
}

fn mirror(name: &str, also: &[(&str, &str)]) -> FoundResource {
    container(name, &[(label::REPOSITORY, "web")], also)
}

fn container(name: &str, labels: &[(&str, &str)], also: &[(&str, &str)]) -> FoundResource {
    let labels = [(label::INSTALLATION, "here")].iter().chain(labels);
    let labels = labels.chain(also).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    FoundResource::Container(Listed {
        id: "id".to_owned(),
        name: name.to_owned(),
        labels: labels.collect(),
        created: long_ago(),
        mounts: vec![],
    })
}

#[test]
fn a_gateway_stays_whatever_is_asked() {
    let found = gateway("sluice-here-gateway-g", &[]);
    for unknown in [Leftovers::Leave, Leftovers::Remove] {
        let mode = Mode { unknown, ..Mode::default() };
        let decision = decide(&found, None, mode);
        assert_eq!(decision, Decision::Keep(KeepReason::Gateway("g".to_owned())));
        assert_eq!(decision.to_string(), "it is gateway g: `sluice gateway down g` ends it");
    }
}

#[test]
fn a_false_gateway_label_needs_a_person() {
    let run = (label::RUN_ID, "r1");
    for found in [gateway("sluice-here-gateway-other", &[]), gateway("sluice-here-gateway-g", &[run])] {
        let decision = decide(&found, None, Mode::default());
        assert_eq!(decision, Decision::Unknown(UnknownReason::OtherName));
    }
}

#[test]
fn a_mirror_stays_whatever_is_asked() {
    let found = mirror("sluice-here-git-sync-web", &[]);
    for unknown in [Leftovers::Leave, Leftovers::Remove] {
        let decision = decide(&found, None, Mode { unknown, ..Mode::default() });
        assert_eq!(decision, Decision::Keep(KeepReason::Repository("web".to_owned())));
        assert_eq!(decision.to_string(), "it mirrors repository web: `sluice repo rm web` ends it");
    }
    let run = (label::RUN_ID, "r1");
    for found in [mirror("sluice-here-git-sync-other", &[]), mirror("sluice-here-git-sync-web", &[run])] {
        assert_eq!(decide(&found, None, Mode::default()), Decision::Unknown(UnknownReason::OtherName));
    }
}
