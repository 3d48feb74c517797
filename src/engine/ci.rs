//! Running a repository's tests: which command, how long, and what its output says.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::process::{ChildSpec, run};

/// Longest test run.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Output kept for people and prompts.
const LINES: usize = 40;
const CHARS: usize = 3000;
/// Names of failed tests kept.
const FAILURES: usize = 20;

/// What a test run gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CiRun {
    NoCommand,
    Finished {
        command: String,
        passed: bool,
        duration_ms: u64,
        output: String,
        summary: Option<String>,
        failures: Vec<String>,
    },
    Broken(String),
}

/// The test command of the files in a directory.
pub fn detect(dir: &Path) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    if let Some(text) = read("package.json")
        && let Ok(json) = serde_json::from_str::<serde_json::Value>(&text)
        && let Some(test) = json.pointer("/scripts/test").and_then(serde_json::Value::as_str)
        && !test.contains("no test specified")
    {
        return Some("npm test --silent".to_owned());
    }
    if dir.join("Cargo.toml").is_file() {
        return Some("cargo test".to_owned());
    }
    if dir.join("go.mod").is_file() {
        return Some("go test ./...".to_owned());
    }
    if dir.join("pyproject.toml").is_file() || dir.join("pytest.ini").is_file() {
        return Some("python -m pytest -q".to_owned());
    }
    if read("Makefile").is_some_and(|text| text.lines().any(|line| line.starts_with("test:"))) {
        return Some("make test".to_owned());
    }
    ["test/run.sh", "tests/run.sh", "test.sh"]
        .into_iter()
        .find(|name| dir.join(name).is_file())
        .map(|name| format!("sh {name}"))
}

/// Runs the tests of a directory; `command` overrides what would be detected.
pub async fn run_ci(
    dir: &Path,
    command: Option<String>,
    mut env: Vec<(OsString, OsString)>,
    cancel: CancellationToken,
) -> CiRun {
    let Some(command) = command.or_else(|| detect(dir)) else { return CiRun::NoCommand };
    env.extend([("CI", "1"), ("FORCE_COLOR", "0"), ("NO_COLOR", "1")].map(|(key, value)| (key.into(), value.into())));
    let start = Instant::now();
    let child = ChildSpec::shell(&command, dir.to_owned(), env);
    match run(child, TIMEOUT, cancel).await {
        Err(error) => CiRun::Broken(format!("{command}: {error}")),
        Ok(done) if done.cancelled => CiRun::Broken(format!("{command} was stopped")),
        Ok(done) => {
            let duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut output = tail(&done.output);
            if done.timed_out {
                output.push_str(&format!("\n(stopped after {} s)", TIMEOUT.as_secs()));
            }
            CiRun::Finished {
                passed: done.ok(),
                duration_ms,
                output,
                summary: summary(&done.output),
                failures: failures(&done.output),
                command,
            }
        }
    }
}

/// The last lines, within both bounds.
fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let text = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n");
    let over = text.chars().count().saturating_sub(CHARS);
    text.chars().skip(over).collect()
}

/// "tests 15, pass 12, fail 3", from what test runners print at their end.
pub fn summary(output: &str) -> Option<String> {
    let (mut tests, mut pass, mut fail) = (None, None, None);
    for line in output.lines() {
        let line = line.trim();
        // "# tests 15" of TAP; newer node prints the same behind an information sign.
        let counted = line.strip_prefix("# ").or_else(|| line.strip_prefix("\u{2139} "));
        if let Some(counted) = counted {
            let mut words = counted.split_whitespace();
            if let (Some(word), Some(number)) = (words.next(), words.next().and_then(|n| n.parse::<u64>().ok())) {
                match word {
                    "tests" => tests = Some(number),
                    "pass" => pass = Some(number),
                    "fail" => fail = Some(number),
                    _ => {}
                }
            }
        }
        // cargo: "test result: ok. 3 passed; 0 failed; ..."
        if let Some(result) = line.strip_prefix("test result: ") {
            let number = |word: &str| {
                result.split([';', '.']).find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
            };
            if let (Some(passed), Some(failed)) = (number(" passed"), number(" failed")) {
                pass = Some(pass.unwrap_or(0) + passed);
                fail = Some(fail.unwrap_or(0) + failed);
                tests = Some(pass.unwrap_or(0) + fail.unwrap_or(0));
            }
        }
        // pytest: "3 passed, 1 failed in 0.12s"
        if line.contains(" in ") && (line.contains(" passed") || line.contains(" failed")) {
            let number = |word: &str| {
                let words: Vec<&str> = line.split([' ', ',', '=']).filter(|part| !part.is_empty()).collect();
                let at = words.iter().position(|part| *part == word)?;
                words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
            };
            let (passed, failed) = (number("passed"), number("failed"));
            if passed.is_some() || failed.is_some() {
                pass = Some(passed.unwrap_or(0));
                fail = Some(failed.unwrap_or(0));
                tests = Some(passed.unwrap_or(0) + failed.unwrap_or(0));
            }
        }
    }
    let tests = tests?;
    Some(format!("tests {tests}, pass {}, fail {}", pass.unwrap_or(0), fail.unwrap_or(0)))
}

/// Names of failed tests, each once.
fn failures(output: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in output.lines() {
        let line = line.trim();
        let name = if let Some(rest) = line.strip_prefix("not ok ") {
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == '-').to_owned()
        } else if line.starts_with('✗') || line.starts_with('✖') || line.starts_with("FAIL") {
            line.to_owned()
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            name.to_owned()
        } else {
            continue;
        };
        if !name.is_empty() && !names.contains(&name) && names.len() < FAILURES {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_common_runners_are_read() {
        assert_eq!(summary("# tests 15\n# pass 12\n# fail 3\n").as_deref(), Some("tests 15, pass 12, fail 3"));
        assert_eq!(summary("ℹ tests 2\nℹ pass 2\nℹ fail 0").as_deref(), Some("tests 2, pass 2, fail 0"));
        let cargo = "test result: ok. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(summary(cargo).as_deref(), Some("tests 4, pass 3, fail 1"));
        assert_eq!(summary("=== 3 passed, 1 failed in 0.12s ===").as_deref(), Some("tests 4, pass 3, fail 1"));
        assert_eq!(summary("all good"), None);
    }

    #[test]
    fn failures_are_named_once() {
        let output = "not ok 3 - keeps hyphens\nnot ok 3 - keeps hyphens\ntest a::b ... FAILED\nok 1 - fine\n";
        assert_eq!(failures(output), ["keeps hyphens", "a::b"]);
    }

    #[test]
    fn the_command_follows_from_the_files() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(detect(dir.path()), None);
        std::fs::create_dir(dir.path().join("test")).unwrap();
        std::fs::write(dir.path().join("test/run.sh"), "").unwrap();
        assert_eq!(detect(dir.path()).as_deref(), Some("sh test/run.sh"));
        let placeholder = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
        std::fs::write(dir.path().join("package.json"), placeholder).unwrap();
        assert_eq!(detect(dir.path()).as_deref(), Some("sh test/run.sh"));
        std::fs::write(dir.path().join("package.json"), r#"{"scripts":{"test":"node --test"}}"#).unwrap();
        assert_eq!(detect(dir.path()).as_deref(), Some("npm test --silent"));
    }
}
