//! Settings from environment variables. An empty variable says nothing.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::ConfigError;
use super::{Layer, Verbosity, values};

/// Reads the variables through `read`, so that tests need not touch the process.
pub fn layer(read: impl Fn(&str) -> Option<OsString>) -> Result<Layer, ConfigError> {
    let raw = |variable: &'static str| read(variable).filter(|value| !value.is_empty());
    let mut layer = Layer { home: raw("AGENTCRAFT_HOME").map(PathBuf::from), ..Layer::default() };
    layer.backend = one(&raw, "AGENTCRAFT_BACKEND", values::backend)?;
    layer.profile = one(&raw, "AGENTCRAFT_PROFILE", values::profile)?;
    layer.port = one(&raw, "AGENTCRAFT_PORT", values::port)?;
    layer.workers = one(&raw, "AGENTCRAFT_WORKERS", values::workers)?;
    layer.merge_style = one(&raw, "AGENTCRAFT_MERGE_STYLE", values::merge_style)?;
    layer.sign_merges = one(&raw, "AGENTCRAFT_SIGN_MERGES", values::truth)?;
    layer.user_name = one(&raw, "AGENTCRAFT_USER_NAME", values::user_name)?;
    layer.notify = one(&raw, "AGENTCRAFT_NOTIFY", values::truth)?;
    layer.speed = one(&raw, "AGENTCRAFT_SIM_SPEED", values::speed)?;
    layer.verbosity = one(&raw, "AGENTCRAFT_DEBUG", values::truth)?.map(|debug| match debug {
        true => Verbosity::Debug,
        false => Verbosity::Normal,
    });
    // By its convention the variable counts when it is there and not empty, whatever it says.
    layer.color = raw("NO_COLOR").map(|_| false);
    Ok(layer)
}

fn one<T>(
    raw: &impl Fn(&'static str) -> Option<OsString>,
    variable: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = raw(variable) else { return Ok(None) };
    let text = value.to_str().ok_or_else(|| ConfigError::Variable { variable, problem: "is not text".to_owned() })?;
    parse(text).map(Some).map_err(|problem| ConfigError::Variable { variable, problem })
}
