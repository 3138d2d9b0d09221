//! Who shares a node with whom: `PMI_process_mapping` (`reference/pmi1.md` §8).

/// The ranks that share a node with `rank` among `size`, itself too; nothing if the mapping does not say.
///
/// A mapping that is too short begins again where its first node is 0, as MPICH reads those of old Hydras.
pub fn neighbours(mapping: &str, rank: u32, size: u32) -> Option<Vec<u32>> {
    let blocks = blocks(mapping)?;
    let again = blocks.iter().position(|block| block[0] == 0).unwrap_or(0);
    let all = blocks.iter().chain(blocks[again..].iter().cycle());
    let nodes = all.flat_map(|&[first, count, tasks]| {
        (first..first.saturating_add(count)).flat_map(move |node| (0..tasks).map(move |_| node))
    });
    let nodes: Vec<u32> = nodes.take(size as usize).collect();
    let own = *nodes.get(rank as usize)?;
    Some((0..).zip(nodes).filter(|(_, node)| *node == own).map(|(rank, _)| rank).collect())
}

/// First node, nodes, and tasks on each, of every block.
fn blocks(mapping: &str) -> Option<Vec<[u32; 3]>> {
    let text: String = mapping.chars().filter(|c| !c.is_whitespace()).collect();
    let blocks = text.strip_prefix("(vector,(")?.strip_suffix("))")?.split("),(");
    let blocks = blocks.map(|block| {
        let numbers: Option<Vec<u32>> = block.split(',').map(|it| it.parse().ok()).collect();
        let block: [u32; 3] = numbers?.try_into().ok()?;
        // One without tasks, begun again and again, would never come to an end.
        (block[1] > 0 && block[2] > 0).then_some(block)
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_node_are_found_in_blocks_and_in_turn() {
        assert_eq!(neighbours("(vector,(0,2,4))", 5, 8), Some(vec![4, 5, 6, 7]));
        assert_eq!(neighbours("(vector,(0,3,1),(0,2,1))", 3, 5), Some(vec![0, 3]));
        assert_eq!(neighbours("(vector, (7,1,2),(0,1,1))", 2, 3), Some(vec![2]));
    }

    #[test]
    fn a_mapping_that_is_too_short_begins_again() {
        assert_eq!(neighbours("(vector,(0,1,1))", 1, 2), Some(vec![0, 1]));
        assert_eq!(neighbours("(vector,(1,1,1),(0,2,1))", 3, 5), Some(vec![1, 3]));
    }

    #[test]
    fn what_is_no_mapping_says_nothing() {
        for text in ["", "(vector)", "(vector,(0,1))", "(vector,(0,1,0))", "(vector,(0,1,x))"] {
            assert_eq!(neighbours(text, 0, 2), None, "{text}");
        }
        assert_eq!(neighbours("(vector,(0,1,4))", 4, 4), None);
    }
}
