//! How long judging takes, beside `bash -n` in a process of its own.
//!
//! Run with `cargo bench --bench policy`.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use agentcraft_tui::policy::{Area, Role, ToolCall, judge};
use divan::Bencher;
use serde_json::json;

fn main() {
    divan::main();
}

const COMMANDS: [&str; 8] = [
    "ls -la src docs",
    "git status -sb && git diff --stat HEAD",
    "cargo test --workspace -- --nocapture 2>&1 | tail -20",
    "git add -A && git commit -m \"$(cat <<'EOF'\nParse the retry budget\n\nIt's bounded now.\nEOF\n)\"",
    "find src -name '*.rs' -exec grep -Hn TODO {} +",
    "for f in $(git ls-files '*.rs'); do wc -l \"$f\"; done",
    "sed -n '5,25p' src/main.rs | awk '{print $1}' | sort | uniq -c | sort -rn | head",
    "bash -c 'cd src && if [ -f lib.rs ]; then cat lib.rs; fi' > build/out.txt",
];

fn area() -> (tempfile::TempDir, Area) {
    let keep = tempfile::TempDir::new().unwrap();
    let cwd = keep.path().join("worktree");
    for dir in [".git/objects", ".git/refs", "src", "docs", "build"] {
        std::fs::create_dir_all(cwd.join(dir)).unwrap();
    }
    for file in [".git/HEAD", ".git/config", "src/main.rs", "src/lib.rs"] {
        std::fs::write(cwd.join(file), "x\n").unwrap();
    }
    let area = Area {
        role: Role::Worker,
        git_dir: cwd.join(".git"),
        cwd,
        scratch: vec![keep.path().join("scratch")],
        read_dirs: Vec::new(),
        home: PathBuf::from("/home/nobody"),
        own_server: "crew".into(),
        lead_read_commands: Vec::new(),
    };
    (keep, area)
}

fn command(text: &str) -> ToolCall {
    ToolCall { tool: "Bash".into(), input: json!({ "command": text }) }
}

#[divan::bench(args = COMMANDS)]
fn judge_command(bencher: Bencher<'_, '_>, text: &str) {
    let (_keep, area) = area();
    let call = command(text);
    bencher.bench(|| judge(black_box(&call), &area));
}

#[divan::bench]
fn judge_a_long_here_document(bencher: Bencher<'_, '_>) {
    let (_keep, area) = area();
    let call = command(&format!("cat > src/x.rs <<'EOF'\n{}EOF\n", "let x = \"it's\"; // $(id)\n".repeat(2_000)));
    bencher.bench(|| judge(black_box(&call), &area));
}

#[divan::bench]
fn judge_an_edit(bencher: Bencher<'_, '_>) {
    let (_keep, area) = area();
    let call = ToolCall { tool: "Edit".into(), input: json!({ "file_path": "src/net/client.rs" }) };
    bencher.bench(|| judge(black_box(&call), &area));
}

/// The scale: what a syntax check by bash costs.
#[divan::bench(args = COMMANDS, sample_count = 20)]
fn bash_syntax_check(text: &str) -> bool {
    Command::new("bash").args(["-n", "-c", text]).stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}
