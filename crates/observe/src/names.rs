//! What agents are called.

use model::AgentId;

/// The host name of an agent's node.
pub fn agent_name(names: &[String], agent: AgentId) -> String {
    let index = agent.node().and_then(|node| usize::try_from(node.0).ok());
    match index.and_then(|index| names.get(index)) {
        Some(name) => name.clone(),
        None => "the front end".to_owned(),
    }
}
