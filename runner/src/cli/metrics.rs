//! `sluice metrics`: the proxy's metrics, as Prometheus reads them.

use std::io::{self, Write};

use super::{Context, Error, exit::Exit};
use crate::data_plane::DataPlane;

/// Prints them.
pub(super) async fn metrics(context: &Context) -> Result<Exit, Error> {
    let text = DataPlane::at(&context.settings.proxy.control_socket()).metrics().await?;
    io::stdout().write_all(text.as_bytes())?;
    Ok(Exit::Success)
}
