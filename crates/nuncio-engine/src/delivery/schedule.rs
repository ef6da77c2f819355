//! Whose turn it is: one call per webhook, a few per host, not too many in all.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::WebhookKey;
use super::call::Health;
use super::turn::{Progress, TurnEnd};

type Key = Arc<WebhookKey>;

/// The webhooks that have something to get.
#[derive(Debug)]
pub(super) struct Schedule {
    lines: HashMap<Key, Line>,
    hosts: HashMap<Arc<str>, Host>,
    /// Hosts that have a webhook ready and may take a call, in the order of their turns.
    open: VecDeque<Arc<str>>,
    timers: BTreeSet<(Instant, Key)>,
    running: usize,
    max_running: usize,
    max_per_host: usize,
    /// Failures in a row after which a host gets one call at a time.
    break_after: u32,
}

#[derive(Debug)]
struct Line {
    host: Arc<str>,
    progress: Progress,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// A turn goes on; whether something has happened since it began.
    Running {
        again: bool,
    },
    Waiting(Instant),
}

#[derive(Debug, Default)]
struct Host {
    /// Webhooks there that have something to get.
    lines: usize,
    running: usize,
    ready: VecDeque<Key>,
    is_open: bool,
    /// Calls in a row that have failed, whoever they were for.
    failures: u32,
}

/// A turn to take.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) key: Key,
    pub(super) host: Arc<str>,
    pub(super) progress: Progress,
    /// What the last call of the turn said of the host.
    pub(super) health: Health,
}

impl Schedule {
    pub(super) fn new(max_running: usize, max_per_host: usize, break_after: u32) -> Self {
        Self {
            lines: HashMap::new(),
            hosts: HashMap::new(),
            open: VecDeque::new(),
            timers: BTreeSet::new(),
            running: 0,
            max_running: max_running.max(1),
            max_per_host: max_per_host.max(1),
            break_after,
        }
    }

    /// How many webhooks have something to get.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Adds a webhook that may have something to get; a changed one does not wait any longer.
    pub(super) fn add(&mut self, key: WebhookKey, host: Arc<str>, changed: bool) {
        let key = Arc::new(key);
        let state = self.lines.get_mut(&key).map(|line| &mut line.state);
        match state {
            None => {
                self.hosts.entry(Arc::clone(&host)).or_default().lines += 1;
                let line = Line {
                    host,
                    progress: Progress::default(),
                    state: State::Ready,
                };
                self.lines.insert(Arc::clone(&key), line);
                self.make_ready(key);
            }
            Some(State::Running { again }) => *again = true,
            Some(State::Waiting(at)) if changed => {
                let timer = (*at, Arc::clone(&key));
                self.timers.remove(&timer);
                self.make_ready(key);
            }
            Some(State::Waiting(_) | State::Ready) => {}
        }
    }

    fn make_ready(&mut self, key: Key) {
        let Some(line) = self.lines.get_mut(&key) else {
            return;
        };
        line.state = State::Ready;
        let name = Arc::clone(&line.host);
        self.hosts
            .entry(Arc::clone(&name))
            .or_default()
            .ready
            .push_back(key);
        self.open_host(&name);
    }

    /// Puts a host in line if it can take a call, and forgets it if nothing is to do there.
    fn open_host(&mut self, name: &Arc<str>) {
        let Some(host) = self.hosts.get_mut(name) else {
            return;
        };
        let bound = if host.failures < self.break_after {
            self.max_per_host
        } else {
            1
        };
        if host.running == 0 && host.lines == 0 {
            self.hosts.remove(name);
        } else if !host.is_open && !host.ready.is_empty() && host.running < bound {
            host.is_open = true;
            self.open.push_back(Arc::clone(name));
        }
    }

    /// Draws the consequences of a call for its host: one that fails for everybody is probed by
    /// one call at a time, until one is answered.
    fn note_health(&mut self, name: &Arc<str>, health: Health) {
        let Some(host) = self.hosts.get_mut(name) else {
            return;
        };
        match health {
            Health::Unknown => {}
            Health::Good => {
                if host.failures >= self.break_after {
                    tracing::info!(webhook.host = &**name, "a host of webhooks answers again");
                }
                host.failures = 0;
            }
            Health::Bad => {
                host.failures = host.failures.saturating_add(1);
                if host.failures == self.break_after {
                    tracing::warn!(
                        webhook.host = &**name,
                        "a host of webhooks fails and gets one call at a time"
                    );
                }
            }
        }
    }

