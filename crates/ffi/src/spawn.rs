//! Commands of a job to spawn, as both libraries are told of them: arrays with an element for each command.

use std::ffi::c_int;

use client::SpawnCommand;

use crate::{Array, ERR_INVALID_ARG, Pair, Text};

/// What both are told in the same way. The last two arrays may be null.
#[derive(Clone, Copy, Debug)]
pub struct Commands<P> {
    /// Commands.
    pub count: c_int,
    /// The program of each.
    pub programs: Array<Text>,
    /// Its tasks.
    pub tasks: Array<c_int>,
    /// How many pairs say more of it.
    pub info_counts: Array<c_int>,
    /// Those.
    pub infos: Array<Array<P>>,
}

/// A pair in whatever C passes it.
pub trait AsPair {
    /// Its key.
    fn key(&self) -> &Text;
    /// Its value.
    fn value(&self) -> &Text;
}

impl AsPair for Pair {
    fn key(&self) -> &Text {
        &self.key
    }

    fn value(&self) -> &Text {
        &self.value
    }
}

impl<P: AsPair> Commands<P> {
    /// The commands; `arguments` reads those of the one with an index.
    ///
    /// # Errors
    /// [`ERR_INVALID_ARG`], where something is missing or negative, or what `arguments` says.
    pub fn read(
        &self,
        arguments: impl Fn(usize) -> Result<Vec<Vec<u8>>, c_int>,
    ) -> Result<Vec<SpawnCommand>, c_int> {
        let Commands { count, programs, tasks, info_counts, infos } = self;
        if *count <= 0 || programs.is_null() || tasks.is_null() {
            return Err(ERR_INVALID_ARG);
        }
        let command = |index: usize| {
            let infos = infos.within(*count, index, info_counts.number(*count, index));
            Ok(SpawnCommand {
                program: programs.elements(*count)[index].required()?.to_vec(),
                arguments: arguments(index)?,
                tasks: u32::try_from(tasks.elements(*count)[index]).map_err(|_| ERR_INVALID_ARG)?,
                info: pairs(infos)?,
            })
        };
        (0..count.cast_unsigned() as usize).map(command).collect()
    }
}

/// Copies pairs that must be whole.
///
/// # Errors
/// [`ERR_INVALID_ARG`], where a key or a value is null.
pub fn pairs<'a, P: AsPair + 'a>(
    pairs: impl IntoIterator<Item = &'a P>,
) -> Result<Vec<client::Pair>, c_int> {
    let copy = |pair: &P| Ok((pair.key().required()?.to_vec(), pair.value().required()?.to_vec()));
    pairs.into_iter().map(copy).collect()
}
