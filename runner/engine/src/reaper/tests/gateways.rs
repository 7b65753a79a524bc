//! Tests that a managed gateway is never a leftover.

use super::*;

fn gateway(name: &str, also: &[(&str, &str)]) -> FoundResource {
    let labels = [(label::INSTALLATION, "here"), (label::GATEWAY, "g"), (label::SETUP, "s")];
    let labels = labels.iter().chain(also).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
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
