//! The compliance report for the a2a-cli specification cannot rot: what it names exists, and its
//! sums are right. That the named tests pass is their own affair.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What the report says about one requirement.
#[derive(Debug, Default)]
struct Requirement {
    tier: String,
    status: String,
    note: String,
    evidence: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn report() -> String {
    fs::read_to_string(root().join("docs/cli-compliance.yaml")).unwrap()
}

/// The block of YAML under a name at the margin.
fn block<'a>(report: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!("{name}:");
    let lines = report.lines().skip_while(|line| *line != start).skip(1);
    let block: Vec<&str> = lines
        .take_while(|line| !line.starts_with(char::is_alphabetic))
        .collect();
    assert!(!block.is_empty(), "no {name}");
    block
}

fn requirements(report: &str) -> BTreeMap<String, Requirement> {
    let mut all: BTreeMap<String, Requirement> = BTreeMap::new();
    let mut current = String::new();
    for line in block(report, "requirements") {
        if let Some(id) = line.strip_prefix("  A2ACLI_") {
            id.trim_end_matches(':').clone_into(&mut current);
            let known = all.insert(current.clone(), Requirement::default());
            assert!(known.is_none(), "{current} stands there twice");
            continue;
        }
        let Some(requirement) = all.get_mut(&current) else {
            continue;
        };
        let line = line.trim();
        if let Some(test) = line.strip_prefix("- ") {
            requirement.evidence.push(test.to_owned());
        } else if let Some((name, value)) = line.split_once(": ") {
            match name {
                "tier" => value.clone_into(&mut requirement.tier),
                "status" => value.clone_into(&mut requirement.status),
                "note" => value.clone_into(&mut requirement.note),
                _ => {}
            }
        }
    }
    all
}

/// The specification has 39, 15 and 12 requirements, each with a status that it knows.
#[test]
fn every_requirement_is_reported_and_the_sums_are_right() {
    let report = report();
    let all = requirements(&report);
    let mut satisfied = true;
    for (tier, total) in [("1", 39), ("2", 15), ("3", 12)] {
        let mut sums = BTreeMap::from(
            ["pass", "partial", "fail", "not_measured", "na"].map(|status| (status, 0)),
        );
        for (id, requirement) in all.iter().filter(|(_, r)| r.tier == tier) {
            let sum = sums.get_mut(&*requirement.status);
            *sum.unwrap_or_else(|| panic!("{id}: {requirement:?}")) += 1;
        }
        satisfied &= sums["pass"] + sums["na"] == total;
        let line = format!(
            "  tier_{tier}: {{total: {total}, pass: {}, partial: {}, fail: {}, not_measured: {}, na: {}, satisfied: {satisfied}}}",
            sums["pass"], sums["partial"], sums["fail"], sums["not_measured"], sums["na"]
        );
        assert!(block(&report, "summary").contains(&&*line), "{line}");
    }
    assert_eq!(all.len(), 39 + 15 + 12);
}

#[test]
fn tier_1_has_no_failure_and_its_defaults_are_whole() {
    let report = report();
    for (id, requirement) in requirements(&report) {
        let good = matches!(&*requirement.status, "pass" | "na");
        assert!(requirement.tier != "1" || good, "{id}: {requirement:?}");
    }
    let defaults = block(&report, "default_001_breakdown");
    let whole = |line: &&&str| line.contains("{shipped: yes, overridable: yes,");
    assert_eq!(defaults.iter().filter(whole).count(), 6, "{defaults:?}");
}

#[test]
fn every_named_test_exists_and_every_gap_has_a_reason() {
    for (id, requirement) in requirements(&report()) {
        if requirement.status == "pass" {
            assert!(!requirement.evidence.is_empty(), "{id} has no evidence");
        } else {
            assert!(requirement.note.len() > 4, "{id} has no reason");
        }
        for test in &requirement.evidence {
            let (file, name) = test.split_once("::").unwrap();
            let source = fs::read_to_string(root().join(file));
            let source = source.unwrap_or_else(|error| panic!("{id}: {file}: {error}"));
            assert!(is_test(&source, name), "{id}: there is no test {test}");
        }
    }
}

fn is_test(source: &str, name: &str) -> bool {
    let function = format!("fn {name}() {{");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| *line == function);
    at.is_some_and(|at| lines[at - 1] == "#[test]")
}

#[test]
fn the_codes_of_the_report_are_those_of_the_program() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/outcome.rs");
    let source = fs::read_to_string(source).unwrap();
    let report = report();
    let codes = block(&report, "error_codes");
    let codes = codes
        .iter()
        .filter_map(|line| line.split_once(": {emitted: yes"));
    let codes: Vec<String> = codes
        .map(|(code, _)| format!("\"{}\"", code.trim()))
        .collect();
    assert_eq!(codes.len(), source.matches("\"A2ACLI_ERR_").count());
    for code in codes {
        assert!(source.contains(&code), "{code}");
    }
}

#[test]
fn there_is_one_small_skill_that_points_at_the_help() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
    let skills: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert_eq!(skills.len(), 1);
    let skill = fs::read_to_string(skills[0].as_ref().unwrap().path().join("SKILL.md")).unwrap();
    assert!(skill.contains("nuncio help") && skill.contains("nuncio <command> --help"));
    assert!(skill.lines().count() < 60);
    for rule in ["MUST", "SHOULD", "A2ACLI_SEND", "SPEC"] {
        assert!(!skill.contains(rule), "{rule}");
    }
}
