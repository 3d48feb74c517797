use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;

const NOW: EpochMs = 1_700_000_000_000;

fn folder() -> (TempDir, MemoryFolder) {
    let temp = tempfile::tempdir().unwrap();
    let folder = MemoryFolder::new(temp.path().join("memory"));
    folder.ensure().unwrap();
    (temp, folder)
}

fn order(body: &str, mode: MemoryMode, seen: Option<&MemoryEntry>) -> WriteMemory {
    WriteMemory {
        scope: "shared".to_owned(),
        slug: "plan".to_owned(),
        title: "The plan".to_owned(),
        body: body.to_owned(),
        mode,
        author: "kit".to_owned(),
        now: NOW,
        seen: seen.cloned(),
        waiter: None,
    }
}

fn only(folder: &MemoryFolder) -> MemoryEntry {
    let reading = folder.read();
    assert_eq!(reading.problems, Vec::<String>::new());
    assert_eq!(reading.entries.len(), 1, "{:?}", reading.entries);
    reading.entries[0].clone()
}

/// A body is the same after any number of writings and readings, blank lines at both ends and headings included.
#[test]
fn bodies_come_back_exactly() {
    let bodies = [
        "",
        "one",
        "one\n",
        "one\n\n",
        "\n",
        "\none",
        "\n\n\none\n\n",
        "# Heading\n\ntext",
        "---\ntitle: x\n---\n",
        "ü 日本",
    ];
    for body in bodies {
        let (_temp, folder) = folder();
        let mut seen = folder.write(&order(body, MemoryMode::Replace, None)).unwrap();
        for life in 1..3 {
            assert_eq!(seen.body, body);
            assert_eq!(only(&folder), seen);
            let again = WriteMemory { now: NOW + life, ..order(body, MemoryMode::Replace, Some(&seen)) };
            seen = folder.write(&again).unwrap();
        }
    }
}

#[test]
fn the_file_is_plain_front_matter_and_text() {
    let (temp, folder) = folder();
    let order = WriteMemory {
        scope: "kit".to_owned(),
        title: "Two\nlines".to_owned(),
        ..order("text", MemoryMode::Replace, None)
    };
    let entry = folder.write(&order).unwrap();
    assert_eq!(entry.id, MemoryId::from("kit/plan"));
    let path = temp.path().join("memory/agents/kit/plan.md");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "---\ntitle: Two lines\nauthor: kit\nupdated: 1700000000000\n---\ntext\n"
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft stays");
}

/// A hand-made file takes its title from its first heading, else its name; CRLF becomes LF, a byte order mark goes.
#[test]
fn hand_made_files_are_notes() {
    let (temp, folder) = folder();
    let shared = temp.path().join("memory/shared");
    fs::write(shared.join("a.md"), "\u{feff}intro\r\n# The Heading\r\nmore\r\n").unwrap();
    fs::write(shared.join("b-2.md"), "no heading").unwrap();
    fs::write(shared.join("c.md"), "---\ntitle: never closed\n").unwrap();
    let reading = folder.read();
    assert_eq!(reading.problems, Vec::<String>::new());
    let find = |id: &str| reading.entries.iter().find(|entry| entry.id.as_str() == id).unwrap().clone();
    let a = find("shared/a");
    assert_eq!((a.title.as_str(), a.body.as_str(), a.author), ("The Heading", "intro\n# The Heading\nmore", None));
    assert!(a.updated > NOW, "the file's own time");
    assert_eq!(find("shared/b-2").title, "b-2");
    assert_eq!(find("shared/c").body, "---\ntitle: never closed");
}

