//! Tests acceptances of third-party tools: the latest counts, in its installation, also after a restore.

use platform_core::id::ToolServerName;
use runner_store::{NewAcceptance, Onto};

use crate::database::Database;

crate::on_both!(the_latest_acceptance_counts, acceptances_are_of_one_tool, acceptances_are_backed_up);

pub(crate) fn acceptance(tool: &str, definition: &str) -> NewAcceptance {
    NewAcceptance {
        server: ToolServerName::parse("memory").unwrap(),
        tool: tool.to_owned(),
        digest: format!("digest of {definition}"),
        definition: definition.to_owned(),
        by: "uid:7".to_owned(),
    }
}

async fn the_latest_acceptance_counts(database: Database) {
    let store = database.open().await;
    let [first, second] =
        ["{}", "{\n  \"a\": \"\u{e4} '\"\n}"].map(|definition| acceptance("add", definition));
    assert_eq!(store.accepted_tool(&first.server, "add").await.unwrap(), None);
    store.accept_tool(&first).await.unwrap();
    let found = store.accepted_tool(&first.server, "add").await.unwrap().unwrap();
    assert_eq!(found.acceptance, first);
    store.accept_tool(&second).await.unwrap();
    let found = store.accepted_tool(&first.server, "add").await.unwrap().unwrap();
    assert_eq!(found.acceptance, second);
    assert_eq!(store.accepted_tools().await.unwrap(), [found]);
}

async fn acceptances_are_of_one_tool(database: Database) {
    let store = database.open().await;
    let new = acceptance("add", "{}");
    store.accept_tool(&new).await.unwrap();
    for name in ["Add", "add ", "ad", ""] {
        assert_eq!(store.accepted_tool(&new.server, name).await.unwrap(), None, "{name}");
    }
    let other = ToolServerName::parse("memory2").unwrap();
    assert_eq!(store.accepted_tool(&other, "add").await.unwrap(), None);
}

async fn acceptances_are_backed_up(database: Database) {
    let store = database.open().await;
    store.accept_tool(&acceptance("add", "{}")).await.unwrap();
    let before = store.accepted_tools().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("backup");
    store.backup(&file).await.unwrap();
    store.accept_tool(&acceptance("add", "other")).await.unwrap();
    store.restore(&file, Onto::Anything).await.unwrap();
    assert_eq!(store.accepted_tools().await.unwrap(), before);
}
