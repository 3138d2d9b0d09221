//! The names of spawn trees.

use std::time::Duration;

use model::{Route, Tree};
use proptest::prelude::*;

#[test]
fn every_tree_has_a_name() {
    let parse = |text: &str| text.parse::<Tree>().unwrap();
    assert_eq!(parse("flat"), Tree::Flat);
    assert_eq!(parse("chain"), Tree::Chain);
    assert_eq!(parse("kary:16"), Tree::Kary(16));
    assert_eq!(parse("binomial"), Tree::Binomial);
    assert_eq!(parse("two-level"), Tree::TwoLevel);
    assert_eq!(parse("greedy"), Tree::greedy());
    assert_eq!(parse("adaptive"), Tree::adaptive());
    assert_eq!(Tree::adaptive().to_string(), "adaptive");
    assert_eq!(parse("route:binomial"), Tree::Routed(Route::Binomial));
    assert_eq!(Tree::Routed(Route::Kary(2)).to_string(), "route:kary:2");
    let scela = Tree::Scela { cores: 8, depth_max: 3, connections_max: 128 };
    assert_eq!((parse("scela:8"), scela.to_string().as_str()), (scela, "scela:8,3,128"));
    let greedy =
        Tree::Greedy { latency: Duration::from_millis(1028), gap: Duration::from_millis(28) };
    assert_eq!(parse("greedy:1028,28"), greedy);
    assert_eq!(parse("greedy:1.028s,28000us"), greedy);
    assert_eq!(parse("greedy:1028ms,28.0"), greedy);
    assert_eq!(greedy.to_string(), "greedy:1028ms,28ms");
}

#[test]
fn errors_say_what_was_read_and_what_would_be_right() {
    let texts = [
        "",
        "star",
        "flat:3",
        "adaptive:5",
        "kary",
        "kary:0",
        "kary:65536",
        "greedy:5",
        "greedy:5,x",
        "greedy:.5s,7h",
        "greedy:3601s,7",
        "greedy:0.1ns,7",
        "route:same",
        "scela",
        "scela:0",
        "scela:8,300",
    ];
    let error = |text: &str| format!("{text:?}: {}", text.parse::<Tree>().unwrap_err());
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

proptest! {
    #[test]
    fn a_tree_reads_its_own_name_back(latency in 0_u64..=3_600_000_000_000, gap in 0_u64..9_999, k in 1..=u16::MAX) {
        let nanos = Duration::from_nanos;
        let greedy = Tree::Greedy { latency: nanos(latency), gap: nanos(gap) };
        let scela = Tree::Scela { cores: k, depth_max: 3, connections_max: k };
        for tree in [greedy, Tree::Kary(k), Tree::Routed(Route::Kary(k)), scela] {
            prop_assert_eq!(tree.to_string().parse::<Tree>().unwrap(), tree);
        }
    }
}
