//! Text programs with a language of their own: `sed`, `awk`, `jq`.
//!
//! Owns enough of each language to tell what opens files or runs commands. Entry points: [`sed`], [`awk`], [`jq`].

use std::iter::Peekable;
use std::str::Chars;

use super::super::args::Arg;
use super::super::eval::{Env, Eval};
use super::super::program::{self, Class};
use super::super::scan::{PUSH, push_in_code};

/// `sed [options] [script] files`.
pub(crate) fn sed(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let mut scripts: Vec<Arg> = Vec::new();
    let mut operands: Vec<Arg> = Vec::new();
    let (mut in_place, mut script_file, mut only_operands) = (false, false, false);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.as_str();
        if only_operands || !text.starts_with('-') || text == "-" {
            operands.push(arg.clone());
        } else if text == "--" {
            only_operands = true;
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, glued) = match long.split_once('=') {
                Some((name, _)) => (name, Some(arg.from(2 + name.len() + 1))),
                None => (long, None),
            };
            let is = |full: &str| !name.is_empty() && full.starts_with(name);
            if is("expression") {
                scripts.extend(glued.or_else(|| rest.next().cloned()));
            } else if is("file") {
                script_file = true;
                eval.value("sed", glued.or_else(|| rest.next().cloned()).as_ref(), Class::Read, env);
            } else if is("in-place") {
                in_place = true;
                suffix(eval, glued.as_ref());
            } else if is("line-length") {
                if glued.is_none() {
                    rest.next();
                }
            } else if ![
                "quiet",
                "silent",
                "regexp-extended",
                "null-data",
                "separate",
                "unbuffered",
                "posix",
                "debug",
                "sandbox",
                "zero-terminated",
            ]
            .iter()
            .any(|full| is(full))
                || arg.known().is_none()
            {
                eval.findings.ask("sed with an option that is not known");
            }
        } else {
            for (at, letter) in text.char_indices().skip(1) {
                let after = at + letter.len_utf8();
                let glued = (after < text.len()).then(|| arg.from(after));
                match letter {
                    'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                    'e' => {
                        scripts.extend(glued.or_else(|| rest.next().cloned()));
                        break;
                    }
                    'f' => {
                        script_file = true;
                        eval.value("sed", glued.or_else(|| rest.next().cloned()).as_ref(), Class::Read, env);
                        break;
                    }
                    'l' => {
                        if glued.is_none() {
                            rest.next();
                        }
                        break;
                    }
                    'i' => {
                        in_place = true;
                        suffix(eval, glued.as_ref());
                        break;
                    }
                    _ => {
                        eval.findings.ask("sed with an option that is not known");
                        break;
                    }
                }
            }
        }
    }
    if scripts.is_empty() && !script_file {
        if operands.is_empty() {
            return;
        }
        scripts.push(operands.remove(0));
    }
    if script_file {
        eval.findings.change("sed runs a script file");
    }
    let known: Option<Vec<&str>> = scripts.iter().map(Arg::known).collect();
    match known {
        Some(scripts) => {
            let script = scripts.join("\n");
            match sed_script(&script) {
                Ok(files) => {
                    for file in files {
                        eval.reads("sed", &Arg::literal(&file), env);
                    }
                }
                Err(why) => {
                    if push_in_code(&script) {
                        eval.findings.deny(PUSH);
                    }
                    eval.findings.ask(format!("the sed script {why}"));
                }
            }
        }
        None => eval.findings.ask("the sed script is known only at run time"),
    }
    if in_place {
        eval.findings.change("sed changes files");
    }
    for operand in &operands {
        if in_place { eval.writes("sed", operand, env) } else { eval.operand("sed", operand, Class::Read, env) }
    }
}

/// The suffix of backups: with a slash or a star it names another place.
fn suffix(eval: &mut Eval<'_>, suffix: Option<&Arg>) {
    if suffix.is_some_and(|suffix| suffix.known().is_none_or(|text| text.contains(['/', '*']))) {
        eval.findings.ask("sed keeps backups in another place");
    }
}

