//! Lists the resources that are recorded for a run and may exist.

use runner_store::{Resource, ResourceChange, ResourceKind, ResourceState};

/// Resources recorded for a run that may exist.
#[derive(Debug, Clone, Default)]
pub(super) struct RunResources(Vec<ResourceChange>);

impl RunResources {
    /// Returns the resources in `rows` that may exist.
    pub(super) fn from_rows(rows: &[Resource]) -> Self {
        let may_exist =
            rows.iter().filter(|row| matches!(row.stage, ResourceState::Wanted | ResourceState::Made));
        let to_change = |row: &Resource| ResourceChange::wanted(row.kind, row.name.as_str()).to(row.stage);
        Self(may_exist.map(to_change).collect())
    }

    /// Returns the latest resource of a kind.
    pub(super) fn last(&self, kind: ResourceKind) -> Option<&ResourceChange> {
        self.0.iter().rev().find(|resource| resource.kind == kind)
    }

    /// Returns all resources of `kinds`.
    pub(super) fn all(&self, kinds: &[ResourceKind]) -> Vec<ResourceChange> {
        self.0.iter().filter(|resource| kinds.contains(&resource.kind)).cloned().collect()
    }

    /// Applies `changes` that the store has recorded.
    pub(super) fn apply(&mut self, changes: &[ResourceChange]) {
        for change in changes {
            self.0.retain(|resource| (resource.kind, &resource.name) != (change.kind, &change.name));
            if matches!(change.stage, ResourceState::Wanted | ResourceState::Made) {
                self.0.push(change.clone());
            }
        }
    }

    /// Returns changes that mark every wanted resource as made.
    pub(super) fn mark_made(&self) -> Vec<ResourceChange> {
        let wanted = self.0.iter().filter(|resource| resource.stage == ResourceState::Wanted);
        wanted.map(|resource| resource.to(ResourceState::Made)).collect()
    }
}
