//! A team in the middle of its work: six agents, nine tasks, logs with diffs and errors, a permission, a question and
//! a merge that wait for the person.

use agentcraft_tui::protocol::*;

/// 2026-12-01 12:00:00 UTC.
pub const NOON: EpochMs = 1_796_126_400_000;

const MINUTE: EpochMs = 60_000;

fn agent(id: &str, title: &str, color: &str, state: AgentState, activity: &str, station: Station) -> Agent {
    let mut name = id.to_owned();
    name[..1].make_ascii_uppercase();
    Agent {
        id: id.into(),
        name,
        role: if id == "marlow" { AgentRole::Lead } else { AgentRole::Worker },
        title: Some(title.to_owned()),
        color: Color::try_from(color.to_owned()).unwrap(),
        accent: None,
        skin: id.to_owned(),
        state,
        activity: activity.to_owned(),
        station,
        task_id: None,
        repo_id: None,
        worktree: None,
        paused: false,
        active: true,
    }
}

fn on_task(mut agent: Agent, task: &str) -> Agent {
    agent.task_id = Some(task.into());
    agent.repo_id = Some("pocket-notes".into());
    agent.worktree = Some(format!("{}-{task}", agent.id).into());
    agent
}

fn agents() -> Vec<Agent> {
    use AgentState as S;
    vec![
        agent("marlow", "Foreman & architect", "#3D4580", S::Thinking, "reviewing t4", Station::MergeStation),
        on_task(agent("juniper", "Researcher", "#8E66BF", S::Editing, "editing src/cli.ts", Station::Desk), "t3"),
        on_task(
            agent("kit", "Builder & tester", "#3C74B3", S::Testing, "testing: node --test", Station::Testbench),
            "t5",
        ),
        on_task(agent("wren", "Interface designer", "#E0A2BF", S::WaitingUser, "waiting for you", Station::User), "t4"),
        agent("rowan", "Refactorer & reviewer", "#802F6E", S::Error, "API overloaded, retrying", Station::Desk),
        agent("tove", "Archivist & QA", "#98B2E2", S::Idle, "waiting for t3, t4", Station::Lounge),
    ]
}