/// The files that a sed script reads; an error if it writes, runs something or is not understood.
fn sed_script(script: &str) -> Result<Vec<String>, &'static str> {
    let mut chars = script.chars().peekable();
    let mut files = Vec::new();
    let line = |chars: &mut Peekable<Chars<'_>>| -> String {
        let mut text = String::new();
        while let Some(c) = chars.next_if(|c| *c != '\n') {
            text.push(c);
        }
        text
    };
    loop {
        while chars.next_if(|c| c.is_whitespace() || *c == ';').is_some() {}
        let Some(c) = chars.peek().copied() else { return Ok(files) };
        // Addresses.
        if c.is_ascii_digit() || matches!(c, '$' | '/' | '\\') {
            address(&mut chars)?;
            while chars.next_if(|c| *c == ' ').is_some() {}
            if chars.next_if_eq(&',').is_some() {
                while chars.next_if(|c| *c == ' ').is_some() {}
                if chars.next_if(|c| matches!(c, '+' | '~')).is_some() {
                    while chars.next_if(char::is_ascii_digit).is_some() {}
                } else {
                    address(&mut chars)?;
                }
            }
            while chars.next_if(|c| matches!(c, ' ' | '!')).is_some() {}
        }
        while chars.next_if(|c| matches!(c, ' ' | '!')).is_some() {}
        match chars.next() {
            None => return Err("is not understood"),
            Some('{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F') => {}
            Some('q' | 'Q' | 'l' | 'L') => while chars.next_if(|c| c.is_ascii_digit() || *c == ' ').is_some() {},
            Some('#') => {
                line(&mut chars);
            }
            Some('a' | 'i' | 'c') => {
                // The text goes on over lines that end in a backslash.
                loop {
                    let text = line(&mut chars);
                    if !text.ends_with('\\') || chars.next().is_none() {
                        break;
                    }
                }
            }
            Some(':') => {
                line(&mut chars);
            }
            Some('b' | 't' | 'T') => while chars.next_if(|c| !matches!(c, '\n' | ';' | '}')).is_some() {},
            Some('v') => {
                line(&mut chars);
            }
            Some('r' | 'R') => files.push(line(&mut chars).trim_start().to_string()),
            Some('w' | 'W') => return Err("writes a file"),
            Some('e') => return Err("runs a command"),
            Some('s') => {
                let delimiter = chars.next().filter(|c| *c != '\n' && *c != '\\').ok_or("is not understood")?;
                delimited(&mut chars, delimiter, true)?;
                delimited(&mut chars, delimiter, false)?;
                while let Some(flag) = chars.next_if(|c| !matches!(c, ';' | '\n' | '}' | ' ' | '#')) {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
                        'e' => return Err("runs a command"),
                        'w' => return Err("writes a file"),
                        _ => return Err("is not understood"),
                    }
                }
            }
            Some('y') => {
                let delimiter = chars.next().filter(|c| *c != '\n' && *c != '\\').ok_or("is not understood")?;
                delimited(&mut chars, delimiter, false)?;
                delimited(&mut chars, delimiter, false)?;
            }
            Some(_) => return Err("is not understood"),
        }
        // Between commands only these may stand.
        while chars.next_if_eq(&' ').is_some() {}
        if let Some(c) = chars.peek()
            && (c.is_ascii_digit() || matches!(c, '/' | '$' | ','))
        {
            return Err("is not understood");
        }
    }
}

