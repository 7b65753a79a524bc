//! Tests that the container of a tool server stays as long as the process that started it.

use super::*;

fn server(name: &str, labels: &[(&str, &str)]) -> FoundResource {
    let labels = [(label::INSTALLATION, "here"), (label::TOOL_SERVER, "memory")].iter().chain(labels);
    FoundResource::Container(Listed {
        id: "id".to_owned(),
        name: name.to_owned(),
        labels: labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        created: SystemTime::now(),
        mounts: vec![],
    })
}

#[test]
fn a_tool_server_lives_as_long_as_its_process() {
    let found = |owner| server("sluice-here-tools-memory-0a1b2c3d", &[(label::OWNER, owner)]);
    let decision = decide(&found("gone"), None, Mode::default());
    assert_eq!(decision, Decision::Remove(RemovalReason::OwnerGone));
    assert_eq!(decision.to_string(), "it is a tool server, and the process that started it is gone");
    for unknown in [Leftovers::Leave, Leftovers::Remove] {
        let decision = decide(&found("alive"), None, Mode { unknown, ..Mode::default() });
        assert_eq!(decision, Decision::Keep(KeepReason::ToolServer("memory".to_owned())));
    }
}

#[test]
fn a_false_label_of_a_tool_server_needs_a_person() {
    let owner = (label::OWNER, "gone");
    for found in [
        server("sluice-here-tools-other-0a1b2c3d", &[owner]),
        server("sluice-there-tools-memory-0a1b2c3d", &[owner]),
        server("sluice-here-tools-memory-0a1b2c3d", &[]),
        server("sluice-here-tools-memory-0a1b2c3d", &[owner, (label::RUN_ID, "r1")]),
    ] {
        assert_eq!(decide(&found, None, Mode::default()), Decision::Unknown(UnknownReason::OtherName));
    }
}