struct Seed(&'static str, &'static str, TaskStatus, Option<&'static str>, &'static [&'static str], i64, CiStatus);

fn tasks() -> Vec<Task> {
    use CiStatus as C;
    use TaskStatus as S;
    let seeds = [
        Seed("t1", "Explore the repository and draft a plan", S::Done, Some("marlow"), &[], 0, C::Unknown),
        Seed("t2", "Tag parser module (src/tags.ts)", S::Done, Some("kit"), &["t1"], 2, C::Pass),
        Seed("t3", "`notes list --tag` and `notes tags`", S::Doing, Some("juniper"), &["t2"], 1, C::Running),
        Seed("t4", "Highlight #tags in list output", S::Review, Some("wren"), &["t1"], 1, C::Pass),
        Seed("t5", "Tag edge cases: unicode and punctuation", S::Doing, Some("kit"), &["t2"], 0, C::Fail),
        Seed("t6", "README and help text", S::Todo, Some("tove"), &["t3", "t4"], 0, C::Unknown),
        Seed("t7", "Publish 0.3.0 to npm", S::Blocked, None, &["t6"], -1, C::Unknown),
        Seed("t8", "QA on main", S::Todo, Some("tove"), &["t5", "t6"], 0, C::Unknown),
        Seed("t9", "Stretch: shell completion", S::Todo, Some("rowan"), &["t3"], -2, C::Unknown),
    ];
    seeds
        .iter()
        .zip(0u64..)
        .map(|(Seed(id, title, status, assignee, deps, priority, ci), n)| {
            let worktree = matches!(status, S::Doing | S::Review) || *id == "t2";
            Task {
                id: (*id).into(),
                title: (*title).to_owned(),
                description: Some("Notes carry #tags in their text. Parse them once, in one place, and let every command use it.\n\nKeep the storage format as it is.".to_owned()),
                status: *status,
                assignee: assignee.map(AgentId::from),
                deps: deps.iter().map(|d| TaskId::from(*d)).collect(),
                repo_id: Some("pocket-notes".into()),
                goal_id: Some("g1".into()),
                priority: *priority,
                branch: worktree.then(|| format!("agentcraft/{}/{id}-tags", assignee.unwrap_or("kit"))),
                worktree: worktree.then(|| format!("{}-{id}", assignee.unwrap_or("kit")).into()),
                ci: *ci,
                blocked_reason: (*status == S::Blocked).then(|| "needs your npm login: run `npm login`, then retry".to_owned()),
                summary: (*id == "t2").then(|| "Parser with 14 tests; unicode letters count as tag characters.".to_owned()),
                created_by: "marlow".to_owned(),
                created_at: NOON - (40 - n) * MINUTE,
                updated_at: NOON - (20 - n) * MINUTE,
            }
        })
        .collect()
}

fn decision(
    id: &str,
    agent: &str,
    kind: DecisionKind,
    question: &str,
    options: &[&str],
    context: &str,
    at: u64,
) -> Decision {
    Decision {
        id: id.into(),
        agent_id: agent.into(),
        kind,
        question: question.to_owned(),
        options: options.iter().map(|o| (*o).to_owned()).collect(),
        context: Some(context.to_owned()),
        status: DecisionStatus::Open,
        answer: None,
        task_id: None,
        repo_id: None,
        worktree: None,
        tool: None,
        created_at: NOON - at * MINUTE,
    }
}

pub fn permission() -> Decision {
    let mut d = decision(
        "d3",
        "wren",
        DecisionKind::Permission,
        "Run `npm install chalk@5` in the worktree?",
        &label::PERMISSION_OPTIONS,
        "Installs a package from the network, which can run its scripts.\ncwd: ~/pocket-notes (worktree wren-t4)\n\"Always allow for this agent\" covers: npm install chalk@5 in this repository",
        3,
    );
    d.task_id = Some("t4".into());
    d.tool = Some("Bash".to_owned());
    d
}

pub fn question() -> Decision {
    decision(
        "d4",
        "marlow",
        DecisionKind::Question,
        "Should `notes tags` count completed notes?",
        &["Only open notes (recommended)", "Include completed notes"],
        "The list command hides completed notes by default; counting them here would make the numbers differ.",
        2,
    )
}

pub fn merge() -> Decision {
    let mut d = decision(
        "d2",
        "kit",
        DecisionKind::Merge,
        "Merge agentcraft/kit/t5-tags into main?",
        &label::MERGE_OPTIONS,
        "Tags may now hold unicode letters, digits, - and _. Punctuation at the end is no part of a tag.\n\n src/tags.ts       | 18 ++++++++++----\n test/tags.test.ts | 42 +++++++++++++++++++++++++++++++\n 2 files changed, 55 insertions(+), 5 deletions(-)\n\nTests passed: node --test (24 tests)\nReviewed by Marlow: reads well, edge cases covered.",
        5,
    );
    d.task_id = Some("t5".into());
    d.repo_id = Some("pocket-notes".into());
    d.worktree = Some("kit-t5".into());
    d
}

fn worktree(id: &str, agent: &str, task: &str, status: WorktreeStatus, additions: u32, deletions: u32) -> Worktree {
    Worktree {
        id: id.into(),
        agent_id: agent.into(),
        task_id: Some(task.into()),
        branch: format!("agentcraft/{agent}/{task}-tags"),
        base: "main".to_owned(),
        path: format!("/home/ada/.agentcraft/default/worktrees/{id}"),
        status,
        ahead: 2,
        files: 3,
        additions,
        deletions,
    }
}

fn log(kind: LogKind, text: &str) -> LogEntry {
    LogEntry { ts: NOON, kind, text: text.to_owned() }
}

fn logs() -> Vec<AgentLogs> {
    use LogKind as K;
    let of = |id: &str, entries: Vec<LogEntry>| AgentLogs { agent_id: id.into(), entries };
    vec![
        of(
            "marlow",
            vec![
                log(
                    K::Text,
                    "The parser is merged. Wren's highlighting is next; I read her diff before it comes to you.",
                ),
                log(K::Tool, "Read src/format.ts"),
                log(K::Result, "86 lines"),
                log(K::Text, "~ The escape codes are written even when stdout is no terminal; that would break pipes."),
                log(K::Tool, "git diff main...agentcraft/wren/t4-tags --stat"),
                log(
                    K::Result,
                    " src/format.ts | 22 ++++++++++++++++++----\n test/format.test.ts | 31 ++++++++++++++++++++++++++\n 2 files changed, 49 insertions(+), 4 deletions(-)",
                ),
            ],
        ),
        of(
            "juniper",
            vec![
                log(K::Tool, "Grep \"parseArgs\""),
                log(K::Result, "src/cli.ts:12\nsrc/cli.ts:48"),
                log(K::Text, "`list` gets a --tag option that may be given more than once."),
                log(K::Tool, "Edit src/cli.ts"),
                log(
                    K::Diff,
                    "@@ -48,3 +48,6 @@\n-    const notes = await store.all();\n+    const wanted = values.tag ?? [];\n+    const notes = (await store.all())\n+      .filter((n) => wanted.every((t) => tagsOf(n.text).has(t)));",
                ),
                log(K::Tool, "$ node --test test/cli.test.ts"),
            ],
        ),
        of(
            "kit",
            vec![
                log(K::Text, "Unicode letters work; now punctuation at the end of a tag."),
                log(K::Tool, "Edit src/tags.ts"),
                log(K::Diff, "@@ -6,2 +6,2 @@\n-const TAG = /#(\\w+)/g;\n+const TAG = /#([\\p{L}\\p{N}_-]+)/gu;"),
                log(K::Tool, "$ node --test"),
                log(K::Result, "tests 24\npass 23\nfail 1"),
                log(K::Error, "not ok 17 - a tag before a full stop: expected \"ideas\", got \"ideas.\""),
            ],
        ),
        of(
            "wren",
            vec![
                log(K::Tool, "Edit src/format.ts"),
                log(
                    K::Diff,
                    "+import chalk from \"chalk\";\n+\n+export const tag = (t: string) => chalk.cyan(`#${t}`);",
                ),
                log(K::Text, "chalk is not installed in this repository; I ask before I add it."),
                log(K::Tool, "$ npm install chalk@5"),
            ],
        ),
        of(
            "rowan",
            vec![
                log(K::Text, "Nothing to review yet; I read the completion scripts of other tools."),
                log(K::Error, "API error 529: overloaded. Trying again in 8 s"),
            ],
        ),
        of("tove", vec![log(K::Text, "I begin with the README when t3 and t4 are merged.")]),
    ]
}

fn feed() -> Vec<FeedItem> {
    let item = |at: u64, kind, text: &str, agent: Option<&str>| FeedItem {
        ts: NOON - at * MINUTE,
        kind,
        text: text.to_owned(),
        agent_id: agent.map(AgentId::from),
        to: None,
    };
    use FeedKind as K;
    vec![
        item(41, K::Goal, "New goal: add #tags to pocket-notes", None),
        item(39, K::Plan, "Marlow planned 9 tasks", Some("marlow")),
        item(31, K::Task, "Kit started t2: Tag parser module", Some("kit")),
        item(22, K::Ci, "Tests passed for t2 (14 tests)", Some("kit")),
        item(20, K::Decision, "Kit needs you (merge review): t2", Some("kit")),
        item(18, K::User, "You merged t2", None),
        item(18, K::Merge, "Merged agentcraft/kit/t2-tag-parser into main (3f2a91c, 2 files)", Some("kit")),
        item(12, K::Message, "Kit: tagsOf() is on main, Juniper; it returns a Set", Some("kit")),
        item(9, K::Ci, "Tests failed for t5: 1 of 24", Some("kit")),
        item(6, K::Error, "Rowan: API error 529, overloaded", Some("rowan")),
        item(5, K::Decision, "Kit needs you (merge review): t5", Some("kit")),
        item(4, K::Memory, "Marlow wrote the note \"Conventions\"", Some("marlow")),
        item(3, K::Decision, "Wren needs you (permission): npm install chalk@5", Some("wren")),
        item(2, K::Decision, "Marlow needs you (question): count completed notes?", Some("marlow")),
    ]
}

fn notes() -> Vec<MemoryEntry> {
    let note = |id: &str, scope: &str, title: &str, body: &str, author: &str| MemoryEntry {
        id: id.into(),
        scope: scope.to_owned(),
        title: title.to_owned(),
        body: body.to_owned(),
        updated: NOON - 4 * MINUTE,
        author: Some(author.to_owned()),
    };
    vec![
        note(
            "shared/conventions",
            "shared",
            "Conventions",
            "# Conventions\n\nHow we write code here. Agreed with **Ada** on the first day.\n\n- ES modules, no build step; run with `node src/cli.ts`\n- tests beside the module, named `*.test.ts`\n- no dependency without asking\n\n## Tags\n\nA tag is `#` and letters, digits, `-` or `_`. See the [parser](src/tags.ts).\n\n```ts\nconst TAG = /#([\\p{L}\\p{N}_-]+)/gu;\n```\n\n> Punctuation at the end is no part of a tag.\n",
            "marlow",
        ),
        note("shared/plan", "shared", "Plan for g1", "1. parser\n2. list and tags\n3. docs", "marlow"),
        note("kit/regex-notes", "kit", "Regex notes", "`\\p{L}` needs the *u* flag.", "kit"),
    ]
}

/// Six agents at work, three decisions open.
pub fn busy() -> Snapshot {
    let goal = Goal {
        id: "g1".into(),
        text: "Add #tags to pocket-notes: parse, filter, highlight, document".to_owned(),
        progress: 0.36,
        status: GoalStatus::Active,
        repo_id: Some("pocket-notes".into()),
        created_at: NOON - 41 * MINUTE,
        updated_at: NOON,
    };
    let mut closed = decision("d1", "kit", DecisionKind::Merge, "Merge t2 into main?", &label::MERGE_OPTIONS, "", 20);
    closed.status = DecisionStatus::Answered;
    closed.answer = Some(DecisionAnswer { option: Some(label::MERGE.to_owned()), text: None, ts: NOON - 18 * MINUTE });
    Snapshot {
        foreman: ForemanStatus {
            version: "0.1.0".to_owned(),
            backend: BackendName::Sim,
            auth: AuthStatus::Ok,
            message: Some("Simulated team (sim backend)".to_owned()),
            account: None,
            speed: Some(1.0),
            showcase: None,
            cost_usd: Some(0.42),
            user_name: Some("Ada".to_owned()),
        },
        agents: agents(),
        tasks: tasks(),
        decisions: vec![closed, merge(), permission(), question()],
        repos: vec![Repo {
            id: "pocket-notes".into(),
            name: "pocket-notes".to_owned(),
            path: "/home/ada/pocket-notes".to_owned(),
            branch: "main".to_owned(),
            head: Some("3f2a91c".to_owned()),
            dirty: false,
            worktrees: vec![
                worktree("kit-t2", "kit", "t2", WorktreeStatus::Merged, 88, 2),
                worktree("juniper-t3", "juniper", "t3", WorktreeStatus::Active, 41, 7),
                worktree("wren-t4", "wren", "t4", WorktreeStatus::Active, 49, 4),
                worktree("kit-t5", "kit", "t5", WorktreeStatus::Active, 55, 5),
            ],
            ci: CiStatus::Pass,
        }],
        memory: notes(),
        goal: Some(goal.clone()),
        goals: vec![goal],
        feed: feed(),
        logs: logs(),
    }
}

/// The same team, nothing open.
pub fn calm() -> Snapshot {
    let mut snapshot = busy();
    snapshot.decisions.retain(|d| d.status != DecisionStatus::Open);
    snapshot
}

/// A fresh home: the team is there, and nothing was asked of it.
pub fn fresh() -> Snapshot {
    let mut snapshot = busy();
    snapshot.tasks.clear();
    snapshot.decisions.clear();
    snapshot.goals.clear();
    snapshot.goal = None;
    snapshot.feed.clear();
    snapshot.logs.clear();
    snapshot.memory.clear();
    snapshot.foreman.cost_usd = None;
    for agent in &mut snapshot.agents {
        agent.state = AgentState::Idle;
        agent.station = Station::Lounge;
        agent.active = agent.role == AgentRole::Lead;
        agent.activity = if agent.active { "ready for a goal" } else { "off shift" }.to_owned();
        agent.task_id = None;
        agent.worktree = None;
    }
    snapshot
}

/// A snapshot with these decisions only.
pub fn deciding(decisions: Vec<Decision>) -> Snapshot {
    let mut snapshot = busy();
    snapshot.decisions = decisions;
    snapshot
}

fn diff_line(kind: DiffLineKind, text: &str, old_no: Option<u32>, new_no: Option<u32>) -> DiffLine {
    DiffLine { kind, text: text.to_owned(), old_no, new_no }
}

/// Lines of a hunk, numbered: the first character of each says its kind.
fn hunk(old_start: u32, new_start: u32, section: &str, text: &str) -> DiffHunk {
    let (mut old, mut new) = (old_start, new_start);
    let lines: Vec<DiffLine> = text
        .lines()
        .map(|l| {
            let rest = l.get(1..).unwrap_or("");
            match l.chars().next() {
                Some('+') => {
                    new += 1;
                    diff_line(DiffLineKind::Add, rest, None, Some(new - 1))
                }
                Some('-') => {
                    old += 1;
                    diff_line(DiffLineKind::Del, rest, Some(old - 1), None)
                }
                _ => {
                    old += 1;
                    new += 1;
                    diff_line(DiffLineKind::Ctx, rest, Some(old - 1), Some(new - 1))
                }
            }
        })
        .collect();
    DiffHunk {
        header: format!("@@ -{old_start},{} +{new_start},{} @@ {section}", old - old_start, new - new_start),
        old_start,
        old_lines: old - old_start,
        new_start,
        new_lines: new - new_start,
        lines,
    }
}

/// The diff of kit's worktree: changed, added, renamed, binary and cut files.
pub fn diff(request_id: &str) -> Diff {
    let tags = DiffFile {
        path: "src/tags.ts".to_owned(),
        old_path: None,
        status: DiffFileStatus::Modified,
        binary: false,
        additions: 9,
        deletions: 5,
        hunks: vec![
            hunk(
                1,
                1,
                "",
                " import type { Note } from \"./note.ts\";\n \n-// A tag is # and word characters.\n-const TAG = /#(\\w+)/g;\n+// A tag is # and letters, digits, - or _, in any script.\n+const TAG = /#([\\p{L}\\p{N}_-]+)/gu;\n \n export function tagsOf(text: string): Set<string> {",
            ),
            hunk(
                14,
                14,
                "export function tagsOf",
                " export function tagsOf(text: string): Set<string> {\n   const found = new Set<string>();\n-  for (const m of text.matchAll(TAG)) found.add(m[1]);\n-  return found;\n-}\n+  for (const [, name] of text.matchAll(TAG)) {\n+    found.add(trimmed(name));\n+  }\n+  return found;\n+}\n+\n+const trimmed = (name: string) => name.replace(/[-_]+$/, \"\");",
            ),
        ],
    };
    let test = DiffFile {
        path: "test/tags.test.ts".to_owned(),
        old_path: None,
        status: DiffFileStatus::Added,
        binary: false,
        additions: 420,
        deletions: 0,
        hunks: vec![hunk(
            0,
            1,
            "",
            "+import { test } from \"node:test\";\n+import assert from \"node:assert\";\n+import { tagsOf } from \"../src/tags.ts\";\n+\n+test(\"unicode letters\", () => {\n+  assert.deepEqual(tagsOf(\"see #größe and #日本\"), new Set([\"größe\", \"日本\"]));\n+});",
        )],
    };
    let renamed = DiffFile {
        path: "docs/tags.md".to_owned(),
        old_path: Some("docs/labels.md".to_owned()),
        status: DiffFileStatus::Renamed,
        binary: false,
        additions: 0,
        deletions: 0,
        hunks: Vec::new(),
    };
    let binary = DiffFile {
        path: "docs/screenshot.png".to_owned(),
        old_path: None,
        status: DiffFileStatus::Added,
        binary: true,
        additions: 0,
        deletions: 0,
        hunks: Vec::new(),
    };
    Diff {
        request_id: request_id.to_owned(),
        repo_id: "pocket-notes".into(),
        worktree: "kit-t5".into(),
        base: Some("main".to_owned()),
        branch: Some("agentcraft/kit/t5-tags".to_owned()),
        files: vec![tags, test, renamed, binary],
        stats: DiffStats { files: 4, additions: 429, deletions: 5 },
        truncated: true,
        error: None,
    }
}
