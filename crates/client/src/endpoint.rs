//! Where a program finds its PMI server (`reference/pmi1.md` §1, §2).

use std::env;
use std::str::FromStr;

use crate::Error;

/// What the environment says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// An inherited connection.
    Descriptor {
        /// Its number.
        number: i32,
        /// The program's rank.
        rank: u32,
        /// Tasks in its job.
        size: u32,
        /// What the server calls that, which Slurm's wants to be told in PMI-2.
        job: Option<String>,
    },
    /// A port to connect to.
    Port {
        /// Host and port.
        address: String,
        /// Who to say that we are: the program's rank.
        id: u32,
    },
    /// The program was started alone.
    Alone,
}

impl Endpoint {
    /// Reads it. `PMI_FD` counts above `PMI_PORT`.
    ///
    /// # Errors
    /// When a variable that counts is no number, or no address.
    pub fn from_env() -> Result<Endpoint, Error> {
        Self::from_variables(|name| env::var_os(name).map(|it| it.to_string_lossy().into_owned()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Endpoint, Error> {
        if let Some(number) = number(&variable, "PMI_FD")? {
            let rank = number_of(&variable, "PMI_RANK")?.or(number_of(&variable, "PMI_ID")?);
            let size = number_of(&variable, "PMI_SIZE")?;
            return Ok(Endpoint::Descriptor {
                number,
                rank: rank.unwrap_or(0),
                size: size.unwrap_or(1),
                job: variable("PMI_JOBID"),
            });
        }
        let Some(address) = variable("PMI_PORT") else { return Ok(Endpoint::Alone) };
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            let (name, expected) = ("PMI_PORT", "host with a port behind a colon");
            return Err(Error::Variable { name, value: address, expected });
        }
        let id = number_of(&variable, "PMI_ID")?.or(number_of(&variable, "PMI_RANK")?);
        Ok(Endpoint::Port { address, id: id.unwrap_or(0) })
    }
}

fn number_of(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<u32>, Error> {
    number(variable, name)
}

fn number<N: FromStr>(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
) -> Result<Option<N>, Error> {
    let Some(value) = variable(name) else { return Ok(None) };
    let number = value.trim().parse();
    number.map(Some).map_err(|_| Error::Variable { name, value, expected: "number" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(variables: &[(&str, &str)]) -> Result<Endpoint, Error> {
        Endpoint::from_variables(|name| {
            variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_descriptor_counts_above_a_port_and_none_of_both_is_alone() {
        let fd = [("PMI_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "4"), ("PMI_PORT", "n0:80")];
        let of_job = |job| Endpoint::Descriptor {
            number: 7,
            rank: 2,
            size: 4,
            job: Option::map(job, str::to_owned),
        };
        assert_eq!(endpoint(&fd).unwrap(), of_job(None));
        let in_slurm = [&fd[..], &[("PMI_JOBID", "3.0")]].concat();
        assert_eq!(endpoint(&in_slurm).unwrap(), of_job(Some("3.0")));
        let port = Endpoint::Port { address: "n0:80".to_owned(), id: 3 };
        assert_eq!(endpoint(&[("PMI_PORT", "n0:80"), ("PMI_ID", "3")]).unwrap(), port);
        assert_eq!(endpoint(&[("PMI_RANK", "5")]).unwrap(), Endpoint::Alone);
    }

    #[test]
    fn what_is_no_number_or_no_port_is_named() {
        let wrong = |variables: &[(&str, &str)]| endpoint(variables).unwrap_err().to_string();
        assert_eq!(wrong(&[("PMI_FD", "three")]), "`PMI_FD` is `three`, which is no number");
        let port = wrong(&[("PMI_PORT", "n0")]);
        assert_eq!(port, "`PMI_PORT` is `n0`, which is no host with a port behind a colon");
    }
}
