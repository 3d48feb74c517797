//! The reference document and the JSON Schema, generated from the types.
//!
//! Copies are in `docs/`; a test checks that they are fresh. Entry points: [`reference()`] and [`schema`].

mod fields;

use std::fmt::{self, Write};

use serde_json::{Map, Value};

use super::contract::{COLOR_PATTERN, Sender, contract};
use super::decode::envelope;
use super::{decode_client, decode_server, label, limits};
use fields::{ENTITIES, ENUMS, MESSAGES, Order};

/// The reference document, in Markdown.
pub fn reference() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_reference(&mut text);
    text
}

/// The JSON Schema of all messages (draft 2020-12).
pub fn schema() -> Value {
    contract().schema()
}

/// One example per message, in the order of the document.
pub fn examples() -> Vec<Value> {
    // The text is part of this program; a test reads it.
    serde_json::from_str(include_str!("examples.json")).unwrap_or_default()
}

fn write_reference(out: &mut String) -> fmt::Result {
    writeln!(out, "# AgentCraft protocol v1\n")?;
    writeln!(
        out,
        "> Generated from the types in `src/protocol/` by `agentcraft-tui protocol`. Do not edit by hand.\n"
    )?;
    write_transport(out)?;
    write_limits(out)?;
    writeln!(out, "## Enums\n")?;
    for name in ENUMS {
        let definition = definition(name);
        let words = words(definition).join(", ");
        let note = description(definition).map(|note| format!(" - {note}")).unwrap_or_default();
        writeln!(out, "- <a id=\"{}\"></a>**{name}**: {words}{note}", anchor(name))?;
    }
    writeln!(
        out,
        "\nOption labels that clients compare exactly: merge decisions have {}; permission decisions have {}. Question \
         decisions have the options that the agent gave; none means free text.\n",
        code_list(&label::MERGE_OPTIONS),
        code_list(&label::PERMISSION_OPTIONS),
    )?;
    writeln!(out, "## Entities\n")?;
    for (name, order) in ENTITIES {
        writeln!(out, "### <a id=\"{}\"></a>{name}\n", anchor(name))?;
        if let Some(note) = description(definition(name)) {
            writeln!(out, "{note}\n")?;
        }
        write_fields(out, definition(name), *order)?;
    }
    let examples = examples();
    for (title, sender) in [("Foreman to client", Sender::Foreman), ("Client to Foreman", Sender::Client)] {
        writeln!(out, "## {title}\n")?;
        for (name, schema) in contract().messages(sender) {
            let order = MESSAGES.iter().find(|(message, _)| message == name).and_then(|(_, order)| *order);
            write_message(out, name, schema, order, sender, &examples)?;
        }
    }
    out.push_str(CONSOLE);
    Ok(())
}

fn write_transport(out: &mut String) -> fmt::Result {
    out.push_str(
        "## Transport\n\n\
         - The Foreman listens on `ws://127.0.0.1:7878` (and `ws://[::1]:7878` where the machine has it), or on the port \
         it was given. A client connects, sends `hello`, gets a whole `snapshot` and from then on every change. Any \
         number of clients may be connected; each hears every broadcast, and replies to its own messages only.\n\
         - One JSON object per WebSocket **text** frame: `{ \"v\": 1, \"type\": \"<type>\", \"id\"?: \"<correlation id>\", ... }`. \
         A text may come in fragments. Binary frames are refused with an `error`.\n\
         - A client message with an `id` is answered by `ack { re: id, ok, error?, result? }`, after the changes it made \
         were sent. When it fails, an `error` comes first. Without an `id` there is no `ack`; an `error` still comes. Ids \
         belong to their connection.\n\
         - Times are integers, milliseconds since the epoch. Colours are `\"#RRGGBB\"`. An optional field is left out, never \
         `null`. Unknown fields are ignored. A message that breaks a rule is answered with what is wrong and where \
         (`text: must not be blank`), at most five issues.\n\
         - An upsert replaces the whole entity with that id. `agent.log` and `feed.add` append. While a client is slow, an \
         upsert that still waits is replaced by a newer one of the same entity; nothing else is left out or reordered.\n\
         - Text has no control characters but newline and tab, and no terminal escape sequences.\n\
         - An upgrade request with an `Origin` header, whatever its value, or with a `Host` other than `127.0.0.1`, \
         `localhost` or `[::1]` (with an optional port) gets HTTP 401: web pages must not drive agents. On Linux only \
         processes of the same user (and root) are let in. No extension and no subprotocol is negotiated.\n\
         - The Foreman pings every 15 s. Any byte from a client counts as a sign of life; after several intervals without \
         one the connection is closed. A client that does not read what it is sent is closed with code 1008, a message \
         over the limit with 1009, and all with 1001 when the Foreman ends.\n\
         - Clients reconnect with backoff and say `hello` again; the snapshot rebuilds everything. A second `hello` on the \
         same connection brings a snapshot too. Before its first valid message a client hears no broadcast; a valid \
         message other than `hello` starts them without a snapshot.\n\n",
    );
    Ok(())
}

