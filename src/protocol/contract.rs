//! What a valid message is: the JSON Schema derived from the Rust types, once per process.
//!
//! Knows the types only. [`contract`] gives both forms: the schema as JSON (for the documents) and as compiled shapes
//! (for the decoder). Invariant: what the decoder enforces is what the schema says, nothing more and nothing less.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::limits;
use super::shape::{Field, Shape};
use super::{ClientMessage, ServerMessage};

/// A colour of the wire.
pub(crate) const COLOR_PATTERN: &str = "^#[0-9A-Fa-f]{6}$";
/// At least one character that is not white space.
pub(crate) const NOT_BLANK_PATTERN: &str = r"\S";

/// Schema of the literal number 1.
pub(crate) fn one(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "const": 1 })
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    Foreman,
    Client,
}

/// The contract of the wire.
pub struct Contract {
    /// Schemas of entities and enums by name, as `$defs` holds them.
    pub definitions: Map<String, Value>,
    /// Messages of the Foreman, in the order of the document: type and whole schema, envelope included.
    pub server: Vec<(String, Value)>,
    /// Messages of clients.
    pub client: Vec<(String, Value)>,
    pub(crate) server_shapes: BTreeMap<String, Shape>,
    pub(crate) client_shapes: BTreeMap<String, Shape>,
}

/// The contract, made at first use.
pub fn contract() -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(Contract::derive)
}

impl Contract {
    fn derive() -> Self {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let server = ServerMessage::json_schema(&mut generator).to_value();
        let client = ClientMessage::json_schema(&mut generator).to_value();
        let mut definitions = generator.take_definitions(true);
        for definition in definitions.values_mut() {
            tidy(definition);
        }
        let server = messages(server, &definitions);
        let client = messages(client, &definitions);
        // Structs that are the payload of a message were merged into it; what is left are entities and enums.
        let mut used = BTreeSet::new();
        for (_, schema) in server.iter().chain(&client) {
            collect_references(schema, &definitions, &mut used);
        }
        definitions.retain(|name, _| used.contains(name));
        let shapes = |list: &[(String, Value)]| {
            let compile = |schema| Shape::compile(schema, &definitions).unwrap_or_else(Shape::Never);
            list.iter().map(|(name, schema)| (name.clone(), compile(schema))).collect()
        };
        Self { server_shapes: shapes(&server), client_shapes: shapes(&client), definitions, server, client }
    }

    /// The messages of one side: type and schema, in the order of the document.
    pub fn messages(&self, sender: Sender) -> &[(String, Value)] {
        match sender {
            Sender::Foreman => &self.server,
            Sender::Client => &self.client,
        }
    }

    pub(crate) fn shapes(&self, sender: Sender) -> &BTreeMap<String, Shape> {
        match sender {
            Sender::Foreman => &self.server_shapes,
            Sender::Client => &self.client_shapes,
        }
    }

    /// The whole contract as one JSON Schema document (draft 2020-12).
    pub fn schema(&self) -> Value {
        let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let side = |list: &[(String, Value)]| list.iter().map(|(name, _)| reference(name)).collect::<Vec<_>>();
        let mut definitions = self.definitions.clone();
        for (name, schema) in self.server.iter().chain(&self.client) {
            definitions.insert(name.clone(), schema.clone());
        }
        definitions.insert(
            "ForemanMessage".to_owned(),
            json!({ "description": "What the Foreman sends.", "oneOf": side(&self.server) }),
        );
        definitions.insert(
            "ClientMessage".to_owned(),
            json!({ "description": "What a client sends.", "oneOf": side(&self.client) }),
        );
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "AgentCraft protocol v1",
            "description": "One JSON object per WebSocket text frame. Unknown fields are ignored; optional fields are omitted, never null.",
            "oneOf": [reference("ForemanMessage"), reference("ClientMessage")],
            "$defs": definitions,
        })
    }
}

/// Fields every message is looked at for before its type is known.
pub(crate) fn head() -> &'static Shape {
    static HEAD: OnceLock<Shape> = OnceLock::new();
    HEAD.get_or_init(|| {
        let text = || Shape::text(0, None);
        let field = |name: &str, shape| Field { name: name.to_owned(), required: false, shape };
        Shape::Object(vec![field("v", Shape::Exactly(json!(1))), field("type", text()), field("id", text())])
    })
}

/// The variants of a message enum, each merged with its payload's fields and the envelope's.
fn messages(mut schema: Value, definitions: &Map<String, Value>) -> Vec<(String, Value)> {
    tidy(&mut schema);
    let variants = schema.get_mut("oneOf").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    variants.into_iter().filter_map(|variant| message(&variant, definitions)).collect()
}