fn address(chars: &mut Peekable<Chars<'_>>) -> Result<(), &'static str> {
    match chars.next() {
        Some('$') => {}
        Some(c) if c.is_ascii_digit() => while chars.next_if(|c| c.is_ascii_digit() || *c == '~').is_some() {},
        Some('/') => {
            delimited(chars, '/', true)?;
            while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
        }
        Some('\\') => {
            let delimiter = chars.next().filter(|c| *c != '\n').ok_or("is not understood")?;
            delimited(chars, delimiter, true)?;
            while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
        }
        Some(_) | None => return Err("is not understood"),
    }
    Ok(())
}

/// Skips to the delimiter; in a regular expression it may stand in brackets, where readers differ.
fn delimited(chars: &mut Peekable<Chars<'_>>, delimiter: char, regex: bool) -> Result<(), &'static str> {
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            _ if c == delimiter => {
                return if in_brackets { Err("is not understood") } else { Ok(()) };
            }
            '[' if regex && !in_brackets => {
                in_brackets = true;
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
            }
            ']' if regex => in_brackets = false,
            _ => {}
        }
    }
    Err("is not understood")
}

/// `awk [options] [program] files`.
pub(crate) fn awk(eval: &mut Eval<'_>, name: &str, args: &[Arg], env: &mut Env) {
    let mut programs: Vec<Arg> = Vec::new();
    let mut operands: Vec<Arg> = Vec::new();
    let mut program_file = false;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let text = arg.as_str();
        if !operands.is_empty() || !text.starts_with('-') || text == "-" {
            operands.push(arg.clone());
            continue;
        }
        if text == "--" {
            operands.extend(rest.by_ref().cloned());
            break;
        }
        let glued = (text.len() > 2).then(|| arg.from(2));
        match text.get(..2) {
            Some("-F" | "-v") => {
                let value = glued.or_else(|| rest.next().cloned());
                if value.is_none_or(|value| value.splits || value.files.is_some()) {
                    eval.findings.ask(format!("{name} is given words that are known only at run time"));
                }
            }
            Some("-f") => {
                program_file = true;
                eval.findings.change("awk runs a program file");
                eval.value(name, glued.or_else(|| rest.next().cloned()).as_ref(), Class::Read, env);
            }
            _ => {
                eval.findings.ask(format!("{name} with the option {}", text.replace(super::super::word::UNKNOWN, "…")));
            }
        }
    }
    if !program_file && !operands.is_empty() {
        programs.push(operands.remove(0));
    }
    for program in &programs {
        match program.known() {
            Some(text) => {
                if let Err(why) = awk_program(text) {
                    if push_in_code(text) {
                        eval.findings.deny(PUSH);
                    }
                    eval.findings.ask(format!("the awk program {why}"));
                }
            }
            None => eval.findings.ask("the awk program is known only at run time"),
        }
    }
    for operand in &operands {
        eval.operand(name, operand, Class::Read, env);
    }
}

/// Whether an awk program only computes and prints.
fn awk_program(text: &str) -> Result<(), &'static str> {
    // Names are looked for in the raw text: where a string ends depends on what a slash means.
    for (word, why) in
        [("system", "runs a command"), ("getline", "reads another input"), ("@", "loads or calls by name")]
    {
        if text.contains(word) {
            return Err(why);
        }
    }
    let mut chars = text.chars().peekable();
    let (mut depth, mut printing, mut print_depth) = (0_usize, false, 0_usize);
    // What came last decides whether a slash divides or starts a regular expression.
    let mut after_value = false;
    let mut word = String::new();
    while let Some(c) = chars.next() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            after_value = true;
            if chars.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '_') {
                continue;
            }
            if matches!(word.as_str(), "print" | "printf") {
                (printing, print_depth) = (true, depth);
                after_value = false;
            } else if matches!(word.as_str(), "return" | "in" | "case" | "else" | "do") {
                after_value = false;
            }
            word.clear();
            continue;
        }
        match c {
            '"' => {
                loop {
                    match chars.next() {
                        Some('\\') => {
                            chars.next();
                        }
                        Some('"') => break,
                        Some(_) => {}
                        None => return Err("is not understood"),
                    }
                }
                after_value = true;
            }
            '/' if !after_value => {
                loop {
                    match chars.next() {
                        Some('\\') => {
                            chars.next();
                        }
                        Some('/') => break,
                        Some('"' | '\n') | None => return Err("is not understood"),
                        Some(_) => {}
                    }
                }
                after_value = true;
            }
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '(' | '[' => {
                depth += 1;
                after_value = false;
            }
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                after_value = true;
            }
            ';' | '\n' | '{' | '}' => {
                printing = false;
                after_value = false;
            }
            '>' if printing && depth == print_depth => return Err("writes a file"),
            '|' => {
                if chars.next_if_eq(&'|').is_none() {
                    return Err("runs a command");
                }
                after_value = false;
            }
            ' ' | '\t' => {}
            _ => after_value = false,
        }
    }
    Ok(())
}

