//! Disks that are full: of the front end where it writes files of output, or of the hosts that do.

use testbed::{HEAD, RUN_DIR};

use crate::World;

#[test]
fn a_disk_that_fills_with_output_ends_the_job_and_is_told_with_where_it_is() {
    for (host, options) in [(HEAD, ""), ("n1", "--output-local")] {
        let world = World::up(2);
        let dir = format!("{RUN_DIR}/out");
        world.on(HEAD, &format!("mkdir {dir}"));
        world.on(host, &format!("mount -t tmpfs -o size=1m disk {dir}"));
        let run = world.convoke("full").words("--hosts n[0-1] --output").arg(&dir).words(options);
        let task = "test $PMI_RANK = 1 || exec sleep 60; exec head -c 9000000 /dev/zero";
        let ended = world.end(run.args(["sh", "-c", task])).with_status(249);
        let words = &ended.stderr;
        assert!(words.contains(&format!("{dir}/1.out")), "{words}");
        assert!(words.contains("No space left on device"), "{words}");
        assert_eq!(words.contains("n1"), host == "n1", "{words}");
    }
}
