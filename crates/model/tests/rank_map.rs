//! Rank maps, and what is said about bad ones.

use model::{HostList, Rank, RankMap};
use proptest::prelude::*;

#[test]
fn each_rank_goes_to_the_host_of_its_number() {
    assert_eq!(placed("a,b,c", "1,1,2,2", false), Ok("b b c c".into()));
    assert_eq!(placed("a,b,c", "(1,2,2)", false), Ok("b b c c".into()));
    assert_eq!(placed("a,b,c", "(vector,(0,2,1),(1,1,2))", false), Ok("a b b b".into()));
    assert_eq!(placed("a,b,c", " ( vector , 1 , (0,1, 3) ) ", false), Ok("b a a a".into()));
    assert_eq!(placed("a,b,c", "[(0,2,1)]x2,2", false), Ok("a b a b c".into()));
    assert_eq!(placed("a,b,c", "[2,0]x2", false), Ok("c a c a".into()));
}

#[test]
fn a_host_that_is_not_there_or_is_full_is_named() {
    let misfit = |hosts, map| placed(hosts, map, false).unwrap_err();
    assert_eq!(misfit("a,b", "0,1,7,2"), "host 7 gets ranks, and there are 2 hosts, from 0");
    assert_eq!(misfit("a", "0,1"), "host 1 gets ranks, and there is 1 host, from 0");
    let full = "3 ranks go to `b`, which has 2 slots; `--oversubscribe` allows more";
    assert_eq!(misfit("a:4,b:2", "0,1,1,0,1"), full);
    assert_eq!(placed("a:4,b:2", "0,1,1,0,1", true), Ok("a b b a b".into()));
}

#[test]
fn a_bad_rank_map_is_an_error_that_names_the_column() {
    let texts = [
        "",
        "x",
        "0,",
        "0 1",
        "0,-1",
        "(0,2)",
        "(0,0,1)",
        "(0,2,é)",
        "(vector,(0,2,1)",
        "(vector (0,2,1))",
        "[0,1]",
        "[0,1]x",
        "[0,1]x0",
        "[[0]x2]x2",
        "[0,1]x1048576",
        "99999999999",
        "(0,65536,65536)",
        "(4294967295,2,1)",
    ];
    let error = |text: &str| format!("{text:?}: {}", text.parse::<RankMap>().unwrap_err());
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

proptest! {
    #[test]
    fn any_list_of_numbers_places_each_rank_once(nodes in prop::collection::vec(0_u32..6, 1..64)) {
        let names: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
        let text = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        prop_assert_eq!(placed("n[0-5]", &text, false), Ok(names.join(" ")));
    }

    #[test]
    fn what_programs_read_as_their_mapping_is_the_map(nodes in prop::collection::vec(0_u32..4, 1..64)) {
        // All of the first nodes, so that none is left out.
        let text = (0..4).chain(nodes).map(|node| node.to_string()).collect::<Vec<_>>().join(",");
        let hosts: HostList = "n[0-3]".parse().unwrap();
        let place = |map: &str| map.parse::<RankMap>().unwrap().place(hosts.nodes(), false);
        let placement = place(&text).unwrap();
        let mapping = placement.map.process_mapping().unwrap();
        prop_assert_eq!(place(&mapping).unwrap(), placement);
    }

    #[test]
    fn no_text_panics(text in "[(]?(vector)?[(),x0-9é \\[\\]]{0,30}") {
        let _ = text.parse::<RankMap>();
    }
}

/// The hosts of all ranks in order.
fn placed(hosts: &str, map: &str, oversubscribe: bool) -> Result<String, String> {
    let hosts: HostList = hosts.parse().expect("the list is right");
    let map: RankMap = map.parse().expect("the map is right");
    let placement = map.place(hosts.nodes(), oversubscribe).map_err(|error| error.to_string())?;
    let name =
        |rank| &placement.nodes[placement.map.node_of(Rank(rank)).expect("a task").0 as usize].name;
    Ok((0..placement.map.len()).map(name).cloned().collect::<Vec<_>>().join(" "))
}