fn write_limits(out: &mut String) -> fmt::Result {
    let rows = [
        ("a message, as text of its frame", limits::MAX_FRAME_BYTES, "bytes"),
        ("`goal.submit.text`", limits::GOAL_TEXT_CHARS, "characters"),
        ("`user.message.text`", limits::MESSAGE_TEXT_CHARS, "characters"),
        ("`decision.answer.text`", limits::ANSWER_TEXT_CHARS, "characters"),
        ("`decision.answer.option`, as a label", limits::OPTION_LABEL_CHARS, "characters"),
        ("`repo.add.path`, `diff.request.path`", limits::PATH_CHARS, "characters"),
        ("an id of an entity or request, `arg`, `to`", limits::ID_CHARS, "characters"),
        ("a correlation id", limits::CORRELATION_ID_CHARS, "characters"),
        ("`hello.modVersion`, `hello.client`", limits::NAME_CHARS, "characters"),
        ("feed items of a snapshot", limits::FEED_ITEMS, "items"),
        ("log entries of a snapshot, per agent", limits::LOG_ENTRIES, "entries"),
    ];
    writeln!(out, "## Limits\n\n| what | at most | unit |\n| --- | --- | --- |")?;
    for (what, most, unit) in rows {
        writeln!(out, "| {what} | {most} | {unit} |")?;
    }
    writeln!(
        out,
        "\nIntegers are within ±(2^53 - 1). A snapshot that would be too large for a frame leaves out, oldest first and \
         only as far as needed: log entries, feed lines, closed decisions, tasks of finished goals, former worktrees, \
         finished goals, memory notes. The last line of its feed says so.\n"
    )
}

fn write_message(
    out: &mut String,
    name: &str,
    schema: &Value,
    order: Order,
    sender: Sender,
    examples: &[Value],
) -> fmt::Result {
    writeln!(out, "### `{name}`\n")?;
    if let Some(note) = description(schema) {
        writeln!(out, "{note}\n")?;
    }
    write_fields(out, schema, order)?;
    let example = examples.iter().find(|example| example.get("type").is_some_and(|message| message == name));
    if let Some(text) = example.and_then(|example| pretty(example, sender)) {
        writeln!(out, "```json\n{text}\n```\n")?;
    }
    Ok(())
}

/// An example with its fields in the order of the types.
fn pretty(example: &Value, sender: Sender) -> Option<String> {
    let text = example.to_string();
    match sender {
        Sender::Foreman => serde_json::to_string_pretty(&envelope(&decode_server(&text).ok()?)).ok(),
        Sender::Client => {
            let client = decode_client(&text).ok()?;
            serde_json::to_string_pretty(&super::decode::client_envelope(&client)).ok()
        }
    }
}

/// The table of an object's fields; `v` and `type` go without saying.
fn write_fields(out: &mut String, schema: &Value, order: Order) -> fmt::Result {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<&str> =
        properties.keys().map(String::as_str).filter(|name| !["v", "type"].contains(name)).collect();
    let position = |name: &str| match order {
        // The correlation id of the envelope first, unless the id is the entity's own.
        Some(fields) => fields().iter().position(|field| *field == name).map_or(0, |at| at + 1),
        None => usize::from(name != "id"),
    };
    names.sort_by_key(|name| position(name));
    writeln!(out, "| field | type | required | notes |\n| --- | --- | --- | --- |")?;
    for name in names {
        let Some(field) = properties.get(name) else { continue };
        let needed = if required.iter().any(|field| field == name) { "yes" } else { "no" };
        let note = description(field).unwrap_or_default().replace('|', "\\|");
        writeln!(out, "| `{name}` | {} | {needed} | {note} |", type_of(field))?;
    }
    out.write_char('\n')
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{})", anchor(name));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" \\| ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => format!("{}[]", schema.get("items").map(type_of).unwrap_or_default()),
        Some("object") => "map<string, any>".to_owned(),
        Some("string") if schema.get("pattern").is_some_and(|pattern| pattern == COLOR_PATTERN) => {
            "string (#RRGGBB)".to_owned()
        }
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

fn definition(name: &str) -> &'static Value {
    contract().definitions.get(name).unwrap_or(&Value::Null)
}

fn description(schema: &Value) -> Option<String> {
    // Doc comments wrap lines; a table cell can't.
    schema.get("description").and_then(Value::as_str).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn words(schema: &Value) -> Vec<String> {
    let words = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    words.filter_map(Value::as_str).map(|word| format!("`{word}`")).collect()
}

fn code_list(labels: &[&str]) -> String {
    labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ")
}

fn anchor(name: &str) -> String {
    name.to_ascii_lowercase()
}

const CONSOLE: &str = "## Console mapping\n\n\
| console input | message |\n\
| --- | --- |\n\
| plain text | `goal.submit {text}` |\n\
| `@name text`, `@all text` | `user.message {to:\"all\", text:\"@name text\"}` (the Foreman routes it) or `{to:\"name\", text}` |\n\
| `/answer [dN] <n\\|label> [text]`, `/a` | `decision.answer {decisionId, option, text?}`; `n` counts from 1, a label may be shortened to its start, anything else is free text; without `dN` the decision that is shown, or the only open one |\n\
| `/diff <worktree\\|dN> [path]` | `diff.request {requestId, repoId, worktree, path?}`; of a decision its worktree |\n\
| `/repo add <path>` | `repo.add {path}` |\n\
| `/pause @name`, `/resume @name`, `/stop @name`, `/spawn @name [taskId]` | `agent.action` (spawn: `arg` = task id) |\n\
| `/task <id> cancel\\|retry\\|prioritize [n]\\|reassign <agent>` | `task.action` |\n\
| `/status`, `/agents`, `/tasks`, `/decisions`, `/memory [id]`, `/feed`, `/counts` | none: shown from what the client knows |\n\
| `/wait <seconds>\\|dN\\|tN [status]\\|decision [kind]\\|goal [status]\\|merge\\|snapshot\\|diff` | none: for scripts |\n\
| `/help`, `/quit` | none |\n";

#[cfg(test)]
mod tests;
