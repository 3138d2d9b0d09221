//! Jobs that a program starts (`reference/pmi1.md` §7, `reference/pmi2.md` §6).

use pmi::Excerpt;

use crate::Error;

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Commands that make one new job.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spawn {
    /// The commands, whose ranks follow each other.
    pub commands: Vec<SpawnCommand>,
    /// Pairs that are in the new job's space before its tasks are.
    pub preput: Vec<Pair>,
}

/// One of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SpawnCommand {
    /// The program.
    pub program: Vec<u8>,
    /// Its arguments, without its name.
    pub arguments: Vec<Vec<u8>>,
    /// How many tasks run it.
    pub tasks: u32,
    /// What else to know of it, such as `wdir`.
    pub info: Vec<Pair>,
}

impl Spawn {
    /// Tasks of the new job.
    pub(crate) fn tasks(&self) -> usize {
        self.commands.iter().map(|command| command.tasks as usize).sum()
    }

    /// The fields of a request in PMI-2, in the order that Slurm's server needs.
    pub(crate) fn fields(&self) -> Vec<(String, Vec<u8>)> {
        let mut fields = vec![number("ncmds", self.commands.len())];
        fields.push(number("preputcount", self.preput.len()));
        fields.extend(numbered("ppkey", "ppval", &self.preput));
        for command in &self.commands {
            fields.push(("subcmd".to_owned(), command.program.clone()));
            fields.push(number("maxprocs", command.tasks as usize));
            fields.push(number("argc", command.arguments.len()));
            let arguments = command.arguments.iter().enumerate();
            fields.extend(arguments.map(|(i, word)| (format!("argv{i}"), word.clone())));
            fields.push(number("infokeycount", command.info.len()));
            fields.extend(numbered("infokey", "infoval", &command.info));
        }
        fields
    }

    /// The lines of a request in PMI-1, with `endcmd` behind each command.
    ///
    /// # Errors
    /// When a line end is in one of them.
    pub(crate) fn lines(&self) -> Result<Vec<u8>, Error> {
        let mut lines = Vec::new();
        for (index, command) in self.commands.iter().enumerate() {
            let mut fields = vec![("mcmd".to_owned(), b"spawn".to_vec())];
            fields.push(number("nprocs", command.tasks as usize));
            fields.push(("execname".to_owned(), command.program.clone()));
            fields.push(number("totspawns", self.commands.len()));
            fields.push(number("spawnssofar", index + 1));
            fields.push(number("argcnt", command.arguments.len()));
            let arguments = (1..).zip(&command.arguments);
            fields.extend(arguments.map(|(i, word)| (format!("arg{i}"), word.clone())));
            if index == 0 {
                fields.push(number("preput_num", self.preput.len()));
                fields.extend(numbered("preput_key_", "preput_val_", &self.preput));
            }
            fields.push(number("info_num", command.info.len()));
            fields.extend(numbered("info_key_", "info_val_", &command.info));
            for (key, value) in fields {
                if value.contains(&b'\n') {
                    let (text, why) = (Excerpt::new(&value), "it has a line end");
                    return Err(Error::Text { request: "spawn", text, why });
                }
                lines.extend_from_slice(&[key.as_bytes(), b"=", &value, b"\n"].concat());
            }
            lines.extend_from_slice(b"endcmd\n");
        }
        Ok(lines)
    }
}

/// The code of each of `tasks`, all of which are 0 where a server says none; nothing where there are too few.
pub(crate) fn codes(text: &[u8], tasks: usize) -> Option<Vec<i32>> {
    if text.is_empty() {
        return Some(vec![0; tasks]);
    }
    let codes: Option<Vec<i32>> =
        std::str::from_utf8(text).ok()?.split(',').map(|code| code.parse().ok()).collect();
    codes.filter(|codes| codes.len() == tasks)
}

fn number(key: &str, value: usize) -> (String, Vec<u8>) {
    (key.to_owned(), value.to_string().into_bytes())
}

fn numbered<'a>(
    key: &'a str,
    value: &'a str,
    pairs: &'a [Pair],
) -> impl Iterator<Item = (String, Vec<u8>)> + 'a {
    pairs.iter().enumerate().flat_map(move |(i, (name, text))| {
        [(format!("{key}{i}"), name.clone()), (format!("{value}{i}"), text.clone())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn() -> Spawn {
        let wdir = (b"wdir".to_vec(), b"/tmp".to_vec());
        let two = SpawnCommand {
            program: b"./a".to_vec(),
            arguments: vec![b"x y".to_vec(), b"z=1".to_vec()],
            tasks: 2,
            info: vec![wdir],
        };
        let one = SpawnCommand { program: b"./b".to_vec(), tasks: 1, ..SpawnCommand::default() };
        Spawn { commands: vec![two, one], preput: vec![(b"PORT".to_vec(), b"p".to_vec())] }
    }

    #[test]
    fn a_request_of_pmi_1_is_as_mpich_writes_it() {
        let expected = "mcmd=spawn\nnprocs=2\nexecname=./a\ntotspawns=2\nspawnssofar=1\nargcnt=2\n\
                        arg1=x y\narg2=z=1\npreput_num=1\npreput_key_0=PORT\npreput_val_0=p\n\
                        info_num=1\ninfo_key_0=wdir\ninfo_val_0=/tmp\nendcmd\n\
                        mcmd=spawn\nnprocs=1\nexecname=./b\ntotspawns=2\nspawnssofar=2\n\
                        argcnt=0\ninfo_num=0\nendcmd\n";
        assert_eq!(String::from_utf8(spawn().lines().unwrap()).unwrap(), expected);
        assert_eq!(spawn().tasks(), 3);
    }

    #[test]
    fn a_request_of_pmi_2_has_its_fields_in_slurms_order() {
        let fields = spawn().fields();
        let text: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("{key}={};", String::from_utf8_lossy(value)))
            .collect();
        let expected = "ncmds=2;preputcount=1;ppkey0=PORT;ppval0=p;subcmd=./a;maxprocs=2;argc=2;\
                        argv0=x y;argv1=z=1;infokeycount=1;infokey0=wdir;infoval0=/tmp;\
                        subcmd=./b;maxprocs=1;argc=0;infokeycount=0;";
        assert_eq!(text.concat(), expected);
    }
}
