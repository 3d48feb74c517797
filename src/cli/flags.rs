//! The command line as it is written: flags and verbs, read into plain values and nothing more.
//!
//! What they come to together with the other sources is decided in `config`. Entry point: [`CommandLine::read`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{AutoAnswerWish, Layer, Showcase, Theme, Verbosity, Workers, values};
use crate::foreman::effect::MergeStyle;
use crate::protocol::BackendName;

/// A team of coding agents works on your git repositories; you stay in charge.
///
/// Without a verb: the screen, with a Foreman in this process. When the profile's Foreman runs already, the screen of
/// that one.
#[derive(Debug, Parser)]
#[command(name = "agentcraft-tui", version, propagate_version = false, subcommand_value_name = "VERB")]
struct Flags {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    start: Start,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// Which Foreman is meant; for every verb.
#[derive(Clone, Debug, Default, clap::Args)]
struct Place {
    /// Directory of our files [default: ~/.agentcraft] [env: AGENTCRAFT_HOME]
    #[arg(long, value_name = "DIR", global = true)]
    home: Option<PathBuf>,
    /// Team with a memory, board and database of its own [default: the backend's name] [env: AGENTCRAFT_PROFILE]
    #[arg(long, value_name = "NAME", global = true, value_parser = values::profile)]
    profile: Option<String>,
    /// Port on 127.0.0.1; 0 takes any free one [default: 7878, or the next that is free] [env: AGENTCRAFT_PORT]
    #[arg(long, value_name = "PORT", global = true, value_parser = values::port)]
    port: Option<u16>,
}

/// What belongs to a start.
#[derive(Clone, Debug, Default, clap::Args)]
struct Start {
    /// Who plays the agents [default: sim] [env: AGENTCRAFT_BACKEND]
    #[arg(long, value_name = "sim|claude", value_parser = values::backend)]
    backend: Option<BackendName>,
    /// Connect this git repository; may be repeated, or a list with commas
    #[arg(long, value_name = "PATH", value_parser = values::paths, action = ArgAction::Append)]
    repo: Vec<Vec<PathBuf>>,
    /// Give the team this goal
    #[arg(long, value_name = "TEXT", value_parser = values::goal)]
    goal: Option<String>,
    /// Begin the profile anew; what was in it is moved aside, every branch is kept
    #[arg(long)]
    reset: bool,
    /// Don't ask before --reset
    #[arg(long, requires = "reset")]
    yes: bool,
    /// No screen: a Foreman alone, with what happens on standard error
    #[arg(long)]
    no_ui: bool,
    /// Only the screen of a Foreman that runs already
    #[arg(long, conflicts_with_all = ["no_ui", "reset"])]
    attach: bool,
    /// Workers on the team: how many, or which [default: 5] [env: AGENTCRAFT_WORKERS]
    #[arg(long, value_name = "N|NAMES", value_parser = values::workers)]
    workers: Option<Workers>,
    /// Turns that work at once [default: 5]
    #[arg(long, value_name = "N", value_parser = values::max_concurrent)]
    max_concurrent: Option<usize>,
    /// Test command for every repository [default: detected]
    #[arg(long, value_name = "COMMAND", value_parser = values::shell_command)]
    ci: Option<String>,
    /// How approved work comes onto the base branch [default: merge] [env: AGENTCRAFT_MERGE_STYLE]
    #[arg(long, value_name = "merge|squash", value_parser = values::merge_style)]
    merge_style: Option<MergeStyle>,
    /// Sign merge commits when your git would [default: off] [env: AGENTCRAFT_SIGN_MERGES]
    #[arg(long, overrides_with = "no_sign_merges")]
    sign_merges: bool,
    #[arg(long, hide = true, overrides_with = "sign_merges")]
    no_sign_merges: bool,
    /// How the agents call you [default: your login] [env: AGENTCRAFT_USER_NAME]
    #[arg(long, value_name = "NAME", value_parser = values::user_name)]
    user_name: Option<String>,
    /// The lead reviews work before you are asked; off: --no-lead-review [default: on]
    #[arg(long, overrides_with = "no_lead_review")]
    lead_review: bool,
    #[arg(long, hide = true, overrides_with = "lead_review")]
    no_lead_review: bool,
    /// Don't take up interrupted turns again
    #[arg(long)]
    no_resume: bool,
    /// Milliseconds between two looks at each repository [default: 10000]
    #[arg(long, value_name = "MS", value_parser = values::repo_poll_ms)]
    repo_poll_ms: Option<u64>,
    /// Stop a turn that worked so long, e.g. 90s, 45m, 2h [default: 45m]
    #[arg(long, value_name = "TIME", value_parser = values::turn_timeout_ms)]
    turn_timeout: Option<u64>,
    /// Notices of the desktop when a decision waits and nobody looks; off: --no-notify [env: AGENTCRAFT_NOTIFY]
    #[arg(long, overrides_with = "no_notify")]
    notify: bool,
    #[arg(long, hide = true, overrides_with = "notify")]
    no_notify: bool,
    /// Log everything [env: AGENTCRAFT_DEBUG]
    #[arg(long, conflicts_with = "quiet")]
    debug: bool,
    /// Log warnings and errors only
    #[arg(long)]
    quiet: bool,
    /// Sim: its pace, 0.05 to 10000 [default: 1] [env: AGENTCRAFT_SIM_SPEED]
    #[arg(long, value_name = "X", value_parser = values::speed, help_heading = "Simulated team")]
    speed: Option<f64>,
    /// Sim: what chance starts from [default: 7]
    #[arg(long, value_name = "N", value_parser = values::seed, help_heading = "Simulated team")]
    seed: Option<u64>,
    /// Sim: begin the demo's goal by itself (or --goal) when the profile has none
    #[arg(long, help_heading = "Simulated team")]
    autostart: bool,
    /// Answer decisions with their first option: all in the demo repository; elsewhere only the kinds named here
    /// (question, permission, merge)
    #[arg(
        long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "demo",
        value_parser = values::auto_answer, help_heading = "Simulated team"
    )]
    auto_answer: Option<AutoAnswerWish>,
    /// Sim: hold a static state of the demo
    #[arg(
        long, value_name = "busy|late", num_args = 0..=1, default_missing_value = "busy",
        value_parser = values::showcase, conflicts_with = "goal", help_heading = "Simulated team"
    )]
    showcase: Option<Showcase>,
    /// Sim: no small talk while agents wait
    #[arg(long, help_heading = "Simulated team")]
    no_ambient: bool,
    /// Draw with ASCII signs only
    #[arg(long, help_heading = "Screen")]
    ascii: bool,
    /// Colours for a dark or a light background [default: the terminal is asked]
    #[arg(long, value_name = "dark|light", value_parser = values::theme, help_heading = "Screen")]
    theme: Option<Theme>,
    /// Leave the mouse to the terminal
    #[arg(long, help_heading = "Screen")]
    no_mouse: bool,
    /// No colours [env: NO_COLOR]
    #[arg(long, help_heading = "Screen")]
    no_color: bool,
    /// Look, but send nothing that changes the team
    #[arg(long, help_heading = "Screen")]
    read_only: bool,
}

