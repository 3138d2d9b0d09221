//! What it takes to bring up an agent over a remote shell, in the words of either paper.
//!
//! S2 has two parameters: the **latency** L, from the start of an agent until it can itself start
//! others, and the **gap** G, for which one start keeps its parent from the next. S1-21 has six terms,
//! `T_c + P·(T_ssh + T_recv)` for P starts in a row with `T_c = T_init + T_client + T_send +
//! T_nw`. So they are the same model, and a calibration says one or the other, never both:
//!
//! - `G = T_ssh + T_recv`: what the parent does for each child, one after the other: it starts the
//!   shell, and it receives the child's call.
//! - `L = T_init + T_client + T_send + T_nw`: what happens once per child, beside the parent's other
//!   starts: the child is initialised, executed, and sends its call through the network.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::random::Random;

/// What it takes to bring up an agent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Launch {
    /// S2's parameters.
    LatencyAndGap {
        /// From the start, its gap past, until the agent can start others.
        latency_ms: Distribution,
        /// How long one start keeps the starting host from the next.
        gap_ms: Distribution,
    },
    /// S1's terms.
    Terms {
        /// The agent's initialisation, until it can start others.
        t_init_ms: Distribution,
        /// Starting one remote shell.
        t_ssh_ms: Distribution,
        /// Executing the agent at the other end.
        t_client_ms: Distribution,
        /// The agent's work for its call to its parent.
        t_send_ms: Distribution,
        /// The call's way through the network, with the shell's own.
        t_nw_ms: Distribution,
        /// The parent's work for one call.
        t_recv_ms: Distribution,
    },
}

impl Launch {
    /// A latency and a gap that are always the same.
    pub fn constant(latency: Duration, gap: Duration) -> Launch {
        let ms = |time: Duration| Distribution::constant(time.as_secs_f64() * 1e3);
        Launch::LatencyAndGap { latency_ms: ms(latency), gap_ms: ms(gap) }
    }

    /// A latency of half of all starts (of S1's terms: the sum of their medians).
    pub fn latency(&self) -> Duration {
        from_ms(self.latency_parts().iter().map(Distribution::median).sum())
    }

    /// A gap of half of all starts (of S1's terms: the sum of their medians).
    pub fn gap(&self) -> Duration {
        from_ms(self.gap_parts().iter().map(Distribution::median).sum())
    }

    /// Draws a latency.
    pub fn sample_latency(&self, random: &mut Random) -> Duration {
        from_ms(self.latency_parts().iter().map(|part| part.sample(random)).sum())
    }

    /// Draws a gap.
    pub fn sample_gap(&self, random: &mut Random) -> Duration {
        from_ms(self.gap_parts().iter().map(|part| part.sample(random)).sum())
    }

    /// Whether not all starts take the same.
    pub fn varies(&self) -> bool {
        self.parameters().iter().any(|(_, part)| part.varies())
    }

    fn latency_parts(&self) -> ArrayOf4 {
        const NONE: Distribution = Distribution::constant(0.0);
        match *self {
            Launch::LatencyAndGap { latency_ms, .. } => [latency_ms, NONE, NONE, NONE],
            Launch::Terms { t_init_ms, t_client_ms, t_send_ms, t_nw_ms, .. } => {
                [t_init_ms, t_client_ms, t_send_ms, t_nw_ms]
            }
        }
    }

    fn gap_parts(&self) -> [Distribution; 2] {
        match *self {
            Launch::LatencyAndGap { gap_ms, .. } => [gap_ms, Distribution::constant(0.0)],
            Launch::Terms { t_ssh_ms, t_recv_ms, .. } => [t_ssh_ms, t_recv_ms],
        }
    }

    /// The parameters by their names in a file.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, Distribution)> {
        match *self {
            Launch::LatencyAndGap { latency_ms, gap_ms } => {
                vec![("latency_ms", latency_ms), ("gap_ms", gap_ms)]
            }
            Launch::Terms { t_init_ms, t_ssh_ms, t_client_ms, t_send_ms, t_nw_ms, t_recv_ms } => {
                vec![
                    ("t_init_ms", t_init_ms),
                    ("t_ssh_ms", t_ssh_ms),
                    ("t_client_ms", t_client_ms),
                    ("t_send_ms", t_send_ms),
                    ("t_nw_ms", t_nw_ms),
                    ("t_recv_ms", t_recv_ms),
                ]
            }
        }
    }
}

type ArrayOf4 = [Distribution; 4];

/// A time of so many milliseconds, to the nanosecond.
pub(crate) fn from_ms(ms: f64) -> Duration {
    from_us(ms * 1e3)
}

/// A time of so many microseconds, to the nanosecond.
pub(crate) fn from_us(us: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    Duration::from_nanos(libm::round(us * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terms_of_s1_add_up_to_latency_and_gap() {
        let ms = Distribution::constant;
        let launch = Launch::Terms {
            t_init_ms: ms(1.0),
            t_ssh_ms: ms(20.0),
            t_client_ms: ms(300.0),
            t_send_ms: ms(4_000.0),
            t_nw_ms: ms(50_000.0),
            t_recv_ms: ms(600_000.0),
        };
        assert_eq!(launch.latency(), Duration::from_millis(54_301));
        assert_eq!(launch.gap(), Duration::from_millis(600_020));
        let random = &mut Random::new(0, 0);
        assert_eq!(launch.sample_latency(random), launch.latency());
        assert_eq!(launch.sample_gap(random), launch.gap());
    }
}
