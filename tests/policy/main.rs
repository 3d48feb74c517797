//! The permission policy as a whole: the table of verdicts, its properties, its keys.

mod fixture;
mod keys;
mod properties;
mod repository;

use agentcraft_tui::policy::{Role, judge};

use fixture::{Machine, call, unescape, word};

pub(crate) const AGREED: &str = include_str!("cases.tsv");
pub(crate) const FURTHER: &str = include_str!("more-cases.tsv");

/// The lines of a table: id, role, tool, input (placeholders and escapes as in the file), verdict.
pub(crate) fn rows(table: &str) -> Vec<(&str, Role, &str, &str, &str)> {
    let mut rows = Vec::new();
    for line in table.lines().skip(1).filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, role, tool, input, verdict, _class] = fields.as_slice() else { panic!("not six fields: {line}") };
        let role = match *role {
            "lead" => Role::Lead,
            "worker" => Role::Worker,
            other => panic!("no role: {other}"),
        };
        rows.push((*id, role, *tool, *input, *verdict));
    }
    rows
}

/// Runs a table of cases and lists every verdict that differs.
fn run_table(table: &str) -> (usize, Vec<String>) {
    let machine = Machine::linked();
    let (mut count, mut wrong) = (0, Vec::new());
    for (id, role, tool, input, verdict) in rows(table) {
        let input = unescape(&machine.fill(input));
        let answer = judge(&call(tool, &input), &machine.area(role));
        count += 1;
        if word(&answer) != verdict {
            wrong.push(format!("{id} wants {verdict}: {input}\n      got {answer:?}"));
        }
    }
    (count, wrong)
}

/// Every verdict of the agreed table holds, on the machine that it describes.
#[test]
fn the_agreed_table_holds() {
    let (count, wrong) = run_table(AGREED);
    assert_eq!(count, 227);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Our own cases: published bypasses first, then spellings, wrappers, paths and programs.
#[test]
fn the_further_cases_hold() {
    let (count, wrong) = run_table(FURTHER);
    assert!(count >= 300, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
