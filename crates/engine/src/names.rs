//! Host names on their way down the tree: folded as a host list.

use alloc::string::String;
use alloc::vec::Vec;

use model::{HostList, HostListError, fold_names};

pub(crate) fn fold(names: &[String]) -> String {
    fold_names(names.iter().map(String::as_str))
}

/// The names of a folded list, which must be `count`.
pub(crate) fn unfold(folded: &str, count: u64) -> Result<Vec<String>, NamesError> {
    if folded.is_empty() && count == 0 {
        return Ok(Vec::new());
    }
    let list: HostList = folded.parse().map_err(NamesError::List)?;
    if list.nodes().len() as u64 != count {
        return Err(NamesError::Count);
    }
    Ok(list.into_nodes().into_iter().map(|node| node.name).collect())
}

/// A parent's list of names is not what it must be.
#[derive(Debug)]
pub(crate) enum NamesError {
    #[expect(dead_code, reason = "seen in a debugger only: a peer's fault ends the agent")]
    List(HostListError),
    Count,
}
