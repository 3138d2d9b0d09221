//! Rank files, and what is said about bad ones.

use model::{HostList, NodeId, Rank, rankfile};
use proptest::prelude::*;

#[test]
fn each_rank_goes_where_its_line_says() {
    let text =
        "# places\r\nrank 2=b slot=0\nrank 0 = c slot = 1 # last\n\nrank 1=a\nrank 3=c slot=0";
    assert_eq!(placed("a:2,b:1,x:4,c:2", text, false), Ok("c a b c".into()));
    assert_eq!(placed("me@a:2,b/22,c", text, false), Ok("c me@a b/22 c".into()));
}

#[test]
fn the_hosts_of_the_file_are_those_of_its_ranks_in_order() {
    let file = rankfile::parse("rank 1=b\nrank 0=[::1]/22\nrank 2=[::1]/22").unwrap();
    let names: Vec<_> = file.hosts().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["::1/22", "b"]);
    let placement = file.place(file.hosts(), false).unwrap();
    assert_eq!(placement.map.node_of(Rank(2)), Some(NodeId(0)));
}

#[test]
fn two_ranks_of_one_slot_and_too_many_are_for_those_who_oversubscribe() {
    let twice = "rank 0=a slot=1\nrank 1=a slot=1\nrank 2=a";
    assert_eq!(placed("a:2", twice, true), Ok("a a a".into()));
    let error =
        "line 2: slot 1 of `a` has rank 0 already, in line 1; `--oversubscribe` allows that";
    assert_eq!(placed("a:2", twice, false), Err(error.into()));
    let many = "rank 0=a\nrank 1=a\nrank 2=a";
    let error = "line 3: `a` has 2 slots, and the lines before have filled them; \
                 `--oversubscribe` allows more";
    assert_eq!(placed("a:2", many, false), Err(error.into()));
    assert_eq!(placed("a", many, false), Ok("a a a".into()), "nobody said how much room there is");
}

#[test]
fn a_bad_rank_file_is_an_error_that_names_the_line() {
    let texts = [
        "rank 0",
        "0=a",
        "rank 0=a slot",
        "rank 0=a core=1",
        "rank x=a",
        "rank -1=a",
        "rank 0=a:2",
        "rank 0=n[1-2]",
        "rank 0=-a",
        "rank 0=+n0 slot=0",
        "rank 0=a slot=0:1",
        "rank 0=a slot=0-3",
        "rank 0=a slot=p1",
        "rank 0=a\n\nrank 0=b",
        "rank 0=a\nrank 3=b",
        "rank 0=z",
        "rank 0=a\nrank 1=a slot=2",
    ];
    let error = |text: &str| format!("{text:?}: {}", placed("a:2,b", text, false).unwrap_err());
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

proptest! {
    #[test]
    fn any_placement_is_the_one_of_its_lines(nodes in prop::collection::vec(0_u32..6, 1..60)) {
        let line = |(rank, node): (usize, &u32)| format!("rank {rank}=n{node}\n");
        let text: String = nodes.iter().enumerate().map(line).collect();
        let names: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
        prop_assert_eq!(placed("n[0-5]", &text, false), Ok(names.join(" ")));
    }

    #[test]
    fn no_text_panics(text in "(rank|slot|[=:# a0-9é\n-]){0,30}") {
        let _ = rankfile::parse(&text);
    }
}

/// The hosts of all ranks in order.
fn placed(hosts: &str, text: &str, oversubscribe: bool) -> Result<String, String> {
    let hosts: HostList = hosts.parse().expect("the list is right");
    let file = rankfile::parse(text).map_err(|error| error.to_string())?;
    let placement = file.place(hosts.nodes(), oversubscribe).map_err(|error| error.to_string())?;
    let name =
        |rank| &placement.nodes[placement.map.node_of(Rank(rank)).expect("a task").0 as usize].name;
    Ok((0..placement.map.len()).map(name).cloned().collect::<Vec<_>>().join(" "))
}
