//! settings tests that the published schema is that of the code, and that the example shows every setting.

use serde_json::Value;
use tidy::sources::Repository;

#[test]
fn example_shows_every_setting() {
    let repository = Repository::open().expect("the repository is read");
    let schema = repository.text("platform/config/sluice.schema.json").expect("the schema is read");
    let own = format!("{:#}", platform_runtime::settings::Settings::json_schema());
    assert_eq!(schema.trim_end(), own, "run `sluice config schema`");
    let example = repository.text("platform/config/sluice.example.toml").expect("the example is read");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let sections = schema["properties"].as_object().expect("the schema lists sections");
    assert!(sections.len() > 5, "the schema lists sections");
    for (section, settings) in sections {
        check_section(&example, section, settings);
    }
}

/// Checks that `example` shows each setting of a section, and those of the sections in it.
fn check_section(example: &str, section: &str, settings: &Value) {
    // Sections of which there are several, under names that a user chooses.
    let each = &settings["additionalProperties"];
    let settings = if each.is_object() { each } else { settings };
    for (key, setting) in settings["properties"].as_object().expect("a section lists settings") {
        let name = format!("{section}.{key}");
        if setting["properties"].is_object() {
            let headings = [format!("[{name}]"), format!("[{name}."), format!("\".{key}]")];
            let shown = headings.iter().any(|heading| example.contains(heading));
            assert!(shown, "the example does not show [{name}]");
            check_section(example, &name, setting);
        } else {
            assert!(example.contains(&format!("{key} = ")), "the example does not show {name}");
        }
    }
}