/// What to do instead of starting.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// Send one line of the console to the running Foreman and print what it answered
    ///
    /// Exits with 0 only when it was done. An answered Merge is waited for; when git refuses, the reason is printed and
    /// the exit code is 1. `/answer` needs no id while exactly one decision is open. A single `-` reads the line, which
    /// may then be several, from standard input.
    Send {
        /// Return when the Foreman has taken an answer, without waiting for the merge
        #[arg(long)]
        no_wait: bool,
        /// The line, e.g. 'Add a --version flag', '@kit hurry', '/answer d2 Merge'
        #[arg(required = true, value_name = "LINE", allow_negative_numbers = true)]
        line: Vec<String>,
    },
    /// Print how things stand with the running Foreman
    Status {
        /// As the protocol's snapshot, one JSON object
        #[arg(long)]
        json: bool,
    },
    /// End the running Foreman; turns are interrupted and go on with the next start
    Stop,
    /// Print the protocol's reference document
    Protocol {
        /// The JSON Schema instead
        #[arg(long)]
        schema: bool,
    },
    /// Print a completion script
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
}

/// How far a `--reset` goes without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    Keep,
    Ask,
    Confirmed,
}

/// Whether there is a screen, and whose Foreman it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Ours, or that of a Foreman that runs already.
    Screen,
    /// That of a Foreman that runs already.
    AttachedScreen,
    /// None.
    Headless,
}

