//! Id sets behave like sets of numbers, however they are folded.

use std::collections::BTreeSet;

use model::IdSet;
use proptest::prelude::*;

#[test]
fn sets_fold_to_ranges_and_read_back() {
    let set: IdSet = "8,0-3,2,4".parse().unwrap();
    assert_eq!(set.to_string(), "0-4,8");
    assert_eq!(set.len(), 6);
    assert_eq!(set.first(), Some(0));
    assert_eq!("".parse::<IdSet>().unwrap(), IdSet::new());
}

#[test]
fn the_largest_id_is_an_id() {
    let mut set = IdSet::range(0, u32::MAX);
    assert_eq!(set.len(), 1 << 32);
    assert!(set.remove(u32::MAX));
    assert_eq!(set.to_string(), "0-4294967294");
    assert!(set.insert(u32::MAX));
    assert_eq!(set.difference(&IdSet::range(1, u32::MAX)).to_string(), "0");
    assert_eq!(set.split(1 << 32), (set.clone(), IdSet::new()));
    assert_eq!(set.split(u64::from(u32::MAX)).1.to_string(), "4294967295");
}

#[test]
fn a_text_that_is_no_set_is_named_in_the_error() {
    let error = |text: &str| text.parse::<IdSet>().unwrap_err().to_string();
    assert_eq!(error("1,x"), "id set: `x` is not a number");
    assert_eq!(error("1,,2"), "id set: `` is not a number");
    assert_eq!(error("9-3"), "id set: range 9-3 ends before it starts");
    assert_eq!(error("4294967296"), "id set: `4294967296` is not a number");
}

#[test]
fn a_set_from_a_peer_is_put_in_order() {
    let bytes = postcard_of(&[(7, 9), (5, 2), (0, 3), (4, 8)]);
    let set: IdSet = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(set.to_string(), "0-9");
}

proptest! {
    #[test]
    fn a_set_holds_what_was_inserted_and_not_removed(
        edits in prop::collection::vec((any::<bool>(), 0_u32..64), 0..80),
    ) {
        let (mut set, mut model) = (IdSet::new(), BTreeSet::new());
        for (is_insert, id) in edits {
            if is_insert {
                prop_assert_eq!(set.insert(id), model.insert(id));
            } else {
                prop_assert_eq!(set.remove(id), model.remove(&id));
            }
        }
        assert_same(&set, &model);
    }

    #[test]
    fn union_difference_and_intersection_are_those_of_sets(a in ids(), b in ids()) {
        let (set_a, set_b) = (folded(&a), folded(&b));
        assert_same(&set_a.union(&set_b), &a.union(&b).copied().collect());
        assert_same(&set_a.difference(&set_b), &a.difference(&b).copied().collect());
        assert_same(&set_a.intersection(&set_b), &a.intersection(&b).copied().collect());
    }

    #[test]
    fn ranges_insert_all_of_their_ids(ranges in prop::collection::vec((0_u32..99, 0_u32..99), 0..9)) {
        let (mut set, mut model) = (IdSet::new(), BTreeSet::new());
        for (start, end) in ranges {
            set.insert_range(start, end);
            model.extend(start..=end);
        }
        assert_same(&set, &model);
    }

    #[test]
    fn text_and_bytes_read_back(ids in ids()) {
        let set = folded(&ids);
        prop_assert_eq!(&set.to_string().parse::<IdSet>().unwrap(), &set);
        let bytes = postcard::to_allocvec(&set).unwrap();
        prop_assert_eq!(&postcard::from_bytes::<IdSet>(&bytes).unwrap(), &set);
    }

    #[test]
    fn an_index_counts_the_smaller_ids(ids in ids(), first in 0_usize..70, count in 0_usize..70) {
        let set = folded(&ids);
        for (index, &id) in ids.iter().enumerate() {
            prop_assert_eq!(set.index_of(id), Some(index as u64));
        }
        let stranger = (0..).find(|id| !ids.contains(id)).unwrap();
        prop_assert_eq!(set.index_of(stranger), None);
        let slice = ids.iter().copied().skip(first).take(count).collect();
        assert_same(&set.slice(first as u64, count as u64), &slice);
    }

    #[test]
    fn the_parts_of_a_split_are_the_set(ids in ids(), count in 0_u64..70) {
        let set = folded(&ids);
        let (first, rest) = set.split(count);
        prop_assert_eq!(first.len(), count.min(set.len()));
        prop_assert!(first.iter().chain(rest.iter()).eq(set.iter()));
    }
}

fn ids() -> impl Strategy<Value = BTreeSet<u32>> {
    prop::collection::btree_set(prop_oneof![0_u32..64, Just(u32::MAX), Just(u32::MAX - 1)], 0..40)
}

fn folded(ids: &BTreeSet<u32>) -> IdSet {
    ids.iter().copied().collect()
}

fn assert_same(set: &IdSet, model: &BTreeSet<u32>) {
    assert!(set.iter().eq(model.iter().copied()), "{set} is not {model:?}");
    assert_eq!(set, &folded(model));
    assert_eq!(set.len(), model.len() as u64);
}

fn postcard_of(ranges: &[(u32, u32)]) -> Vec<u8> {
    postcard::to_allocvec(ranges).expect("ranges can be encoded")
}
