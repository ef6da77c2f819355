//! A program and everything it has started, as one group that gets signals together.

use tokio::process::Command;

/// Makes a program the first of a group of its own.
#[cfg(unix)]
pub(super) fn lead(command: &mut Command) {
    command.process_group(0);
}

/// Other systems know no such groups: the program alone is ended.
#[cfg(not(unix))]
pub(super) fn lead(_command: &mut Command) {}

/// The group. What is left of it is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    /// The group of a program that was made to [`lead`] one.
    pub(super) fn of(pid: Option<u32>) -> Self {
        let pid = pid.and_then(|pid| i32::try_from(pid).ok());
        Self {
            leader: pid.and_then(rustix::process::Pid::from_raw),
        }
    }

    /// Asks all to end.
    pub(super) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Ends all.
    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // An error means that nobody is left, which is as good.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_pid: Option<u32>) -> Self {
        Self {}
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