/// The command line, read.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLine {
    pub layer: Layer,
    pub verb: Option<Verb>,
    pub goal: Option<String>,
    pub reset: Reset,
    pub front: Front,
    /// Flags that were given, as they are written.
    pub given: Vec<String>,
}

impl CommandLine {
    /// Reads the arguments, the program's name first.
    ///
    /// # Errors
    /// What is wrong with them, or the text of `--help` and `--version`; clap prints both and knows the exit code.
    pub fn read(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut command = Flags::command();
        let matches = command.try_get_matches_from_mut(args)?;
        let flags = Flags::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        let given: Vec<String> = command
            .get_arguments()
            .filter(|arg| {
                let id = arg.get_id().as_str();
                matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
            })
            .filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
            .collect();
        let for_any = ["--home", "--profile", "--port"];
        if flags.verb.is_some()
            && let Some(flag) = given.iter().find(|flag| !for_any.contains(&flag.as_str()))
        {
            let name = matches.subcommand_name().unwrap_or_default();
            let problem = format!("{flag} belongs to a start and means nothing to `{name}`");
            return Err(command.error(ErrorKind::ArgumentConflict, problem));
        }
        let Flags { place, start, verb } = flags;
        Ok(Self {
            verb,
            goal: start.goal.clone(),
            reset: match (start.reset, start.yes) {
                (false, _) => Reset::Keep,
                (true, false) => Reset::Ask,
                (true, true) => Reset::Confirmed,
            },
            front: match (start.no_ui, start.attach) {
                (true, _) => Front::Headless,
                (false, true) => Front::AttachedScreen,
                (false, false) => Front::Screen,
            },
            layer: layer(place, start),
            given,
        })
    }
}

/// A flag and its `--no-` form.
fn either(yes: bool, no: bool) -> Option<bool> {
    match (yes, no) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

fn layer(place: Place, start: Start) -> Layer {
    let on = |flag: bool| flag.then_some(true);
    let off = |flag: bool| flag.then_some(false);
    let repos: Vec<PathBuf> = start.repo.into_iter().flatten().collect();
    Layer {
        backend: start.backend,
        home: place.home,
        profile: place.profile,
        port: place.port,
        repos: (!repos.is_empty()).then_some(repos),
        workers: start.workers,
        max_concurrent: start.max_concurrent,
        ci: start.ci,
        merge_style: start.merge_style,
        sign_merges: either(start.sign_merges, start.no_sign_merges),
        user_name: start.user_name,
        lead_review: either(start.lead_review, start.no_lead_review),
        resume: off(start.no_resume),
        repo_poll_ms: start.repo_poll_ms,
        turn_timeout_ms: start.turn_timeout,
        notify: either(start.notify, start.no_notify),
        verbosity: match (start.debug, start.quiet) {
            (true, _) => Some(Verbosity::Debug),
            (false, true) => Some(Verbosity::Quiet),
            (false, false) => None,
        },
        speed: start.speed,
        seed: start.seed,
        ambient: off(start.no_ambient),
        autostart: on(start.autostart),
        auto_answer: start.auto_answer,
        showcase: start.showcase,
        ascii: on(start.ascii),
        theme: start.theme,
        mouse: off(start.no_mouse),
        color: off(start.no_color),
        read_only: on(start.read_only),
        ..Layer::default()
    }
}

/// The script with which this shell completes our flags.
pub(super) fn completions(shell: clap_complete::Shell, out: &mut dyn std::io::Write) {
    clap_complete::generate(shell, &mut Flags::command(), "agentcraft-tui", out);
}

#[cfg(test)]
mod tests;