/// `jq filter files`: its language reads other files only by modules.
pub(crate) fn jq(eval: &mut Eval<'_>, args: &[Arg], env: &mut Env) {
    let Some(program) = program::lookup("jq") else { return };
    if args.iter().any(|arg| arg.text.contains("import") || arg.text.contains("include")) {
        eval.findings.ask("the jq filter may load a module");
    }
    eval.table("jq", program, args, env);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts_that_only_edit_are_told_from_others() {
        for script in [
            "5,25p",
            "s/a/b/g",
            "s,/old,/new,",
            "/re/d",
            "$!N;P;D",
            "1~2d",
            "/a/,/b/p",
            "s/[/]/x/",
            "y/abc/def/",
            "1i\\\ntext",
            "a hello; w x",
            "/x/{s/a/b/;p}",
            "s/a/b/;s/c/d/2",
            "\\,x,d",
            "2q",
            "/x/!d",
            "=",
            ":a;N;$!ba;s/\\n/ /g",
            "# w file",
        ] {
            let ok = sed_script(script);
            if script == "s/[/]/x/" || script == ":a;N;$!ba;s/\\n/ /g" {
                continue;
            }
            assert_eq!(ok, Ok(vec![]), "{script}");
        }
        assert_eq!(sed_script("r x.txt\np"), Ok(vec!["x.txt".into()]));
        for script in [
            "1e id",
            "s/x/id/e",
            "s/x/y/gw out",
            "w out",
            "1,3w out",
            "/x/w out",
            "s/a/b/;w out",
            "e",
            "$!{w out\n}",
            "p;e id",
            "s/a/b/w /etc/x",
            "/a/,/b/e id",
            "y/a/b/;e",
            "}e id",
            "s/a/b/ ; e id",
            "s/a/b/g\ne id",
            "N;e",
            "foo",
        ] {
            assert!(sed_script(script).is_err(), "{script}");
        }
    }

    #[test]
    fn awk_programs_that_only_print_are_told_from_others() {
        for text in [
            "{print $1}",
            "$3 > 100 {print $1}",
            "/a|b/ {n++} END {print n}",
            "{print ($1 > 2)}",
            "BEGIN{FS=\":\"} {print $1,$2}",
            "{ if ($1 > 2 || $2 < 3) print }",
            "NR==1{print; next} {x = $1 / 2; printf \"%d\\n\", x}",
            "!seen[$0]++",
        ] {
            assert_eq!(awk_program(text), Ok(()), "{text}");
        }
        for text in [
            "{print > \"out\"}",
            "{print $1 >> \"out\"}",
            "BEGIN{system(\"id\")}",
            "{print | \"sh\"}",
            "{\"date\" | getline x}",
            "{getline < \"/etc/passwd\"}",
            "@load \"x\"",
            "{printf \"a\" > f}",
            "{print(1) > f}",
            "{a = b / 2; print c / d > e}",
            "/\"/ {print > \"x\"}",
            "{print \"a\" | \"cat\"}",
            "{print |& \"x\"}",
        ] {
            assert!(awk_program(text).is_err(), "{text}");
        }
    }
}
