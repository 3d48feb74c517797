//! What a command prints, where that is known: a text, or a list of files of the worktree.
//!
//! Entry points: [`Eval::files`](super::super::eval::Eval::files), [`Eval::output`](super::super::eval::Eval::output).

use super::super::args::Files;
use super::super::eval::{Env, Eval, Stdin};
use super::super::lex;
use super::super::shell::{self, Command, Stage};
use super::find;

impl Eval<'_> {
    /// Whether the text of a substitution prints a list of files of the worktree.
    pub(crate) fn files(&mut self, body: &str, env: &Env) -> Option<Files> {
        let lexed = lex::lex(body);
        let list = shell::read(body, &lexed).ok()?;
        let [item] = list.as_slice() else { return None };
        if !item.rest.is_empty() || item.background {
            return None;
        }
        let mut stdin = Stdin::Inherited;
        for stage in &item.first {
            stdin = self.output(stage, env, &stdin);
        }
        match stdin {
            Stdin::Files(files) => Some(files),
            Stdin::Inherited | Stdin::Text(_) | Stdin::File(_) | Stdin::Unknown => None,
        }
    }

    /// What a command of a pipeline gives the next one.
    pub(crate) fn output(&mut self, stage: &Stage, env: &Env, input: &Stdin) -> Stdin {
        let Command::Simple(simple) = &stage.command else { return Stdin::Unknown };
        if stage.negated || simple.words.first().is_none_or(|word| word.assignment().is_some()) {
            return Stdin::Unknown;
        }
        let mut input = input.clone();
        for redirect in &simple.redirects {
            match (&redirect.target, redirect.operator, redirect.descriptor.as_deref()) {
                (lex::Target::Here(word), _, None) => {
                    input = word.literal().map_or(Stdin::Unknown, Stdin::Text);
                }
                // Messages elsewhere leave the output as it is.
                (lex::Target::Word(_), ">" | ">>", Some("2")) => {}
                _ => return Stdin::Unknown,
            }
        }
        let Some(args) = self.arguments(&simple.words, env) else { return Stdin::Unknown };
        let known: Option<Vec<&str>> =
            args.iter().map(|arg| arg.known().filter(|_| arg.pattern.is_none() || arg.quoted)).collect();
        let Some(words) = known else { return Stdin::Unknown };
        let unmatched = args.iter().all(|arg| arg.pattern.is_none());
        let Some((name, rest)) = words.split_first() else { return Stdin::Unknown };
        match *name {
            "echo" if unmatched => echo(rest).map_or(Stdin::Unknown, Stdin::Text),
            "printf" if unmatched => printf(rest).map_or(Stdin::Unknown, Stdin::Text),
            "cat" if rest.is_empty() => match input {
                Stdin::Text(_) | Stdin::Files(_) => input,
                Stdin::Inherited | Stdin::File(_) | Stdin::Unknown => Stdin::Unknown,
            },
            "find" => inside(find::lists_files(self, args.get(1..).unwrap_or(&[]), env)),
            "git" => inside(git_lists(rest)),
            "rg" => inside(rg_lists(rest)),
            "grep" if matches!(input, Stdin::Files(_)) => inside(grep_filters(rest)),
            "grep" => inside(grep_lists(rest)),
            "head" | "tail" | "sort" | "uniq" if matches!(input, Stdin::Files(_)) => inside(filters(name, rest)),
            _ => Stdin::Unknown,
        }
    }
}

fn inside(yes: bool) -> Stdin {
    if yes { Stdin::Files(Files::Inside) } else { Stdin::Unknown }
}

/// The text that `echo` prints, if it has no escapes.
fn echo(args: &[&str]) -> Option<String> {
    let (end, words) = match args.split_first() {
        Some((&"-n", rest)) => ("", rest),
        Some((first, _)) if first.starts_with('-') => return None,
        _ => ("\n", args),
    };
    let text = words.join(" ");
    (!text.contains('\\')).then(|| format!("{text}{end}"))
}

/// The text that `printf` prints, for a format of plain text, `%s` and line breaks.
fn printf(args: &[&str]) -> Option<String> {
    let (format, values) = args.split_first()?;
    if format.starts_with('-') {
        return None;
    }
    let mut text = String::new();
    let mut values = values.iter();
    loop {
        let left = values.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' => match chars.next()? {
                    's' => text.push_str(values.next().copied().unwrap_or("")),
                    '%' => text.push('%'),
                    _ => return None,
                },
                '\\' => match chars.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    '\\' => text.push('\\'),
                    _ => return None,
                },
                _ => text.push(c),
            }
        }
        // The format is used again for values that are left.
        if values.len() == 0 {
            return Some(text);
        }
        if values.len() == left {
            return None;
        }
    }
}

