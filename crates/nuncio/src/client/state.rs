//! Task states as people write and read them.

use std::str::FromStr;

use nuncio_protocol::TaskState;

/// A state by its name on the wire or the short form of it, in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateName(pub(crate) TaskState);

impl FromStr for StateName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.to_ascii_uppercase().replace('-', "_");
        let found = TaskState::ALL.iter().find(|state| {
            **state != TaskState::Unspecified
                && (state.as_str() == wanted || short(**state) == wanted)
        });
        found.map(|state| Self(*state)).ok_or_else(|| {
            let names: Vec<String> = TaskState::ALL[1..]
                .iter()
                .map(|state| short(*state).to_ascii_lowercase())
                .collect();
            format!("one of: {}", names.join(", "))
        })
    }
}

/// The name without its prefix: `COMPLETED`.
pub(crate) fn short(state: TaskState) -> &'static str {
    state.as_str().trim_start_matches("TASK_STATE_")
}

/// Whether a wait is over: the task has ended or waits for somebody.
pub(crate) fn is_resting(state: TaskState) -> bool {
    state.is_terminal() || state.is_interrupted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_names_are_understood() {
        for text in [
            "input-required",
            "INPUT_REQUIRED",
            "TASK_STATE_INPUT_REQUIRED",
        ] {
            assert_eq!(
                text.parse(),
                Ok(StateName(TaskState::InputRequired)),
                "{text}"
            );
        }
        assert!("unspecified".parse::<StateName>().is_err());
        assert!(
            "done"
                .parse::<StateName>()
                .unwrap_err()
                .contains("completed")
        );
    }
}
