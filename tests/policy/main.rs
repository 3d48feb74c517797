//! The permission policy as a whole: the table of verdicts, its properties, its keys.

mod fixture;

use agentcraft_tui::policy::{Role, judge};

use fixture::{Machine, call, unescape, word};

/// Runs a table of cases and lists every verdict that differs.
fn run_table(table: &str) -> (usize, Vec<String>) {
    let machine = Machine::linked();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in table.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, role, tool, input, verdict, _class] = fields.as_slice() else { panic!("not six fields: {line}") };
        let role = match *role {
            "lead" => Role::Lead,
            "worker" => Role::Worker,
            other => panic!("no role: {other}"),
        };
        let input = unescape(&machine.fill(input));
        let answer = judge(&call(tool, &input), &machine.area(role));
        count += 1;
        if word(&answer) != *verdict {
            wrong.push(format!("{id} wants {verdict}: {input}\n      got {answer:?}"));
        }
    }
    (count, wrong)
}

/// Every verdict of the agreed table holds, on the machine that it describes.
#[test]
fn the_agreed_table_holds() {
    let (count, wrong) = run_table(include_str!("cases.tsv"));
    assert_eq!(count, 227);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