/// `git ls-files` and `git diff --name-only` print paths below the worktree's root.
fn git_lists(args: &[&str]) -> bool {
    let Some((sub, rest)) = args.split_first() else { return false };
    let options = rest.iter().take_while(|arg| **arg != "--").filter(|arg| arg.starts_with('-'));
    match *sub {
        "ls-files" => options.into_iter().all(|option| {
            matches!(
                *option,
                "-z" | "-c"
                    | "-m"
                    | "-d"
                    | "-o"
                    | "--cached"
                    | "--modified"
                    | "--deleted"
                    | "--others"
                    | "--exclude-standard"
                    | "-co"
                    | "-mo"
            ) || option.starts_with("--exclude=")
        }),
        "diff" => {
            rest.contains(&"--name-only")
                && options.into_iter().all(|option| {
                    matches!(*option, "--name-only" | "-z" | "--cached" | "--staged" | "--merge-base" | "--no-renames")
                        || option.starts_with("--diff-filter=")
                })
        }
        _ => false,
    }
}

/// `rg --files`, `rg -l`.
fn rg_lists(args: &[&str]) -> bool {
    let mut lists = false;
    let mut rest = args.iter();
    let mut operands = 0_usize;
    while let Some(arg) = rest.next() {
        match *arg {
            "--files" | "-l" | "--files-with-matches" | "-il" | "-li" | "-lF" | "-Fl" | "-wl" | "-lw" => lists = true,
            "-i" | "-F" | "-w" | "-s" | "-S" | "-0" | "--hidden" | "--no-ignore" | "--null" => {}
            "-g" | "-t" | "-T" | "--glob" | "--type" | "-e" | "--iglob" => {
                rest.next();
            }
            _ if arg.starts_with("-g")
                || arg.starts_with("-t")
                || arg.starts_with("--glob=")
                || arg.starts_with("--type=") => {}
            _ if arg.starts_with('-') => return false,
            _ => operands += 1,
        }
    }
    // Start points outside are questions of their own; one that climbs prints names that climb.
    lists && args.iter().all(|arg| !arg.split('/').any(|part| part == "..")) && operands <= 64
}

/// `grep -rl`.
fn grep_lists(args: &[&str]) -> bool {
    let mut letters = String::new();
    for arg in args.iter().filter(|arg| arg.starts_with('-')) {
        match arg.strip_prefix("--") {
            Some(long)
                if long.starts_with("include=") || long.starts_with("exclude=") || long.starts_with("exclude-dir=") => {
            }
            Some("files-with-matches") => letters.push('l'),
            Some("recursive") => letters.push('r'),
            Some(_) => return false,
            None => letters.push_str(arg.trim_start_matches('-')),
        }
    }
    letters.contains('r') && letters.contains('l') && letters.chars().all(|letter| "rliEFPwxIsZ".contains(letter))
}

/// `grep` that only picks lines.
fn grep_filters(args: &[&str]) -> bool {
    let options: Vec<&&str> = args.iter().filter(|arg| arg.starts_with('-')).collect();
    let patterns = args.len() - options.len();
    patterns == 1
        && options.iter().all(|option| {
            option.starts_with("--invert-match")
                || option.strip_prefix('-').is_some_and(|letters| {
                    !letters.is_empty() && letters.chars().all(|letter| "viEFPwx".contains(letter))
                })
        })
}

/// `head`, `tail`, `sort`, `uniq` that only pick and order lines.
fn filters(name: &str, args: &[&str]) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name {
        "head" | "tail" => match args {
            [] => true,
            ["-n", lines] => number(lines.trim_start_matches(['+', '-'])),
            [only] => number(only.trim_start_matches("-n").trim_start_matches(['-', '+'])) && only.starts_with('-'),
            _ => false,
        },
        "sort" => args.iter().all(|arg| {
            arg.strip_prefix('-').is_some_and(|letters| letters.chars().all(|letter| "ruVnfbz".contains(letter)))
        }),
        _ => args.iter().all(|arg| matches!(*arg, "-d" | "-u")),
    }
}

/// For the tests of this file's callers.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_text_is_what_the_shell_prints() {
        assert_eq!(echo(&["a", "b"]), Some("a b\n".into()));
        assert_eq!(echo(&["-n", "a"]), Some("a".into()));
        assert_eq!(echo(&["-e", "a\\nb"]), None);
        assert_eq!(printf(&["a\\nb\\n"]), Some("a\nb\n".into()));
        assert_eq!(printf(&["%s\\n", "a", "b"]), Some("a\nb\n".into()));
        assert_eq!(printf(&["%d", "1"]), None);
        assert_eq!(printf(&["x", "y"]), None);
    }

    #[test]
    fn only_whole_paths_are_file_lists() {
        let args = |text: &'static str| text.split(' ').collect::<Vec<_>>();
        for text in ["ls-files -z", "ls-files docs", "diff --name-only HEAD~1", "ls-files -o --exclude-standard"] {
            assert!(git_lists(&args(text)), "{text}");
        }
        for text in ["ls-files -s", "diff --stat", "ls-files --format=%(path)", "log --name-only", "-C x ls-files"] {
            assert!(!git_lists(&args(text)), "{text}");
        }
        assert!(grep_filters(&args("-v test")) && !grep_filters(&args("-o x")) && !grep_filters(&args("-n x")));
        assert!(filters("tail", &args("-n 5")) && !filters("tail", &args("-c 5")) && !filters("sort", &args("-o x")));
    }
}