fn message(variant: &Value, definitions: &Map<String, Value>) -> Option<(String, Value)> {
    let name = variant.pointer("/properties/type/const")?.as_str()?.to_owned();
    let payload = variant.get("$ref").and_then(Value::as_str).and_then(|target| resolve(target, definitions));
    let mut properties = Map::new();
    properties.insert("v".to_owned(), json!({ "const": 1, "description": "Protocol version." }));
    properties.insert("type".to_owned(), json!({ "const": name }));
    properties.insert(
        "id".to_owned(),
        json!({ "type": "string", "minLength": 1, "maxLength": limits::CORRELATION_ID_CHARS,
                "description": "Client correlation id; the Foreman answers with `ack` {re: id}." }),
    );
    let mut required = vec![json!("v"), json!("type")];
    for part in payload.into_iter().chain([variant]) {
        for (field, schema) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.entry(field.clone()).or_insert_with(|| schema.clone());
        }
        for field in part.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !required.contains(field) {
                required.push(field.clone());
            }
        }
    }
    let description = variant.get("description").or_else(|| payload.and_then(|payload| payload.get("description")));
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    if let (Some(description), Some(schema)) = (description, schema.as_object_mut()) {
        schema.insert("description".to_owned(), description.clone());
    }
    Some((name, schema))
}

/// The definition that `#/$defs/<name>` points to.
pub(crate) fn resolve<'a>(target: &str, definitions: &'a Map<String, Value>) -> Option<&'a Value> {
    definitions.get(target.strip_prefix("#/$defs/")?)
}

/// Names of all definitions that a schema leads to.
fn collect_references(schema: &Value, definitions: &Map<String, Value>, used: &mut BTreeSet<String>) {
    match schema {
        Value::String(text) => {
            if let (Some(name), Some(target)) = (text.strip_prefix("#/$defs/"), resolve(text, definitions))
                && used.insert(name.to_owned())
            {
                collect_references(target, definitions, used);
            }
        }
        Value::Array(list) => list.iter().for_each(|item| collect_references(item, definitions, used)),
        Value::Object(map) => map.values().for_each(|item| collect_references(item, definitions, used)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Brings a derived schema to the wire's rules: an optional field is omitted and never null, integers have the bounds
/// that their Rust type and JSON's doubles leave, words of an enum are one list.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(map) => {
            without_null(map);
            words(map);
            integer_bounds(map);
            map.values_mut().for_each(tidy);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|word| word != "null");
        if let [single] = types.as_slice() {
            let single = single.clone();
            map.insert("type".to_owned(), single);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|word| word != "null"));
        if let [Value::Object(single)] = choices.as_slice() {
            let single = single.clone();
            map.remove("anyOf");
            for (key, value) in single {
                map.entry(key).or_insert(value);
            }
        }
    }
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
}

/// `oneOf` of `const` strings, which documented variants derive to, becomes one `enum`.
fn words(map: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("oneOf") else { return };
    let mut words = Vec::new();
    for choice in choices {
        match (choice.get("const"), choice.get("enum").and_then(Value::as_array)) {
            (Some(word @ Value::String(_)), _) => words.push(word.clone()),
            (_, Some(list)) => words.extend(list.iter().cloned()),
            _ => return,
        }
    }
    map.remove("oneOf");
    map.insert("type".to_owned(), json!("string"));
    map.insert("enum".to_owned(), Value::Array(words));
}

fn integer_bounds(map: &mut Map<String, Value>) {
    let Some(format) = map.get("format").and_then(Value::as_str) else { return };
    let bounds = match format {
        "uint8" => (0, i64::from(u8::MAX)),
        "uint32" => (0, i64::from(u32::MAX)),
        "uint64" => (0, limits::MAX_INTEGER),
        "int64" => (-limits::MAX_INTEGER, limits::MAX_INTEGER),
        "double" => {
            map.remove("format");
            return;
        }
        _ => return,
    };
    // The only 64-bit numbers without a sign are times.
    if format == "uint64" {
        map.entry("description").or_insert_with(|| json!("Epoch milliseconds."));
    }
    map.remove("format");
    map.insert("minimum".to_owned(), json!(bounds.0));
    map.insert("maximum".to_owned(), json!(bounds.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_the_document_has_a_shape_that_compiles() {
        let contract = contract();
        assert_eq!(contract.server.len(), 15);
        assert_eq!(contract.client.len(), 8);
        for (name, shape) in contract.server_shapes.iter().chain(&contract.client_shapes) {
            assert!(!matches!(shape, Shape::Never(_)), "{name}: {shape:?}");
        }
        for schema in contract.definitions.values() {
            Shape::compile(schema, &contract.definitions).unwrap();
        }
    }

    #[test]
    fn definitions_are_the_entities_and_enums_of_the_document() {
        let names: Vec<&str> = contract().definitions.keys().map(String::as_str).collect();
        assert!(names.contains(&"Agent") && names.contains(&"DiffLineKind"), "{names:?}");
        assert!(!names.contains(&"Hello") && !names.contains(&"Snapshot"), "{names:?}");
    }

    #[test]
    fn nothing_in_the_schema_allows_null() {
        let text = contract().schema().to_string();
        assert!(!text.contains("null\""), "{text}");
    }
}