    /// Counts a webhook out of its host.
    fn leave_host(&mut self, name: &Arc<str>) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.lines -= 1;
        }
    }

    /// The next turn, if one may begin now.
    pub(super) fn next(&mut self) -> Option<Turn> {
        while self.running < self.max_running {
            let name = self.open.pop_front()?;
            let Some(host) = self.hosts.get_mut(&name) else {
                continue;
            };
            host.is_open = false;
            let key = host.ready.pop_front();
            let line = key.as_ref().and_then(|key| self.lines.get_mut(key));
            if let (Some(key), Some(line)) = (key, line) {
                line.state = State::Running { again: false };
                host.running += 1;
                self.running += 1;
                let progress = line.progress.clone();
                self.open_host(&name);
                return Some(Turn {
                    key,
                    host: name,
                    progress,
                    health: Health::Unknown,
                });
            }
            self.open_host(&name);
        }
        None
    }

    /// Takes back a turn.
    pub(super) fn finish(&mut self, turn: Turn, end: TurnEnd) {
        let Turn {
            key,
            host: name,
            progress,
            health,
        } = turn;
        self.running -= 1;
        self.note_health(&name, health);
        if let Some(host) = self.hosts.get_mut(&name) {
            host.running -= 1;
        }
        if let Some(line) = self.lines.get_mut(&key) {
            line.progress = progress;
            let again = line.state == State::Running { again: true };
            match end {
                TurnEnd::Idle if !again => {
                    self.lines.remove(&key);
                    self.leave_host(&name);
                }
                TurnEnd::Idle | TurnEnd::More => self.make_ready(key),
                TurnEnd::Elsewhere(host) => {
                    self.hosts.entry(Arc::clone(&host)).or_default().lines += 1;
                    line.host = host;
                    self.leave_host(&name);
                    self.make_ready(key);
                }
                TurnEnd::Later(at) => {
                    line.state = State::Waiting(at);
                    self.timers.insert((at, key));
                }
            }
        }
        self.open_host(&name);
    }

    /// When the next webhook has waited long enough.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Makes those ready that have waited long enough.
    pub(super) fn ring(&mut self, now: Instant) {
        while self.next_timer().is_some_and(|at| at <= now) {
            if let Some((_, key)) = self.timers.pop_first() {
                self.make_ready(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nuncio_store::Scope;

    use super::*;

    fn key(task: &str) -> WebhookKey {
        let scope = Scope {
            workspace: "w".into(),
            agent: "a".into(),
            caller: "c".into(),
        };
        ((scope, task.into()), "hook".into())
    }

    fn add(schedule: &mut Schedule, task: &str, host: &str) {
        schedule.add(key(task), host.into(), false);
    }

    fn task(turn: &Turn) -> &str {
        turn.key.0.1.as_str()
    }

    /// PUSH-08: a host that is slow keeps nobody from the others.
    #[tokio::test(start_paused = true)]
    async fn hosts_take_turns_within_their_bounds() {
        let mut schedule = Schedule::new(4, 2, 3);
        for n in 0..5 {
            add(&mut schedule, &format!("slow {n}"), "slow");
        }
        add(&mut schedule, "other", "other");
        let turns: Vec<Turn> = std::iter::from_fn(|| schedule.next()).collect();
        let tasks: Vec<&str> = turns.iter().map(task).collect();
        assert_eq!(tasks, ["slow 0", "other", "slow 1"], "two per host");
        for turn in turns {
            schedule.finish(turn, TurnEnd::Idle);
        }
        let mut rest = 0;
        while let Some(turn) = schedule.next() {
            rest += 1;
            schedule.finish(turn, TurnEnd::Idle);
        }
        assert_eq!((rest, schedule.len(), schedule.hosts.len()), (3, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_during_a_turn_gets_another_one() {
        let mut schedule = Schedule::new(4, 2, 3);
        add(&mut schedule, "t", "host");
        let turn = schedule.next().unwrap();
        add(&mut schedule, "t", "host");
        assert!(schedule.next().is_none(), "one at a time");
        schedule.finish(turn, TurnEnd::Idle);
        let turn = schedule.next().unwrap();
        schedule.finish(turn, TurnEnd::Idle);
        assert!(schedule.next().is_none());
        assert_eq!(schedule.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_woken_by_time_or_by_a_change() {
        let mut schedule = Schedule::new(4, 2, 3);
        let in_a_minute = Instant::now() + Duration::from_secs(60);
        for changed in [false, true] {
            schedule.add(key("t"), "host".into(), changed);
            let turn = schedule.next().unwrap();
            schedule.finish(turn, TurnEnd::Later(in_a_minute));
            add(&mut schedule, "t", "host");
            assert!(schedule.next().is_none(), "a new event does not hurry it");
        }
        schedule.ring(in_a_minute);
        assert!(schedule.next().is_some());
        assert_eq!(schedule.next_timer(), None);
    }

    /// S06: a host that fails for everybody is probed by one call at a time, until it answers.
    #[tokio::test(start_paused = true)]
    async fn a_host_that_fails_gets_one_call_at_a_time() {
        let mut schedule = Schedule::new(64, 8, 3);
        for n in 0..40 {
            add(&mut schedule, &format!("down {n:02}"), "down");
        }
        let begin = |schedule: &mut Schedule| -> Vec<Turn> {
            std::iter::from_fn(|| schedule.next()).collect()
        };
        let mut calls = begin(&mut schedule);
        assert_eq!(calls.len(), 8);
        let in_an_hour = Instant::now() + Duration::from_secs(3_600);
        let mut made = 0;
        let fail = |schedule: &mut Schedule, calls: Vec<Turn>| {
            for mut turn in calls {
                turn.health = Health::Bad;
                schedule.finish(turn, TurnEnd::Later(in_an_hour));
            }
        };
        while made < 30 {
            made += calls.len();
            fail(&mut schedule, calls);
            calls = begin(&mut schedule);
            assert_eq!(calls.len(), 1, "after {made} calls");
        }
        add(&mut schedule, "good", "good");
        let good = schedule.next().unwrap();
        assert_eq!(task(&good), "good", "others are not held up");
        schedule.finish(good, TurnEnd::Idle);
        let mut probe = calls.remove(0);
        probe.health = Health::Good;
        schedule.finish(probe, TurnEnd::Idle);
        assert_eq!(begin(&mut schedule).len(), 8, "it answers again");
    }
}
