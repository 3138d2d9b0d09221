//! A program that was started alone is a job of one.

use client::{Endpoint, Error, Outcome, Pmi1, Pmi2};

#[test]
fn all_of_pmi_2_works_alone() {
    let pmi = Pmi2::open(&Endpoint::Alone).unwrap();
    let place = pmi.place();
    assert_eq!((place.rank, place.size, place.appnum, &place.spawner), (0, 1, None, &None));
    let job = pmi.job_id().unwrap();
    pmi.put(b"key", b"a value; with = and blanks").unwrap();
    pmi.fence().unwrap();
    let value = pmi.get(Some(&job), Some(0), b"key").unwrap();
    assert_eq!(value.unwrap(), b"a value; with = and blanks");
    assert_eq!(pmi.get(None, None, b"nobody-puts-this").unwrap(), None);
    let ring = pmi.ring(b"me").unwrap();
    assert_eq!((ring.number, &*ring.left, &*ring.right), (0, &b"me"[..], &b"me"[..]));
    pmi.put_node_attribute(b"segment", b"/dev/shm/x").unwrap();
    assert_eq!(pmi.node_attribute(b"segment", true).unwrap().unwrap(), b"/dev/shm/x");
    let mapping = pmi.job_attribute(b"PMI_process_mapping").unwrap().unwrap();
    assert_eq!(mapping, b"(vector,(0,1,1))");
    assert!(matches!(pmi.publish(b"ocean", b"port"), Err(Error::Refused { .. })));
    let fence = pmi.begin_fence().unwrap();
    assert_eq!(pmi.wait(fence).unwrap(), Outcome::Met);
    assert_eq!(pmi.allgather(b"mine", 4).unwrap(), [b"mine"]);
    let begun = pmi.begin_allgather(b"", 0).unwrap();
    assert_eq!(pmi.wait(begun).unwrap(), Outcome::Gathered(vec![vec![]]));
    assert!(matches!(pmi.allgather(b"mine", 3), Err(Error::Refused { .. })));
    pmi.finalize().unwrap();
}

#[test]
fn all_of_pmi_1_works_alone() {
    let pmi = Pmi1::open(&Endpoint::Alone).unwrap();
    assert_eq!((pmi.rank(), pmi.size()), (0, 1));
    let name = pmi.name().unwrap();
    pmi.put(&name, b"key", b"value").unwrap();
    pmi.barrier().unwrap();
    assert_eq!(pmi.get(&name, b"key").unwrap(), b"value");
    let own = pmi.create().unwrap();
    pmi.put(&own, b"k", b"v").unwrap();
    assert_eq!(pmi.by_index(&own, 0).unwrap(), Some((b"k".to_vec(), b"v".to_vec())));
    assert_eq!(pmi.by_index(&own, 1).unwrap(), None);
    pmi.destroy(&own).unwrap();
    assert!(matches!(pmi.by_index(&own, 0), Err(Error::Refused { .. })));
    assert_eq!(pmi.universe_size().unwrap(), Some(1));
    pmi.finalize().unwrap();
}
