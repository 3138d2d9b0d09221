//! When `--redundancy` has a meaning.

use model::Route;

/// Redundant links where none can serve.
#[derive(Debug, thiserror::Error)]
#[error(
    "`--redundancy {0}` without a `--route`: a node is lost with its link to the agent that started it, \
     whatever other links it has"
)]
pub(crate) struct RedundancyError(u8);

impl RedundancyError {
    pub(crate) const HINT: &str = "add a route, such as `--route kary:16`";
}

/// Refuses redundant links beside those of the spawn tree alone.
pub(crate) fn check_redundancy(
    route: Option<Route>,
    redundancy: u8,
) -> Result<(), RedundancyError> {
    if redundancy > 0 && route.is_none() {
        return Err(RedundancyError(redundancy));
    }
    Ok(())
}
