//! What is odd about hosts, and yet nothing is broken: networks and names as sites have them.

use std::process::Command;

use crate::{HEAD, RUN_DIR, Sshd, Testbed, TestbedError, command, network, ssh};

/// A family of addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Testbed {
    /// Gives the host what containers leave behind: an interface with the same address as on every
    /// other host that has it.
    pub fn add_docker0(&self, host: &str) -> Result<(), TestbedError> {
        self.host_ip(
            host,
            "link add docker0 type bridge\naddress add 172.17.0.1/16 dev docker0\n\
             address add fd17::1/64 dev docker0 nodad\nlink set docker0 up\n",
        )
    }

    /// Lets nothing out of the host but ssh: what it calls is refused at once, and whoever calls it
    /// gets no answer.
    pub fn allow_only_ssh(&self, host: &str) -> Result<(), TestbedError> {
        for family in ["-4", "-6"] {
            let rules = format!(
                "rule add ipproto tcp sport 22 lookup main pref 10\n\
                 rule add ipproto tcp dport 22 lookup main pref 11\n\
                 rule add to {} prohibit pref 20\n",
                network::prefix(family == "-6")
            );
            self.host_ip_with(host, &[family], &rules)?;
        }
        Ok(())
    }

    /// Lets nothing of the host get to this other one: there is no route to it.
    pub fn part(&self, host: &str, from: &str) -> Result<(), TestbedError> {
        let address = self.address(from)?;
        self.host_ip(host, &format!("rule add to {address} unreachable pref 10\n"))
    }

    /// Takes the host's address of this family away, as if there were no such network.
    pub fn take_family(&self, host: &str, family: Family) -> Result<(), TestbedError> {
        let option = match family {
            Family::V4 => "-4",
            Family::V6 => "-6",
        };
        self.host_ip_with(host, &[option], "address flush dev eth0\n")
    }

    /// Has the names of all hosts mean addresses of this family.
    pub fn resolve_to(&self, family: Family) -> Result<(), TestbedError> {
        let names = self.names().iter().map(String::as_str);
        let text = match family {
            Family::V4 => network::hosts_file(names),
            Family::V6 => network::hosts_file_v6(names),
        };
        ssh::write(&self.run_dir().join("hosts"), &text)
    }

    /// Has the host call itself something that nobody else calls it.
    pub fn rename(&self, host: &str, name: &str) -> Result<(), TestbedError> {
        self.script("renaming a host", host, &format!("echo {name} >/proc/sys/kernel/hostname"))
    }

    /// Gives the host a hosts file of its own, with these lines alone.
    pub fn set_hosts_file(&self, host: &str, text: &str) -> Result<(), TestbedError> {
        let file = format!("hosts-{host}");
        ssh::write(&self.run_dir().join(&file), text)?;
        let script = format!("mount --bind {RUN_DIR}/{file} /etc/hosts");
        self.script("giving a host a hosts file", host, &script)
    }

    /// Has the head reach the hosts over this one alone: it is the jump host of its ssh
    /// configuration, and nothing of the head's gets to any other.
    pub fn jump_over(&self, host: &str) -> Result<(), TestbedError> {
        let address = self.address(host)?;
        let rules = format!("rule add to {address} lookup main pref 10\n");
        self.host_ip(HEAD, &rules)?;
        self.host_ip(HEAD, &format!("rule add to {} prohibit pref 20\n", network::prefix(false)))?;
        self.host_ip_with(
            HEAD,
            &["-6"],
            &format!("rule add to {} prohibit pref 20\n", network::prefix(true)),
        )?;
        let file = self.run_dir().join("ssh_config");
        let config = ssh::read(&file)?;
        let jump = format!(
            "Match originalhost !{host},n* exec \"test $(hostname) = {HEAD}\"\n    ProxyJump {host}\n"
        );
        ssh::write(&file, &format!("{jump}{config}"))
    }

    /// Has who logs in on the host get this shell.
    pub fn set_login_shell(&self, host: &str, shell: &str) -> Result<(), TestbedError> {
        let file = format!("passwd-{host}");
        let sshd = "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin";
        let text = format!("root:x:0:0:root:{RUN_DIR}:{shell}\n{sshd}\n");
        ssh::write(&self.run_dir().join(&file), &text)?;
        let script = format!("mount --bind {RUN_DIR}/{file} /etc/passwd");
        self.script("giving a host a user", host, &script)
    }

    /// Has who logs in on any host have this home directory, which need not be there.
    pub fn set_home(&self, home: &str) -> Result<(), TestbedError> {
        let file = self.run_dir().join("sshd_config");
        let config = ssh::read(&file)?;
        let others = config.lines().filter(|line| !line.starts_with("SetEnv HOME="));
        let lines: Vec<&str> = others.collect();
        ssh::write(&file, &format!("{}\nSetEnv HOME={home}\n", lines.join("\n")))?;
        self.hosts().iter().try_for_each(|host| self.start_sshd(host, Sshd::Willing))
    }

    fn host_ip(&self, host: &str, batch: &str) -> Result<(), TestbedError> {
        self.host_ip_with(host, &[], batch)
    }

    fn host_ip_with(&self, host: &str, options: &[&str], batch: &str) -> Result<(), TestbedError> {
        let mut ip = network::in_network_of(self.pid(host)?, "ip");
        ip.args(options).args(["-batch", "-"]);
        command::check_with_input("changing a host's network", &mut ip, batch).map(drop)
    }

    fn script(&self, what: &str, host: &str, script: &str) -> Result<(), TestbedError> {
        let mut shell: Command = self.command(host, "/bin/sh")?;
        command::check(what, shell.args(["-c", script])).map(drop)
    }
}
