//! Login shells as they are, and what their start-up files do.

use crate::World;

#[test]
fn what_a_login_script_prints_is_no_output_of_the_job() {
    let world = World::up(1);
    world.write(".bashrc", "echo Welcome; echo Beware >&2\n");
    let ended = world.end(world.convoke("printing").words("--hosts n0 -n 2 --ppn 2 echo up"));
    assert_eq!(ended.with_status(0).text(), "up\nup\n");
}
