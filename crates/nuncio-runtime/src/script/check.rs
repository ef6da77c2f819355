//! Finding what is wrong with a script before anybody talks to it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Artifact, Content, Pause, PauseReason, Rule, Step, When};

/// One thing wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, from the list of rules: `[2].steps[0].artifact`.
    pub path: String,
    /// What.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rules{}: {}", self.path, self.message)
    }
}

/// Everything wrong with these rules, in order.
pub fn check(rules: &[Rule]) -> Vec<Fault> {
    let mut found = Found::default();
    if rules.is_empty() {
        found.add(
            "",
            "a script needs at least one rule",
            "add a rule with `otherwise = true`",
        );
    }
    for (index, rule) in rules.iter().enumerate() {
        found.rule(&format!("[{index}]"), rule, index + 1 == rules.len());
    }
    found.0
}

pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// How many times a repeat may run, nested content included.
const MAX_REPEATS: u32 = 1_000_000;

#[derive(Default)]
struct Found(Vec<Fault>);

impl Found {
    fn add(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        let (message, hint) = (message.into(), hint.into());
        self.0.push(Fault {
            path: path.to_owned(),
            message,
            hint,
        });
    }

    fn rule(&mut self, path: &str, rule: &Rule, last: bool) {
        match (&rule.when, rule.otherwise) {
            (Some(_), true) => self.add(
                path,
                "a rule has either `when` or `otherwise`",
                "keep one of the two",
            ),
            (None, false) => self.add(
                path,
                "a rule needs `when`",
                "say which messages it is for, or `otherwise = true` in the last rule",
            ),
            (Some(when), false) if *when == When::default() => self.add(
                &format!("{path}.when"),
                "`when` has no condition",
                "add one such as `text = \"…\"`, or use `otherwise = true` in the last rule",
            ),
            (None, true) if !last => self.add(
                &format!("{path}.otherwise"),
                "rules after `otherwise` never match",
                "move this rule to the end",
            ),
            _ => {}
        }
        self.steps(&format!("{path}.steps"), &rule.steps, true);
    }

    fn steps(&mut self, path: &str, steps: &[Step], may_reply: bool) {
        let mut ended = false;
        for (index, step) in steps.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if ended {
                self.add(
                    &path,
                    "this step is never played",
                    "the step before it ends the turn",
                );
                return;
            }
            ended = step.ends();
            let replies = matches!(step, Step::Message(_));
            let first = steps[..index]
                .iter()
                .all(|before| matches!(before, Step::WaitMs(_)));
            if replies && !(may_reply && first) {
                self.add(
                    &path,
                    "`message` answers without a task, but here there is one",
                    "use `artifact = { text = \"…\" }`",
                );
            }
            self.step(&path, step);
        }
    }

    fn step(&mut self, path: &str, step: &Step) {
        match step {
            Step::Artifact(artifact) => self.artifact(&format!("{path}.artifact"), artifact),
            Step::Pause(pause) => self.pause(&format!("{path}.pause"), pause),
            Step::Repeat(repeat) => {
                let path = format!("{path}.repeat");
                if repeat.times == 0 || repeat.times > MAX_REPEATS {
                    let message = format!("`times` is {}", repeat.times);
                    self.add(
                        &format!("{path}.times"),
                        message,
                        format!("1 to {MAX_REPEATS}"),
                    );
                }
                for (index, step) in repeat.steps.iter().enumerate() {
                    let path = format!("{path}.steps[{index}]");
                    if step.ends() || matches!(step, Step::Repeat(_)) {
                        self.add(
                            &path,
                            "this step cannot be repeated",
                            "repeat status, text, artifact and wait_ms only",
                        );
                    } else {
                        self.step(&path, step);
                    }
                }
            }
            _ => {}
        }
    }

    fn pause(&mut self, path: &str, pause: &Pause) {
        if pause.reason == PauseReason::Input && (pause.scheme.is_some() || pause.url.is_some()) {
            self.add(
                path,
                "`scheme` and `url` belong to an authorisation",
                "add `reason = \"auth\"`",
            );
        }
        self.steps(&format!("{path}.on_answer"), &pause.on_answer, false);
    }

    fn artifact(&mut self, path: &str, artifact: &Artifact) {
        let own = Artifact {
            parts: Vec::new(),
            ..artifact.clone()
        }
        .contents();
        let forms = [
            !own.is_empty(),
            !artifact.parts.is_empty(),
            !artifact.chunks.is_empty(),
        ];
        if forms.into_iter().filter(|form| *form).count() != 1 {
            self.add(
                path,
                "an artifact has either one content, or `parts`, or `chunks`",
                "keep exactly one, such as `text = \"…\"`",
            );
            return;
        }
        if artifact.append && artifact.id.is_none() {
            let hint = "give this piece and the first one the same `id`";
            self.add(path, "`append` needs the `id` of an earlier artifact", hint);
        }
        for content in &own {
            self.content(path, content);
        }
        for (index, content) in artifact.parts.iter().enumerate() {
            self.content(&format!("{path}.parts[{index}]"), content);
        }
    }

    fn content(&mut self, path: &str, content: &Content) {
        let kinds = [
            content.text.is_some(),
            content.raw.is_some(),
            content.url.is_some(),
            content.data.is_some(),
            content.json.is_some(),
        ];
        if kinds.into_iter().filter(|kind| *kind).count() != 1 {
            self.add(
                path,
                "a content is exactly one of text, raw, url, data, json",
                "put several contents into `parts`",
            );
        }
        if content
            .raw
            .as_deref()
            .is_some_and(|raw| decode_base64(raw).is_none())
        {
            self.add(
                &format!("{path}.raw"),
                "not base64",
                "`printf %s hello | base64`",
            );
        }
        let json = content
            .json
            .as_deref()
            .map(serde_json::from_str::<serde::de::IgnoredAny>);
        if let Some(Err(error)) = json {
            self.add(
                &format!("{path}.json"),
                format!("not JSON: {error}"),
                "check the quotes",
            );
        }
    }
}
