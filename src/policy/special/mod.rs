//! Programs whose rules do not fit the table.
//!
//! Owns the list of their names and who judges each. Entry points: [`knows`], [`run`].

pub(crate) mod builtins;
pub(crate) mod files;
pub(crate) mod find;
pub(crate) mod inline;
pub(crate) mod interpreters;
pub(crate) mod lists;
pub(crate) mod network;
pub(crate) mod packages;
pub(crate) mod shells;
pub(crate) mod text;

use super::args::Arg;
use super::eval::{Env, Eval};
use super::run::Context;

/// Whether a name has rules of its own here.
pub(crate) fn knows(name: &str) -> bool {
    builtins::NAMES.contains(&name)
        || matches!(
            name,
            "find"
                | "sed"
                | "awk"
                | "gawk"
                | "mawk"
                | "jq"
                | "xargs"
                | "rm"
                | "rmdir"
                | "unlink"
                | "cp"
                | "mv"
                | "install"
                | "chmod"
                | "dd"
                | "date"
                | "curl"
                | "wget"
                | "gh"
                | "glab"
                | "npm"
                | "pnpm"
                | "yarn"
                | "bun"
                | "npx"
                | "bunx"
                | "cargo"
                | "go"
                | "pip"
                | "pip3"
                | "git"
        )
}

/// Judges a program that has rules here; `false` if it has none.
pub(crate) fn run(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env, context: &Context) -> bool {
    match name {
        "find" => find::find(eval, args, env, context),
        "sed" => text::sed(eval, args, env),
        "awk" | "gawk" | "mawk" => text::awk(eval, name, args, env),
        "jq" => text::jq(eval, args, env),
        "xargs" => shells::xargs(eval, args, env, context),
        "rm" | "rmdir" | "unlink" => files::remove(eval, name, args, env),
        "cp" | "mv" | "install" => files::transfer(eval, name, args, env),
        "chmod" => files::chmod(eval, args, env),
        "dd" => files::dd(eval, args, env),
        "date" => files::date(eval, args, env),
        "curl" | "wget" => network::fetch(eval, name, args, env),
        "gh" | "glab" => network::hub(eval, name, args, env),
        "npm" | "pnpm" | "yarn" | "bun" => packages::node(eval, name, args, env, context),
        "npx" | "bunx" => packages::npx(eval, name, args, env, context),
        "cargo" => packages::cargo(eval, args, env),
        "go" => packages::go(eval, args, env),
        "pip" | "pip3" => packages::pip(eval, name, args),
        _ if builtins::NAMES.contains(&name) => builtins::builtin(eval, name, args, env, context),
        _ => return false,
    }
    true
}
