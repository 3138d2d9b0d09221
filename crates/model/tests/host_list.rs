//! Host lists and host files, and what is said about bad ones.

use model::{HOSTS_MAX, HostList, HostName, Node, fold_names, hostfile};
use proptest::prelude::*;

#[test]
fn a_list_names_hosts_slots_and_ranges() {
    assert_eq!(shown("a,b:2,n[01-03]"), "a b:2 n01 n02 n03");
    assert_eq!(
        shown("m[1-3,7]x[0-1]:4"),
        "m1x0:4 m1x1:4 m2x0:4 m2x1:4 m3x0:4 m3x1:4 m7x0:4 m7x1:4"
    );
    assert_eq!(shown("n[08-11], n[098-101]"), "n08 n09 n10 n11 n098 n099 n100 n101");
    assert_eq!(shown("me@n[1-2].example.org:8"), "me@n1.example.org:8 me@n2.example.org:8");
}

#[test]
fn an_ipv6_address_is_one_name_in_brackets() {
    let list = parse("[::1]:2,root@[fe80::1%eth0],[fd00::7]");
    let names: Vec<_> = list.nodes().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["::1", "root@fe80::1%eth0", "fd00::7"]);
    assert_eq!(list.to_string(), "[::1]:2,root@[fe80::1%eth0],[fd00::7]");
}

#[test]
fn a_host_given_twice_is_one_node_with_the_slots_added() {
    assert_eq!(shown("a,b,a"), "a:2 b");
    assert_eq!(shown("a:3,b:1,a,a:2"), "a:6 b:1");
}

#[test]
fn neighbours_fold_in_their_order() {
    let fold = |names: &[&str]| fold_names(names.iter().copied());
    assert_eq!(fold(&["n01", "n02", "n03", "n07", "login"]), "n[01-03,07],login");
    assert_eq!(fold(&["n9", "n10", "n11"]), "n[9-11]");
    assert_eq!(fold(&["n09", "n10", "n1"]), "n[09-10,1]");
    assert_eq!(fold(&["r1n1", "r1n2", "r2n1", "r2n2"]), "r1n[1-2],r2n[1-2]");
    assert_eq!(fold(&["10.0.0.1", "10.0.0.2"]), "10.0.0.[1-2]");
    assert_eq!(fold(&["n2", "n1"]), "n[2,1]");
    assert_eq!(fold(&["::1", "::2"]), "[::1],[::2]");
    assert_eq!(parse("n[1-4]:2,n5").to_string(), "n[1-4]:2,n5");
}

#[test]
fn a_bad_list_is_an_error_that_says_what_and_where() {
    let texts = [
        "",
        "a,,b",
        "a,",
        "a b",
        "-oProxyCommand=x",
        "me@-x",
        "me@",
        "a;b",
        "n[1-",
        "n1]",
        "n[x]",
        "n[1-99999999]",
        "n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]",
        "n[5-3]",
        "n[]",
        "n[1,,2]",
        "n[1234567890123456789]",
        "a:0",
        "a:x",
        "a:",
        "a:9999999",
        "::1",
        "a:1:2",
        "[::g]",
        "[::1]x",
        "é,[1-2]ö!",
        "n[1-2]x[3-4]$[5-6]",
        ":4",
        "a/0",
        "a/ssh:4",
        "a/[1-70000]",
        "[::1]/x",
        "/22",
        "+e",
        "a,+n3",
        "a,^b",
        "a,b, ^c[1-2",
        "^a",
    ];
    let error = |text: &str| format!("{text:?}: {}", text.parse::<HostList>().unwrap_err());
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

#[test]
fn the_number_of_names_is_bounded_over_the_whole_list() {
    let half = HOSTS_MAX / 2;
    let text = format!("a[1-{half}],b[1-{half}]");
    assert_eq!(text.parse::<HostList>().unwrap().nodes().len() as u64, HOSTS_MAX);
    assert!(format!("{text},c").parse::<HostList>().is_err());
}

#[test]
fn a_host_file_has_comments_options_and_repeated_hosts() {
    let text = "# machines\r\n\r\nn[01-02]:4 # fast\nlogin user=me\n\tn01:2 binding=core:2\nlast";
    let file = hostfile::parse(text).unwrap();
    assert_eq!(file.hosts.to_string(), "n01:6,n02:4,me@login,last");
    let warnings: Vec<_> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["line 5: `binding=core:2` is ignored"]);
    assert_eq!(hostfile::parse("").unwrap().hosts, HostList::new());
}

