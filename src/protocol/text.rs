//! Text of agents and strangers, made safe to print: terminals get no control characters from us.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::CharIndices;

const ESC: char = '\u{1b}';
/// String terminator, the one-character form.
const ST: char = '\u{9c}';

/// The text without terminal escape sequences (CSI, OSC, DCS and their kin, whole), control characters other than
/// newline and tab, and bidirectional formatting characters. A carriage return counts as a line's end.
///
/// A sequence that never ends loses only its introducer: what follows is text, and is shown rather than hidden.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.char_indices().peekable();
    while let Some((_, c)) = rest.next() {
        match c {
            // CR LF is one line's end; a lone CR (a progress bar) is one too.
            '\r' if rest.peek().is_none_or(|(_, next)| *next != '\n') => cleaned.push('\n'),
            ESC => escape(&mut rest),
            '\u{9b}' => control_sequence(&mut rest),
            '\u{9d}' => control_string(&mut rest, Ends::AtLine),
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => control_string(&mut rest, Ends::Anywhere),
            c if is_plain(c) => cleaned.push(c),
            _ => {}
        }
    }
    Cow::Owned(cleaned)
}

fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // Arabic letter mark, left-to-right and right-to-left marks, embeddings, overrides, isolates.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    }
}

/// What follows an ESC.
fn escape(rest: &mut Peekable<CharIndices<'_>>) {
    match rest.peek().map(|(_, c)| *c) {
        Some('[') => {
            rest.next();
            control_sequence(rest);
        }
        Some(']') => {
            rest.next();
            control_string(rest, Ends::AtLine);
        }
        Some('P' | 'X' | '^' | '_') => {
            rest.next();
            control_string(rest, Ends::Anywhere);
        }
        Some(' '..='/') => {
            // Intermediate characters, then a final one, e.g. ESC ( B.
            while rest.next_if(|(_, c)| matches!(c, ' '..='/')).is_some() {}
            rest.next_if(|(_, c)| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            rest.next();
        }
        Some(_) | None => {}
    }
}

/// Parameters, intermediates and the final character of a CSI sequence.
fn control_sequence(rest: &mut Peekable<CharIndices<'_>>) {
    while rest.next_if(|(_, c)| matches!(c, '0'..='?')).is_some() {}
    while rest.next_if(|(_, c)| matches!(c, ' '..='/')).is_some() {}
    rest.next_if(|(_, c)| matches!(c, '@'..='~'));
}

/// Where a control string that has no terminator is given up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// OSC: titles, links and the like stay within a line.
    AtLine,
    /// DCS and the like, e.g. pictures.
    Anywhere,
}

/// Skips a control string up to its terminator, if it has one before anything else that would end it. The search ends
/// at the next escape in any case, so that cleaning takes linear time.
fn control_string(rest: &mut Peekable<CharIndices<'_>>, ends: Ends) {
    let mut ahead = rest.clone();
    while let Some((_, c)) = ahead.next() {
        match c {
            '\u{7}' | ST => {
                *rest = ahead;
                return;
            }
            ESC => {
                if ahead.next_if(|(_, c)| *c == '\\').is_some() {
                    *rest = ahead;
                }
                return;
            }
            '\n' if ends == Ends::AtLine => return,
            '\u{18}' | '\u{1a}' | '\u{80}'..='\u{9f}' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, cleaned: &str) {
        assert_eq!(clean(text), cleaned, "{text:?}");
    }

    #[test]
    fn plain_text_is_not_copied() {
        for text in ["", "hello\tworld\n", "Zoë 日本語 👩‍👩‍👧 é", "عربي"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn escape_sequences_go_whole() {
        check("\u{1b}[31;1mred\u{1b}[0m", "red");
        check("\u{1b}[?25l\u{1b}[2J\u{1b}[1;1Hx", "x");
        check("\u{1b}[38;2;1;2;3mx\u{1b}[ qy", "xy");
        check("\u{1b}]0;title\u{7}x", "x");
        check("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}]52;c;cm0gLXJm\u{7}x", "x");
        check("\u{1b}P1$r0m\u{1b}\\x", "x");
        check("\u{1b}_Gf=100;AAAA\nBBBB\u{1b}\\x", "x");
        check("\u{1b}(B\u{1b}=\u{1b}7x\u{1b}8", "x");
        check("\u{1b}cx", "x");
    }

    #[test]
    fn eight_bit_forms_are_sequences_too() {
        check("\u{9b}31mred", "red");
        check("\u{9d}0;title\u{9c}x", "x");
        check("\u{90}q#0\u{9c}x", "x");
    }

    #[test]
    fn what_never_ends_hides_nothing() {
        check("\u{1b}]0;rm -rf ~\nnext", "0;rm -rf ~\nnext");
        check("\u{1b}Prm -rf ~", "rm -rf ~");
        check("\u{1b}]0;a\u{1b}[31mb", "0;ab");
        check("a\u{1b}[", "a");
        check("a\u{1b}", "a");
        check("\u{1b}[12\u{1b}[31mx", "x");
        check("\u{1b}[31é", "é");
    }

    #[test]
    fn control_and_bidi_characters_go() {
        check("a\u{0}b\u{7}c\u{8}d\u{7f}e\u{85}f", "abcdef");
        check("user\u{202e}txt.exe\u{2066}\u{200f}\u{61c}", "usertxt.exe");
    }

    #[test]
    fn carriage_returns_are_line_ends() {
        check("a\r\nb\rc\r", "a\nb\nc\n");
    }

    #[test]
    fn cleaning_is_linear() {
        let text = "\u{1b}]".repeat(1_000_000);
        assert_eq!(clean(&text), "");
        let text = "\u{9d}\u{1b}P".repeat(700_000);
        assert_eq!(clean(&text), "");
    }

    proptest! {
        #[test]
        fn cleaned_text_is_plain_and_stays_so(text in "(\\PC|[\u{1b}\u{7}\u{9b}\u{9c}\u{9d}\r\n\\[\\]P;m0-9\\\\\u{202e}]){0,60}") {
            let once = clean(&text).into_owned();
            prop_assert!(once.chars().all(is_plain));
            prop_assert!(matches!(clean(&once), Cow::Borrowed(_)));
        }
    }
}
