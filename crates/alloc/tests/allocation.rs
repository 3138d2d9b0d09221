//! Allocations from what users give, and what is said when they cannot be made.

use std::error::Error;
use std::fs;
use std::path::Path;

use alloc_hosts::{Allocation, Source, allocate, rank_file, this_host_name};
use model::Request;

#[test]
fn a_list_is_an_allocation_in_its_order() {
    let allocation = allocate(Some("b:2,a,b"), None).unwrap();
    assert_eq!(names(&allocation), ["b", "a"]);
    assert_eq!(allocation.source, Source::Hosts);
}

#[test]
fn a_host_file_is_an_allocation_with_its_warnings() {
    let file = file_with(b"n[1-2]:2 binding=core\n# done");
    let allocation = allocate(None, Some(file.path())).unwrap();
    assert_eq!(names(&allocation), ["n1", "n2"]);
    assert_eq!(allocation.warnings.len(), 1);
}

#[test]
fn without_anything_the_allocation_is_this_host() {
    let allocation = allocate(None, None).unwrap();
    assert_eq!(names(&allocation), [this_host_name()]);
    let slots = allocation.nodes[0].slots.unwrap();
    assert_eq!(allocation.place(&Request::default()).unwrap().map.len(), slots);
}

#[test]
fn the_cores_of_this_host_limit_no_one_who_says_how_many() {
    let allocation = Allocation::this_host();
    assert_eq!(allocation.place(&tasks(512)).unwrap().map.len(), 512);
    assert!(allocation.place(&Request { per_node: Some(2), ..tasks(3) }).is_err());
}

#[test]
fn slots_that_the_user_gave_do_limit() {
    let allocation = Allocation::from_hosts("a:2").unwrap();
    assert!(allocation.place(&tasks(3)).is_err());
}

#[test]
fn errors_name_the_file_and_the_place() {
    assert_eq!(
        chain(&allocate(Some("a,b:x"), None).unwrap_err()),
        "use the hosts given to `--hosts`: host list, column 5: `x` is not a number of slots from 1 to 1048576"
    );
    assert_eq!(
        chain(&allocate(Some("a"), Some(Path::new("f"))).unwrap_err()),
        "use only one of `--hosts` and `--hostfile`"
    );
    assert_eq!(
        chain(&allocate(None, Some(Path::new("/no/such/file"))).unwrap_err()),
        "read host file `/no/such/file`: No such file or directory (os error 2)"
    );
    assert_eq!(
        file_error(b"a\nb 4\n"),
        "use host file `FILE`: line 2, column 3: unexpected `4` after the host; slots are written `host:4` or `slots=4`"
    );
    assert_eq!(file_error(b"a\n\nb\xff\n"), "host file `FILE`, line 3: not UTF-8 text");
    assert_eq!(file_error(b"# a\n\n"), "host file `FILE` names no hosts");
}

#[test]
fn hosts_are_left_out_by_name_and_one_that_is_not_there_is_a_warning() {
    let allocation = Allocation::from_hosts("n[1-3]:2,me@n4/22").unwrap();
    let left = allocation.clone().exclude("n2,n4,n[8-9]").unwrap();
    assert_eq!(names(&left), ["n1", "n3"]);
    assert_eq!(left.warnings, ["`--exclude`: not among the hosts: n[8-9]"]);
    let error = allocation.exclude("n[1-4]").unwrap_err();
    assert_eq!(error.to_string(), "`--exclude n[1-4]` leaves no host");
}

#[test]
fn hosts_are_left_out_by_a_host_file_that_may_be_empty() {
    let allocation = Allocation::from_hosts("n[1-3]:2").unwrap();
    let exclude = |bytes| {
        let file = file_with(bytes);
        let path = file.path().to_str().unwrap();
        let left = allocation.clone().exclude(&format!("@{path}"));
        left.map_err(|error| chain(&error).replace(path, "FILE"))
    };
    let left = exclude(b"# under repair\nn[2-3]\n^n3\nn9\n").unwrap();
    assert_eq!(names(&left), ["n1", "n3"]);
    assert_eq!(left.warnings, ["`--exclude`: not among the hosts: n9"]);
    assert_eq!(names(&exclude(b"# nothing\n").unwrap()), ["n1", "n2", "n3"]);
    assert_eq!(exclude(b"n[1-3]\n").unwrap_err(), "`--exclude @FILE` leaves no host");
    let error = exclude(b"n1\nn 2\n").unwrap_err();
    assert!(error.starts_with("use host file `FILE`: line 2, column 3: "), "{error}");
    let error = allocation.clone().exclude("@/no/such").unwrap_err();
    assert!(chain(&error).starts_with("read host file `/no/such`: "));
}

#[test]
fn a_rank_file_has_hosts_of_its_own() {
    let file = file_with(b"rank 1=a\nrank 0=b\n");
    let ranks = rank_file(file.path()).unwrap();
    assert_eq!(names(&Allocation::from_rank_file(&ranks)), ["b", "a"]);
    let error = rank_file(file_with(b"# nothing\n").path()).unwrap_err();
    assert!(error.to_string().ends_with("places no ranks"));
}

#[test]
fn a_file_without_an_end_is_an_error() {
    let error = allocate(None, Some(Path::new("/dev/zero"))).unwrap_err();
    assert_eq!(error.to_string(), "host file `/dev/zero` has more than 64 MiB");
}

fn tasks(n: u32) -> Request {
    Request { tasks: Some(n), ..Request::default() }
}

fn names(allocation: &Allocation) -> Vec<&str> {
    allocation.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn file_with(content: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), content).expect("room for it");
    file
}

fn file_error(content: &[u8]) -> String {
    let file = file_with(content);
    let error = allocate(None, Some(file.path())).expect_err("the file is bad");
    chain(&error).replace(&file.path().display().to_string(), "FILE")
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
