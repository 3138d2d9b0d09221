//! What is said of the command beside its options, once for `--help` and for the manual pages.

/// Terms, and what is said of each.
pub(crate) type Rows = &'static [(&'static str, &'static str)];

/// Command lines of `convoke run`.
pub(crate) const EXAMPLES: Rows = &[
    ("convoke run -n 4 ./ring", "four tasks on this host"),
    ("convoke run --hosts n[01-16]:8 ./ring", "eight tasks on each of 16 hosts"),
    (
        "convoke run --hostfile nodes -n 64 --ppn 4 -- ./solve -n 10",
        "hosts from a file, four tasks on each",
    ),
    ("convoke run --hosts a,b --show-map ./ring", "show who would run where"),
    (
        "convoke run --hosts n[01-16] -n 1 ./ocean : -n 15 --env X=1 ./ice -v",
        "two programs in one job, each with its own options",
    ),
    (
        "convoke run --hosts a,b --shell 'rsh {host} {cmd}' hostname",
        "reach hosts by a shell that is not ssh",
    ),
];

/// Exit statuses of `convoke run`, the rule first.
pub(crate) const STATUSES: Rows = &[
    ("0", "every task exited with 0"),
    ("1-255", "the status of the task that failed first, or the code of MPI_Abort"),
    ("128+n", "a task was killed by signal n first, or the user's signal n ended the job"),
    ("2", "the command line, the host file or the placement cannot be used; nothing was started"),
    ("124", "the job was ended when the time of --timeout was over"),
    ("126", "the program or its directory cannot be used"),
    ("127", "there is no such program"),
    ("141", "nobody reads the output any more"),
    ("249", "output could not be written: a full disk, a file that cannot be made on a node"),
    ("250", "a task broke the PMI protocol, or left between MPI_Init and MPI_Finalize"),
    ("251", "a node was lost"),
    ("252", "an agent could not be started on a node"),
    ("253", "Convoke itself failed"),
];

/// What `convoke plan` says below its options.
pub(crate) const PLAN_NOTES: &str = "\
Trees and windows are simulated for up to 16,384 nodes. Beyond, trees are computed from what so many
take, and windows and strict batches are simulated with 4,096 nodes; commands that start several
agents never with more than 2,048. Where costs vary, times are medians of several seeds up to 2,048
nodes. Memory is that of this build's processes, without remote shells, tasks and the kernel's
buffers.";

/// Width of the column of command lines, with what parts it from the next.
const FIRST_COLUMN: usize = 47;

/// What `convoke run --help` says below the options.
pub(crate) fn run_help() -> String {
    let statuses: String =
        STATUSES.iter().map(|(status, text)| format!("\n  {status:<7}{text}")).collect();
    let examples: String = EXAMPLES.iter().map(|(line, text)| example(line, text)).collect();
    format!("Examples:{examples}\n\nExit status, by what went wrong first:{statuses}")
}

fn example(line: &str, text: &str) -> String {
    if line.len() + 2 < FIRST_COLUMN {
        format!("\n  {line:<width$}{text}", width = FIRST_COLUMN - 2)
    } else {
        format!("\n  {line}\n{:FIRST_COLUMN$}{text}", "")
    }
}
