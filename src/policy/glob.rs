//! Shell patterns against one name: `*`, `?`, `[..]`, backslash.
//!
//! Entry point: [`matches`].

/// Steps of one match; a pattern that needs more counts as matching.
const STEPS: usize = 20_000;

/// Whether a pattern without slashes matches a name. What is unclear counts as a match, for callers look for danger.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let mut steps = 0;
    step(&pattern, &name, &mut steps)
}

fn step(pattern: &[char], name: &[char], steps: &mut usize) -> bool {
    *steps += 1;
    if *steps > STEPS {
        return true;
    }
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => {
            let rest = rest.iter().position(|c| *c != '*').and_then(|at| rest.get(at..)).unwrap_or(&[]);
            rest.is_empty() || (0..=name.len()).any(|at| step(rest, name.get(at..).unwrap_or(&[]), steps))
        }
        Some(('?', rest)) => name.split_first().is_some_and(|(_, name)| step(rest, name, steps)),
        Some(('[', rest)) => {
            // A bracket that is not closed stands for itself.
            let close = rest.iter().skip(1).position(|c| *c == ']').map(|at| at + 1);
            match (close, name.split_first()) {
                (None, _) => name.split_first().is_some_and(|(c, name)| *c == '[' && step(rest, name, steps)),
                (Some(_), None) => false,
                (Some(close), Some((c, name))) => {
                    in_set(rest.get(..close).unwrap_or(&[]), *c)
                        && step(rest.get(close + 1..).unwrap_or(&[]), name, steps)
                }
            }
        }
        Some(('\\', rest)) if !rest.is_empty() => match (rest.split_first(), name.split_first()) {
            (Some((wanted, rest)), Some((c, name))) => wanted == c && step(rest, name, steps),
            _ => false,
        },
        Some((wanted, rest)) => name.split_first().is_some_and(|(c, name)| wanted == c && step(rest, name, steps)),
    }
}

fn in_set(set: &[char], c: char) -> bool {
    // Classes such as `[:alpha:]` count as matching anything.
    if set.contains(&':') {
        return true;
    }
    let (negated, set) = match set.split_first() {
        Some(('!' | '^', rest)) => (true, rest),
        _ => (false, set),
    };
    let mut rest = set;
    let mut found = false;
    while let Some((first, tail)) = rest.split_first() {
        match tail {
            ['-', last, after @ ..] => {
                found |= (*first..=*last).contains(&c);
                rest = after;
            }
            _ => {
                found |= *first == c;
                rest = tail;
            }
        }
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, wanted) in [
            ("*.rs", "lib.rs", true),
            ("*.rs", "lib.rsx", false),
            ("p?sh", "push", true),
            ("[a-f]oo", "foo", true),
            ("[!a-f]oo", "foo", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("**x**", "abxc", true),
            ("[", "[", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_ends() {
        assert!(matches(&"*a".repeat(200), &"a".repeat(200)) || !matches(&"*a".repeat(200), &"b".repeat(400)));
    }
}
