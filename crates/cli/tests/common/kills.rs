//! Kills at random, and what must come of them.

use std::collections::BTreeMap;
use std::time::Duration;

use model::HostList;
use testbed::{HEAD, clock};

use crate::common::{End, GONE_WITHIN, Hosts, Member, Role, describe};
use crate::misbehave;

/// What is killed at random.
pub(crate) const ROLES: [Role; 6] =
    [Role::FrontEnd, Role::FrontEndKeeper, Role::Shell, Role::Agent, Role::Keeper, Role::Task];

/// When to kill, after the start or after the first task says that it runs.
const MOMENT_MAX_MS: u64 = 300;

/// How long a job may go on after a kill.
const KILL_LIMIT: Duration = Duration::from_secs(20);

/// Like `WILD`, but the job ends by itself after a while. Here no task is stopped itself: who kills
/// the one that is to continue it makes it stay for ever, and rightly so.
const SHORT: &str = "\
echo ready
case $((PMI_RANK % 4)) in
0) $MISBEHAVE daemon;;
1) trap '' TERM INT HUP; $MISBEHAVE ignore:15 hang & ;;
2) setsid $MISBEHAVE stop & ;;
3) $MISBEHAVE stop & ;;
esac
sleep 0.2
echo done";

/// A remote shell that stays, with the agent below it.
const SHELL: &str = "sh -c 'sh -c \"$1\"; exit $?' {host} {cmd}";

/// Kills at random, and what came of them.
pub(crate) struct Kills {
    random: u64,
    /// How often which role was hit, and with which status the job ended.
    seen: BTreeMap<(Role, i32), usize>,
    pub(crate) wrong: Vec<String>,
}

/// A process that was killed, and the node that is lost with it, if one is.
#[derive(Debug)]
struct Victim {
    member: Member,
    node: Option<String>,
}

impl Kills {
    pub(crate) fn new(seed: u64) -> Kills {
        Kills { random: seed, seen: BTreeMap::new(), wrong: Vec::new() }
    }

    /// How many processes were killed so far.
    pub(crate) fn count(&self) -> usize {
        self.seen.values().sum()
    }

    pub(crate) fn count_of(&self, role: Role) -> usize {
        self.seen.iter().filter(|((seen, _), _)| *seen == role).map(|(_, count)| count).sum()
    }

    /// Starts a short job, kills one of its processes at a random moment, and waits for the end.
    /// If the job has ended before, nobody is killed.
    pub(crate) fn kill_once(&mut self, hosts: &Hosts, index: usize) {
        // A few over real ssh, which takes most of the time there is.
        let over_ssh = index % 8 == 7;
        let misbehave = format!("MISBEHAVE={}", misbehave().display());
        let shell: &[&str] = if over_ssh { &[] } else { &["--shell", SHELL] };
        let options = ["--grace", "300ms", "--env", &misbehave, "sh", "-c", SHORT];
        let mut run = hosts.run(&[shell, &options].concat());
        if over_ssh && self.below(2) == 0 {
            run.wait_for_lines(1, "ready");
        }
        let moment = Duration::from_millis(self.below(MOMENT_MAX_MS));
        clock::sleep(moment);
        let victim = self.victim(hosts).filter(|victim| hosts.has_killed(&victim.member));
        let end = run.end_within(KILL_LIMIT);
        let (_, left) = hosts.survivors(GONE_WITHIN);
        let mut wrong: Vec<String> = left.iter().map(|m| format!("left {}", describe(m))).collect();
        wrong.extend(victim.as_ref().map_or_else(|| judge_whole(&end), |it| it.judge(&end)));
        if let Some(victim) = &victim {
            *self.seen.entry((victim.member.role, end.status)).or_default() += 1;
        }
        if !wrong.is_empty() {
            let wrong = wrong.join(", ");
            self.wrong
                .push(format!("kill {index} after {moment:?} of {victim:?}: {wrong}\n{end:?}"));
        }
        hosts.clear();
    }

    /// Any process of the role that was hit least so far, of those that are there.
    fn victim(&mut self, hosts: &Hosts) -> Option<Victim> {
        let mut all = hosts.members();
        let hit = |member: &Member| self.count_of(member.role);
        all.retain(|member| ROLES.contains(&member.role));
        let least = all.iter().map(hit).min()?;
        let roles: Vec<Role> = all.iter().filter(|m| hit(m) == least).map(|m| m.role).collect();
        let role = *self.choose(&roles)?;
        let members: Vec<&Member> = all.iter().filter(|m| m.role == role).collect();
        let member = (*self.choose(&members)?).clone();
        Some(Victim { node: node_of(&member, &all), member })
    }

    pub(crate) fn summary(&self) -> String {
        let each = |((role, status), count): (&(Role, i32), &usize)| {
            format!("{role:?} with status {status} {count}")
        };
        self.seen.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap())
    }

    /// A number below `limit`, by splitmix64.
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

impl Victim {
    /// What is wrong with the end of its job (`docs/exit-status.md`).
    fn judge(&self, end: &End) -> Vec<String> {
        // What dies when all is done is no failure, nor is a start that was made again.
        if end.status == 0 {
            return judge_whole(end);
        }
        let allowed: &[i32] = match self.member.role {
            Role::FrontEnd | Role::FrontEndKeeper | Role::Task => &[137],
            // Lost, or not joined yet.
            Role::Shell | Role::Agent | Role::Keeper => &[251, 252],
            Role::Newborn => &[137, 251, 252],
        };
        let mut wrong = Vec::new();
        if !allowed.contains(&end.status) {
            wrong.push(format!("status {}, not of {allowed:?}", end.status));
        }
        let is_lost = matches!(end.status, 251 | 252);
        if let Some(node) = self.node.as_deref().filter(|_| is_lost)
            && !names(&end.stderr, node)
        {
            wrong.push(format!("does not name {node}"));
        }
        wrong
    }
}

/// What is wrong with a job that nothing happened to.
fn judge_whole(end: &End) -> Vec<String> {
    let done = end.stdout.iter().filter(|line| *line == "done").count();
    let is_whole = end.status == 0 && done == 8;
    if is_whole { Vec::new() } else { vec![format!("status {}, {done} of 8 done", end.status)] }
}

/// The node whose agent, keeper or shell this is: the shells of [`SHELL`] and of ssh name it.
fn node_of(member: &Member, all: &[Member]) -> Option<String> {
    match member.role {
        Role::Shell | Role::Agent | Role::Keeper => {}
        Role::FrontEnd | Role::FrontEndKeeper | Role::Task | Role::Newborn => return None,
    }
    if member.host != HEAD && member.role != Role::Shell {
        return Some(member.host.clone());
    }
    let mut at = member;
    loop {
        let words = at.process.command.split(' ');
        let mut pairs = words.clone().zip(words.skip(1));
        // A shell further in has its command right after `-c`.
        let found = pairs.find(|(node, next)| *next == "test" && *node != "-c");
        if at.role == Role::Shell
            && let Some((node, _)) = found
        {
            return Some(node.to_owned());
        }
        let is_parent = |m: &&Member| m.host == at.host && m.process.pid == at.process.parent;
        at = all.iter().find(is_parent)?;
    }
}

/// Whether a text names the node, alone or in a host list.
fn names(text: &str, node: &str) -> bool {
    let words = text.split_whitespace().map(|word| word.trim_matches([':', ',', '(', ')']));
    let lists = words.filter_map(|word| word.parse::<HostList>().ok());
    lists.flat_map(HostList::into_nodes).any(|named| named.name == node)
}