/// What is no note is named and passed over: links (also of folders), pipes, huge files, bytes, strange names.
#[test]
fn what_is_no_note_is_passed_over_and_named() {
    let (temp, folder) = folder();
    let secret = temp.path().join("secret.md");
    fs::write(&secret, "the person's own").unwrap();
    let shared = temp.path().join("memory/shared");
    symlink(&secret, shared.join("link.md")).unwrap();
    fs::write(shared.join("bytes.md"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(shared.join("huge.md"), vec![b'x'; FILE_BYTES + 1]).unwrap();
    fs::write(shared.join("My Note.md"), "x").unwrap();
    fs::write(shared.join("picture.png"), "x").unwrap();
    fs::create_dir(shared.join("dir.md")).unwrap();
    rustix::fs::mkfifoat(CWD, shared.join("pipe.md"), Mode::from_raw_mode(0o600)).unwrap();
    let outside = temp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x.md"), "x").unwrap();
    symlink(&outside, temp.path().join("memory/agents/kit")).unwrap();
    fs::write(shared.join(".old.123.tmp"), "half").unwrap();
    let linked = MemoryFolder::new(temp.path().join("linked"));
    fs::create_dir(temp.path().join("linked")).unwrap();
    symlink(temp.path(), temp.path().join("linked/agents")).unwrap();
    let through =
        WriteMemory { scope: "outside".to_owned(), slug: "x".to_owned(), ..order("n", MemoryMode::Replace, None) };
    assert!(linked.write(&through).is_err());

    let reading = folder.read();
    assert_eq!(reading.entries, Vec::new());
    let problems = reading.problems.join("\n");
    for name in ["link.md", "bytes.md", "huge.md", "My Note.md", "dir.md", "pipe.md", "agents/kit"] {
        assert!(problems.contains(name), "{name} in:\n{problems}");
    }
    assert!(!shared.join(".old.123.tmp").exists(), "half-written files of a former life go");

    // Neither is any of it written through.
    for slug in ["link", "bytes", "huge", "dir", "pipe"] {
        let error = folder.write(&WriteMemory { slug: slug.to_owned(), ..order("new", MemoryMode::Replace, None) });
        assert!(error.is_err(), "{slug}");
    }
    let through =
        WriteMemory { scope: "kit".to_owned(), slug: "x".to_owned(), ..order("n", MemoryMode::Replace, None) };
    assert!(folder.write(&through).is_err());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the person's own");
    assert_eq!(fs::read_to_string(outside.join("x.md")).unwrap(), "x");
}

#[test]
fn names_cannot_leave_the_folder() {
    let (_temp, folder) = folder();
    for (scope, slug) in [("..", "plan"), ("shared", "../x"), ("a/b", "x"), ("shared", ""), ("", "x"), ("shared", "A")]
    {
        let order =
            WriteMemory { scope: scope.to_owned(), slug: slug.to_owned(), ..order("x", MemoryMode::Replace, None) };
        assert!(matches!(folder.write(&order), Err(NoteError::Name { .. })), "{scope:?} {slug:?}");
    }
}

#[test]
fn a_note_that_would_be_too_long_is_refused_and_the_old_one_stays() {
    let (_temp, folder) = folder();
    let seen = folder.write(&order("short", MemoryMode::Replace, None)).unwrap();
    let error = folder.write(&order(&"x".repeat(FILE_BYTES), MemoryMode::Append, Some(&seen))).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    assert_eq!(only(&folder), seen);
}

#[test]
fn appending_adds_a_paragraph_and_makes_a_missing_note() {
    let (_temp, folder) = folder();
    let one = folder.write(&order("one\n\n", MemoryMode::Append, None)).unwrap();
    assert_eq!(one.body, "one\n\n");
    let two = WriteMemory { now: NOW + 1, ..order("two", MemoryMode::Append, Some(&one)) };
    assert_eq!(folder.write(&two).unwrap().body, "one\n\ntwo");
}

/// An edit by hand that the agent did not know of: an addition lands behind it, a rewriting keeps it under a heading.
#[test]
fn an_edit_by_hand_and_an_agents_writing_are_both_kept() {
    let (temp, folder) = folder();
    let path = temp.path().join("memory/shared/plan.md");
    let seen = folder.write(&order("first", MemoryMode::Replace, None)).unwrap();
    let by_hand = "---\ntitle: Mine\ntags: [a, b]\nupdated: 1700000000000\n---\nfirst\nand by hand\n";

    fs::write(&path, by_hand).unwrap();
    assert!(only(&folder).updated > NOW, "the hand's time counts");
    let appended = WriteMemory { now: NOW + 5, ..order("more", MemoryMode::Append, Some(&seen)) };
    assert_eq!(folder.write(&appended).unwrap().body, "first\nand by hand\n\nmore");
    assert!(fs::read_to_string(&path).unwrap().contains("\ntags: [a, b]\n"), "lines of others stay");

    fs::write(&path, by_hand).unwrap();
    let replaced = WriteMemory { now: NOW + 9, ..order("second", MemoryMode::Replace, Some(&seen)) };
    let entry = folder.write(&replaced).unwrap();
    assert_eq!(entry.body, format!("second\n\n{KEPT_HEADING}\n\nfirst\nand by hand"));
    assert_eq!(only(&folder), entry);

    // What the agent has seen may be replaced.
    let third = WriteMemory { now: NOW + 11, ..order("third", MemoryMode::Replace, Some(&entry)) };
    assert_eq!(folder.write(&third).unwrap().body, "third");
}

/// After a crash between writing and saying so, the order comes again.
#[test]
fn an_order_carried_out_twice_writes_once() {
    let (temp, folder) = folder();
    let path = temp.path().join("memory/shared/plan.md");
    let seen = folder.write(&order("one", MemoryMode::Replace, None)).unwrap();
    let append = WriteMemory { now: NOW + 1, ..order("two", MemoryMode::Append, Some(&seen)) };
    let first = folder.write(&append).unwrap();
    assert_eq!(folder.write(&append).unwrap(), first);

    fs::write(&path, "by hand").unwrap();
    let replace = WriteMemory { now: NOW + 2, ..order("three", MemoryMode::Replace, Some(&first)) };
    let kept = folder.write(&replace).unwrap();
    assert!(kept.body.ends_with("by hand"));
    assert_eq!(folder.write(&replace).unwrap(), kept);

    let fresh = WriteMemory { slug: "new".to_owned(), ..order("only", MemoryMode::Append, None) };
    let first = folder.write(&fresh).unwrap();
    assert_eq!(folder.write(&fresh).unwrap(), first);
}

/// Somebody saves the note between our reading and our writing.
#[test]
fn a_save_between_reading_and_writing_is_taken_out_and_given_back() {
    let (temp, folder) = folder();
    let shared = temp.path().join("memory/shared");
    fs::write(shared.join("plan.md"), "theirs, just saved").unwrap();
    let dir = open_dir(CWD, &shared).unwrap();
    let path = shared.join("plan.md");
    write_draft(&dir, ".d.tmp", &path, "ours", NOW).unwrap();
    match put_in_place(&dir, ".d.tmp", "plan.md", Some("what we had read"), &path).unwrap() {
        Placed::Changed { theirs, standing } => {
            assert_eq!(theirs.as_deref(), Some("theirs, just saved"));
            assert_eq!(fs::read_to_string(&path).unwrap() == "ours", standing);
        }
        Placed::Done => panic!("the save was overwritten"),
    }
    write_draft(&dir, ".d.tmp", &path, "new", NOW).unwrap();
    assert!(matches!(put_in_place(&dir, ".d.tmp", "plan.md", None, &path).unwrap(), Placed::Changed { .. }));
    drop(folder);
}

/// A hand that saves all the time while agents rewrite: its last save is in the file when both are through.
#[test]
fn the_last_save_by_hand_survives_a_storm() {
    let (temp, folder) = folder();
    let path = temp.path().join("memory/shared/plan.md");
    let side = temp.path().join("side");
    let hand = {
        let path = path.clone();
        std::thread::spawn(move || {
            for number in 0..300 {
                fs::write(&side, format!("by hand {number}.\n")).unwrap();
                fs::rename(&side, &path).unwrap();
            }
        })
    };
    let mut now = NOW;
    while !hand.is_finished() {
        now += 1;
        match folder.write(&WriteMemory { now, ..order(&format!("agent {now}"), MemoryMode::Replace, None) }) {
            Ok(_) | Err(NoteError::Contended { .. } | NoteError::TooLong { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    hand.join().unwrap();
    assert!(only(&folder).body.contains("by hand 299."), "{}", only(&folder).body);
    let last = WriteMemory { now: now + 1, ..order("the last", MemoryMode::Replace, None) };
    let body = folder.write(&last).unwrap().body;
    assert!(body.starts_with("the last") && body.contains("by hand 299."), "{body}");
}

/// The fingerprint tells an edit from none.
#[test]
fn the_fingerprint_changes_with_the_files() {
    let (temp, folder) = folder();
    folder.write(&order("x", MemoryMode::Replace, None)).unwrap();
    let before = folder.fingerprint();
    assert_eq!(folder.fingerprint(), before);
    fs::write(temp.path().join("memory/shared/plan.md"), "longer than before").unwrap();
    assert_ne!(folder.fingerprint(), before);
}
