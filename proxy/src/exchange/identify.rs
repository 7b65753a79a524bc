//! identify: who is calling. Nothing the caller says has a part in it.

use std::sync::Arc;

use platform_core::record::Identity;

use crate::run::Run;

/// Who is calling, and how we know.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) run: Arc<Run>,
    pub(super) identity: Identity,
}

/// The caller on a run's own socket is that run.
pub(super) const fn by_socket(run: Arc<Run>) -> Caller {
    Caller { run, identity: Identity::Socket }
}
