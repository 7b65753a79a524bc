//! rewrite replaces accepted commits if their message or names have effects. Their files stay as they were judged.

use std::collections::BTreeMap;

use crate::{
    error::Error,
    harmless::harmless_commit,
    judge::{AcceptedWork, ObjectReader, SizedObject},
    quarantine::Quarantine,
};

impl Quarantine {
    /// Returns `work` with commits that have no effects. The same work has the same commits each time.
    pub(crate) async fn make_harmless(&self, work: AcceptedWork) -> Result<AcceptedWork, Error> {
        let history: ObjectReader<'_> = self.history();
        let commits = history.commits(work.start(), work.tip(), work.commits()).await?;
        // Parents first.
        let ids: Vec<&str> = commits.iter().rev().map(|ancestry| ancestry.commit.as_str()).collect();
        let found: Vec<SizedObject> = history.sizes(&ids).await?.into_iter().flatten().collect();
        let read: Vec<&SizedObject> = found.iter().collect();
        let contents = history.contents(&read, |_commit, content| content.to_vec()).await?;
        let mut replaced = BTreeMap::new();
        for (commit, content) in found.into_iter().zip(contents) {
            if let Some(harmless) = harmless_commit(&content, &replaced) {
                replaced.insert(commit.id, self.store("commit", &harmless).await?);
            }
        }
        match replaced.remove(work.tip()) {
            Some(tip) => {
                self.set_tip(&tip).await?;
                Ok(work.ending_with(tip))
            }
            None => Ok(work),
        }
    }
}
