//! What a task says over PMI in its dialect, and how the answer begins.

use model::{PmiDialect, Rank};

use crate::script::Spawned;

/// Programs of spawned jobs: one that goes through a script, and two that do not run.
pub(crate) const SCRIPTED: &str = "/bin/spawned";
pub(crate) const MISSING: &str = "/bin/missing";
pub(crate) const UNCREATABLE: &str = "/bin/uncreatable";

/// A request with its end, and the beginning of the answer that it is to get.
pub(crate) struct Words {
    pub(crate) request: String,
    pub(crate) answer: String,
}

pub(crate) fn init(dialect: PmiDialect, rank: Rank) -> Words {
    match dialect {
        PmiDialect::One => line(
            "cmd=init pmi_version=1 pmi_subversion=1",
            "cmd=response_to_init pmi_version=1 pmi_subversion=2 rc=0",
        ),
        PmiDialect::Two => frame(
            &format!("cmd=fullinit;pmirank={rank};"),
            "cmd=fullinit-response;rc=0;pmi-version=2;",
        ),
    }
}

pub(crate) fn put(dialect: PmiDialect, kvsname: &str, key: &str, value: &str) -> Words {
    match dialect {
        PmiDialect::One => line(
            &format!("cmd=put kvsname={kvsname} key={key} value={value}"),
            "cmd=put_result rc=0",
        ),
        PmiDialect::Two => {
            frame(&format!("cmd=kvs-put;key={key};value={value};"), "cmd=kvs-put-response;rc=0;")
        }
    }
}

/// The answer is to have a field `value`.
pub(crate) fn get(dialect: PmiDialect, kvsname: &str, key: &str) -> Words {
    match dialect {
        PmiDialect::One => line(&format!("cmd=get kvsname={kvsname} key={key}"), "cmd=get_result"),
        PmiDialect::Two => frame(
            &format!("cmd=kvs-get;jobid={kvsname};srcid=-1;key={key};"),
            "cmd=kvs-get-response;",
        ),
    }
}

pub(crate) fn publish(dialect: PmiDialect, service: &str, port: &str) -> Words {
    match dialect {
        PmiDialect::One => line(
            &format!("cmd=publish_name service={service} port={port}"),
            "cmd=publish_result info=ok rc=0",
        ),
        PmiDialect::Two => frame(
            &format!("cmd=name-publish;name={service};port={port};infokeycount=0;"),
            "cmd=name-publish-response;rc=0;",
        ),
    }
}

/// The answer is to have a field `port`.
pub(crate) fn look_up(dialect: PmiDialect, service: &str) -> Words {
    match dialect {
        PmiDialect::One => line(&format!("cmd=lookup_name service={service}"), "cmd=lookup_result"),
        PmiDialect::Two => frame(
            &format!("cmd=name-lookup;name={service};infokeycount=0;"),
            "cmd=name-lookup-response;",
        ),
    }
}

pub(crate) fn unpublish(dialect: PmiDialect, service: &str) -> Words {
    match dialect {
        PmiDialect::One => line(
            &format!("cmd=unpublish_name service={service}"),
            "cmd=unpublish_result info=ok rc=0",
        ),
        PmiDialect::Two => frame(
            &format!("cmd=name-unpublish;name={service};infokeycount=0;"),
            "cmd=name-unpublish-response;rc=0;",
        ),
    }
}

/// Only PMI-2 has rings; any task may speak it.
pub(crate) fn ring(rank: Rank) -> Words {
    frame(&format!("cmd=ring;ring-count=1;ring-left={rank};ring-right={rank};"), "")
}

/// The value must have no semicolon.
pub(crate) fn allgather(value: &str) -> Words {
    frame(&format!("cmd=allgather;value={value};"), "")
}

pub(crate) fn fence(dialect: PmiDialect) -> Words {
    match dialect {
        PmiDialect::One => line("cmd=barrier_in", "cmd=barrier_out"),
        PmiDialect::Two => frame("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;"),
    }
}

/// Two programs, where there is a task for each. The last is `program`, and those before it go through the first script.
pub(crate) fn spawn(dialect: PmiDialect, program: Spawned, tasks: u32) -> Words {
    let (path, number) = match program {
        Spawned::Script(number) => (SCRIPTED, number),
        Spawned::Missing => (MISSING, 0),
        Spawned::Uncreatable => (UNCREATABLE, 0),
    };
    let first = (SCRIPTED, if path == SCRIPTED { number } else { 0 }, tasks - 1);
    let programs: Vec<_> =
        [first, (path, number, 1)].into_iter().filter(|&(_, _, tasks)| tasks > 0).collect();
    let total = programs.len();
    let numbered = (1..).zip(programs);
    match dialect {
        PmiDialect::One => {
            let block = |(index, (path, number, tasks)): (usize, (&str, usize, u32))| {
                format!(
                    "mcmd=spawn\nnprocs={tasks}\nexecname={path}\ntotspawns={total}\n\
                     spawnssofar={index}\nargcnt=1\narg1={number}\nendcmd\n"
                )
            };
            let request = numbered.map(block).collect();
            Words { request, answer: "cmd=spawn_result rc=0".into() }
        }
        PmiDialect::Two => {
            let part = |(_, (path, number, tasks)): (usize, (&str, usize, u32))| {
                format!("subcmd={path};maxprocs={tasks};argc=1;argv0={number};")
            };
            let parts: String = numbered.map(part).collect();
            let body = format!("cmd=spawn;ncmds={total};preputcount=0;{parts}");
            frame(&body, "cmd=spawn-response;rc=0;")
        }
    }
}

pub(crate) fn finalize(dialect: PmiDialect) -> Words {
    match dialect {
        PmiDialect::One => line("cmd=finalize", "cmd=finalize_ack"),
        PmiDialect::Two => frame("cmd=finalize;", "cmd=finalize-response;rc=0;"),
    }
}

pub(crate) fn abort(dialect: PmiDialect, code: i32) -> Words {
    match dialect {
        PmiDialect::One => line(&format!("cmd=abort exitcode={code}"), ""),
        PmiDialect::Two => frame(&format!("cmd=abort;exitcode={code};"), ""),
    }
}

pub(crate) fn line(request: &str, answer: &str) -> Words {
    Words { request: format!("{request}\n"), answer: answer.to_owned() }
}

fn frame(body: &str, answer: &str) -> Words {
    Words { request: format!("{:6}{body}", body.len()), answer: answer.to_owned() }
}
