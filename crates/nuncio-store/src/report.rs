//! What is found out about a database as a whole.

const MAX_PROBLEMS: usize = 100;

/// What a check of a database has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// How many tasks there are.
    pub tasks: u64,
    /// How many events their logs hold.
    pub events: u64,
    /// How many tasks refer to large parts that were not looked at, for they are elsewhere.
    pub parts_elsewhere: u64,
    /// What is wrong, in sentences, the first hundred of them; empty if the database is sound.
    pub problems: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn note(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

/// In which shape a database is, and which this program knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaReport {
    /// The steps that the database has taken.
    pub found: usize,
    /// The steps that this program knows; with fewer it does not open the database.
    pub known: usize,
    /// Runs that a process which opens it now has to take up.
    pub unfinished: u64,
}
