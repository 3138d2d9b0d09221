//! Reads what many tasks wrote.

use std::collections::BTreeMap;

use testkit::FloodLine;

/// The output of each rank of a labelled run, labels taken off.
///
/// # Panics
/// On a line without a label.
pub fn by_rank(output: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let mut ranks: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let end = line.windows(2).position(|pair| pair == b"] ");
        let label = end.map(|end| String::from_utf8_lossy(&line[..end]).into_owned());
        let rank = label.and_then(|label| label.strip_prefix('[')?.parse().ok());
        let (Some(rank), Some(end)) = (rank, end) else { panic!("a line without label: {text}") };
        ranks.entry(rank).or_default().extend_from_slice(&line[end + 2..]);
    }
    ranks
}

/// How many flood lines each rank has in `output`, none of them torn, lost or out of order.
///
/// # Panics
/// On the first line that is not as it was written, or not where it belongs.
pub fn flooded(output: &[u8]) -> BTreeMap<u32, u64> {
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, line) in String::from_utf8_lossy(output).lines().enumerate() {
        let parsed = FloodLine::parse(line);
        let Some(FloodLine { rank, index }) = parsed else {
            panic!("line {number} is torn: {line}")
        };
        let expected = next.entry(rank).or_default();
        assert_eq!(index, *expected, "line {number}, of rank {rank}, is out of order");
        *expected += 1;
    }
    next
}
