use std::collections::BTreeSet;
use std::path::PathBuf;

use pretty_assertions::assert_eq;

use super::*;
use crate::protocol::{encode_client, encode_server};

#[test]
fn every_message_has_an_example_that_survives_unchanged() {
    let examples = examples();
    let contract = contract();
    let names: Vec<&str> = examples.iter().map(|example| example["type"].as_str().unwrap()).collect();
    let wanted: Vec<&str> = contract.server.iter().chain(&contract.client).map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, wanted);
    for (example, name) in examples.iter().zip(names) {
        let text = example.to_string();
        let again = if contract.server.iter().any(|(message, _)| message == name) {
            encode_server(&decode_server(&text).unwrap_or_else(|rejection| panic!("{name}: {rejection}")))
        } else {
            encode_client(&decode_client(&text).unwrap_or_else(|rejection| panic!("{name}: {rejection}")))
        };
        assert_eq!(&serde_json::from_str::<Value>(&again).unwrap(), example);
    }
}

#[test]
fn the_document_names_every_entity_and_enum_once() {
    let listed: Vec<&str> = ENUMS.iter().copied().chain(ENTITIES.iter().map(|(name, _)| *name)).collect();
    let defined: BTreeSet<&str> = contract().definitions.keys().map(String::as_str).collect();
    assert_eq!(listed.len(), defined.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), defined);
}

#[test]
fn every_field_is_in_its_table() {
    let text = reference();
    let contract = contract();
    for (name, schema) in
        contract.definitions.iter().chain(contract.server.iter().chain(&contract.client).map(|(n, s)| (n, s)))
    {
        for field in schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(field, _)| field) {
            assert!(field == "v" || field == "type" || text.contains(&format!("| `{field}` |")), "{name}.{field}");
        }
    }
    assert!(text.contains("One file of the diff, whole"));
}

#[test]
fn links_of_the_document_lead_somewhere() {
    let text = reference();
    for link in text.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(text.contains(&format!("<a id=\"{link}\"></a>")), "{link}");
    }
}

#[track_caller]
fn fresh(file: &str, made: &str, command: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "docs", file].iter().collect();
    if std::env::var_os("AGENTCRAFT_WRITE_DOCS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/{file} is stale: run `{command} > docs/{file}`, or this test with AGENTCRAFT_WRITE_DOCS=1"
    );
}

#[test]
fn the_copies_in_docs_are_fresh() {
    fresh("protocol.md", &reference(), "agentcraft-tui protocol");
    let schema = format!("{:#}\n", schema());
    fresh("protocol.schema.json", &schema, "agentcraft-tui protocol --schema");
}

#[test]
fn the_schema_describes_the_examples() {
    // Every property of every example is named by the schema of its message.
    let schema = schema();
    for example in examples() {
        let name = example["type"].as_str().unwrap();
        let properties = &schema["$defs"][name]["properties"];
        for field in example.as_object().unwrap().keys() {
            assert!(properties.get(field).is_some(), "{name}.{field}");
        }
    }
}
