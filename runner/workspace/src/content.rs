//! Writes the content with which a workspace is handed to its agent.

use std::path::Path;

use runner_files::Stage;
use runner_model::{behaviour::BehaviourFiles, conversation::Message};

use super::{behaviour, conversation, error::Error};

/// Content of a workspace when its agent starts.
#[derive(Debug, Default)]
pub struct InitialContent {
    /// Conversation, with the question as its last message.
    pub conversation: Vec<Message>,
    /// Behaviour files of the agent.
    pub behaviour: BehaviourFiles,
    /// Files that the run begins with.
    pub files: Option<Stage>,
}

impl InitialContent {
    /// Writes the content into `tree`. The container's first process may be running already: an entry in the way is an
    /// error, and no link is followed.
    pub(super) fn write(&self, tree: &Path) -> Result<(), Error> {
        conversation::write(tree, &self.conversation)?;
        if !self.behaviour.is_empty() {
            behaviour::write(tree, &self.behaviour)?;
        }
        if let Some(files) = &self.files {
            files.unpack(tree)?;
        }
        Ok(())
    }
}