/// `reference/cli-compat.md` §4, §12; DeepSpeed's files are the same.
#[test]
fn lines_are_hydras_or_open_mpis_and_a_file_may_have_both() {
    let text = "\u{feff}a slots=4 max_slots=8\r\nb:2\r\nc slots = 2 # two\nd max-slots=3\nn[1-2] cpus=1\na";
    let nodes = hostfile::parse(text).unwrap().hosts.into_nodes();
    let shown = |node: &Node| format!("{} {:?} {:?}", node.name, node.slots, node.slots_max);
    let expected = [
        "a Some(5) Some(9)",
        "b Some(2) None",
        "c Some(2) None",
        "d Some(3) Some(3)",
        "n1 Some(1) None",
        "n2 Some(1) None",
    ];
    assert_eq!(nodes.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[test]
fn a_host_has_its_own_user_and_port() {
    assert_eq!(shown("me@n[1-2]/2222:4"), "me@n1/2222:4 me@n2/2222:4");
    assert_eq!(shown("localhost/[2201-2202],[::1]/22:3"), "localhost/2201 localhost/2202 ::1/22:3");
    let list = parse("localhost/[2201-2264],me@[fe80::1%eth0]/22:2");
    assert_eq!(list.to_string(), "localhost/[2201-2264],me@[fe80::1%eth0]/22:2");
    let text = "n[1-2] user=me port=2222 slots=3\nyou@a port=22\nb/23 username=i";
    let hosts = hostfile::parse(text).unwrap().hosts;
    assert_eq!(hosts.to_string(), "me@n[1-2]/2222:3,you@a/22,i@b/23");
    let parts = HostName::of("i@b/23");
    assert_eq!(parts, HostName { user: Some("i"), host: "b", port: Some(23) });
    assert_eq!(HostName::of("::1"), HostName { user: None, host: "::1", port: None });
}

#[test]
fn hosts_are_taken_out_wherever_they_stand() {
    assert_eq!(shown("^n2,n[1-3]:2"), "n1:2 n3:2");
    assert_eq!(shown("me@n1,n1/22,n1,n2,^n1"), "n2");
    assert_eq!(shown("me@n1,n1/22,^n1/22"), "me@n1");
    let hosts = hostfile::parse("n[1-4]:2\n^n[2-3]\n").unwrap().hosts;
    assert_eq!(hosts.to_string(), "n[1,4]:2");
}

#[test]
fn a_bad_host_file_is_an_error_that_names_line_and_column() {
    let texts = [
        "a\nb 4",
        "a slots",
        "a slots=",
        "a = 4",
        "a slots=0",
        "a slots=4 cpus=4",
        "a:2 slots=4",
        "a slots=4 max-slots=2",
        "me@a user=you",
        "a/22 port=23",
        "a port=65536",
        "a rack=3",
        "+e2 slots=1",
        "a\n^b",
        "^a slots=1\na",
        "a\n  n[1-x]",
        "a,b",
        "a:0",
        "a user=-x",
        "\n\na:1 a:2",
        "n[1-2",
        "a \"b\"",
    ];
    let error = |text: &str| format!("{text:?}: {}", hostfile::parse(text).unwrap_err());
    insta::assert_snapshot!(texts.map(error).join("\n"));
}

proptest! {
    #[test]
    fn a_list_reads_back_as_it_is_written(hosts in prop::collection::vec(host(), 1..40)) {
        let list = listed(hosts);
        prop_assert_eq!(parse(&list.to_string()), list);
    }

    #[test]
    fn folded_names_expand_to_the_same_names(names in prop::collection::vec("[a-c]{0,1}[0-9]{1,3}[a-b]{0,1}[0-9]{0,2}", 1..40)) {
        let unique = listed(names.iter().map(|name| (name.clone(), None)).collect());
        let names: Vec<_> = unique.nodes().iter().map(|node| node.name.clone()).collect();
        let unique = names.iter().map(|name| (name.clone(), None)).collect();
        let folded = fold_names(names.iter().map(String::as_str));
        prop_assert_eq!(parse(&folded), listed(unique));
    }

    #[test]
    fn a_folded_list_is_folded_already(prefix in "[a-z]{1,4}", first in 0_u32..300, more in 1_u32..300, width in 1_usize..6) {
        let text = format!("{prefix}[{first:0width$}-{:0width$}]", first + more);
        prop_assert_eq!(parse(&text).to_string(), text);
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]:,@%/^+=a0-9é \\-]{0,30}") {
        if let Ok(list) = text.parse::<HostList>() {
            prop_assert_eq!(parse(&list.to_string()), list);
        }
        let _ = hostfile::parse(&text);
    }
}

fn host() -> impl Strategy<Value = (String, Option<u32>)> {
    let name = prop_oneof![
        "[a-c][0-9]{0,2}",
        "u@[a-b]{1,2}[0-9]x[0-9]",
        "a/2[0-9]{1,3}",
        Just("::1".to_string()),
        Just("u@::1/22".to_string()),
    ];
    (name, prop::option::of(1_u32..4))
}

fn listed(hosts: Vec<(String, Option<u32>)>) -> HostList {
    let mut list = HostList::new();
    for (name, slots) in hosts {
        list.add(Node { name, slots, slots_max: None });
    }
    list
}

fn parse(text: &str) -> HostList {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(text: &str) -> String {
    let show = |node: &Node| match node.slots {
        Some(slots) => format!("{}:{slots}", node.name),
        None => node.name.clone(),
    };
    parse(text).nodes().iter().map(show).collect::<Vec<_>>().join(" ")
}
