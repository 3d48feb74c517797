//! A compiled JSON Schema: checks a value with readable issues, and reads JSON text without keeping what it would
//! ignore.
//!
//! Covers the subset of JSON Schema that the wire's types derive to; any other keyword refuses to compile. Values nest
//! only as deep as the types do: unknown fields are skipped, not kept, so neither their size nor their depth costs
//! memory or stack.

use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::contract::{COLOR_PATTERN, NOT_BLANK_PATTERN, resolve};
use super::limits::MAX_ISSUES;

/// What a value must look like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Any JSON value.
    Any,
    /// Nothing: the schema could not be compiled, for the reason given.
    Never(String),
    Bool,
    Text {
        /// Characters.
        min: usize,
        max: Option<usize>,
        pattern: Option<Pattern>,
    },
    Integer {
        min: i64,
        max: i64,
    },
    Number {
        min: Option<f64>,
        max: Option<f64>,
    },
    /// One literal.
    Exactly(Value),
    /// One of these words.
    Word(Vec<String>),
    List(Box<Self>),
    Object(Vec<Field>),
    /// Any object.
    Dictionary,
    Either(Vec<Self>),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
}

/// The patterns that the wire knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `#RRGGBB`.
    Color,
    /// Not only white space.
    NotBlank,
}

/// Types nest six deep at most; a cycle would end here.
const MAX_SCHEMA_DEPTH: usize = 24;

impl Shape {
    pub(crate) fn text(min: usize, max: Option<usize>) -> Self {
        Self::Text { min, max, pattern: None }
    }

    /// Compiles a schema; the error names what is not understood.
    pub(crate) fn compile(schema: &Value, definitions: &Map<String, Value>) -> Result<Self, String> {
        compile(schema, definitions, 0)
    }

    /// What a value of this shape is called in an issue.
    fn wanted(&self) -> String {
        match self {
            Self::Any => "a value".to_owned(),
            Self::Never(reason) => format!("nothing ({reason})"),
            Self::Bool => "true or false".to_owned(),
            Self::Text { pattern: Some(Pattern::Color), .. } => "a colour #RRGGBB".to_owned(),
            Self::Text { .. } => "a string".to_owned(),
            Self::Integer { min, max } if *min == 0 => format!("an integer from 0 to {max}"),
            Self::Integer { .. } => "an integer".to_owned(),
            Self::Number { min: Some(min), max: Some(max) } => format!("a number from {min} to {max}"),
            Self::Number { .. } => "a number".to_owned(),
            Self::Exactly(value) => format!("the {} {value}", if value.is_number() { "number" } else { "value" }),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) | Self::Dictionary => "an object".to_owned(),
            Self::Either(shapes) => shapes.iter().map(Self::wanted).collect::<Vec<_>>().join(" or "),
        }
    }

    /// Collects what is wrong with `value`.
    pub(crate) fn check(&self, value: &Value, issues: &mut Issues) {
        if issues.is_full() {
            return;
        }
        match (self, value) {
            (Self::Any, _) | (Self::Bool, Value::Bool(_)) | (Self::Dictionary, Value::Object(_)) => {}
            (Self::Text { min, max, pattern }, Value::String(text)) => {
                if let Some(issue) = text_issue(text, *min, *max, *pattern) {
                    issues.add(issue);
                }
            }
            (Self::Integer { min, max }, Value::Number(number))
                if number.as_i64().is_some_and(|number| (*min..=*max).contains(&number)) => {}
            (Self::Number { min, max }, Value::Number(number))
                if number.as_f64().is_some_and(|number| {
                    min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
                }) => {}
            (Self::Exactly(wanted), value) if wanted == value => {}
            (Self::Word(words), Value::String(word)) if words.contains(word) => {}
            (Self::List(item), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    issues.at_index(index, |issues| item.check(value, issues));
                }
            }
            (Self::Object(fields), Value::Object(map)) => {
                for field in fields {
                    match map.get(&field.name) {
                        Some(value) => issues.at_field(&field.name, |issues| field.shape.check(value, issues)),
                        None if field.required => issues.at_field(&field.name, |issues| {
                            issues.add(format!("missing, expected {}", field.shape.wanted()));
                        }),
                        None => {}
                    }
                }
            }
            (Self::Either(shapes), value) if shapes.iter().any(|shape| shape.accepts(value)) => {}
            (Self::Either(shapes), Value::String(text)) => match shapes.iter().find(|s| matches!(s, Self::Text { .. }))
            {
                Some(shape) => shape.check(value, issues),
                None => issues.add(format!("expected {}, got {}", self.wanted(), quoted(text))),
            },
            (_, value) => issues.add(format!("expected {}, got {}", self.wanted(), found(value))),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        let mut issues = Issues::default();
        self.check(value, &mut issues);
        issues.is_empty()
    }

    fn holds_integer(&self) -> bool {
        match self {
            Self::Integer { .. } | Self::Exactly(Value::Number(_)) => true,
            Self::Either(shapes) => shapes.iter().any(Self::holds_integer),
            Self::Any
            | Self::Never(_)
            | Self::Bool
            | Self::Text { .. }
            | Self::Number { .. }
            | Self::Exactly(_)
            | Self::Word(_)
            | Self::List(_)
            | Self::Object(_)
            | Self::Dictionary => false,
        }
    }

    /// Reads JSON text; keeps only what this shape looks at. A list or object where none is wanted is kept empty, so
    /// that [`Shape::check`] can say so.
    pub(crate) fn read(&self, text: &str) -> serde_json::Result<Value> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Reader(self).deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

fn text_issue(text: &str, min: usize, max: Option<usize>, pattern: Option<Pattern>) -> Option<String> {
    // Bytes are an upper bound of characters: long texts are counted only when they could be over.
    if let Some(max) = max.filter(|max| text.len() > *max) {
        let chars = text.chars().count();
        if chars > max {
            return Some(format!("{chars} characters are over the limit of {max}"));
        }
    }
    if text.len() < min {
        return Some("must not be empty".to_owned());
    }
    match pattern {
        Some(Pattern::NotBlank) if text.chars().all(char::is_whitespace) => Some("must not be blank".to_owned()),
        Some(Pattern::Color) if !is_color(text) => Some(format!("expected a colour #RRGGBB, got {}", quoted(text))),
        Some(Pattern::NotBlank | Pattern::Color) | None => None,
    }
}

fn is_color(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// What stands there, in an issue.
fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A stranger's text inside an issue: cleaned, short, in quotes.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    let cleaned = super::text::clean(&start).replace(['\n', '\t'], " ");
    format!("\"{cleaned}{more}\"")
}

/// What is wrong with a message, at most [`MAX_ISSUES`].
#[derive(Debug, Default)]
pub(crate) struct Issues {
    path: String,
    found: Vec<String>,
}

impl Issues {
    pub(crate) fn add(&mut self, issue: impl AsRef<str>) {
        if !self.is_full() {
            let path = if self.path.is_empty() { "(root)" } else { &self.path };
            self.found.push(format!("{path}: {}", issue.as_ref()));
        }
    }

    pub(crate) fn at_field(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        check(self);
        self.path.truncate(length);
    }

    fn at_index(&mut self, index: usize, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // Writing to a String cannot fail.
        let _ = write!(self.path, "[{index}]");
        check(self);
        self.path.truncate(length);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MAX_ISSUES
    }

    /// All of them in one line.
    pub(crate) fn join(&self) -> String {
        self.found.join("; ")
    }
}

fn compile(schema: &Value, definitions: &Map<String, Value>, depth: usize) -> Result<Shape, String> {
    if depth > MAX_SCHEMA_DEPTH {
        return Err("types nest too deeply".to_owned());
    }
    let map = match schema {
        Value::Bool(true) => return Ok(Shape::Any),
        Value::Object(map) => map,
        other => return Err(format!("not a schema: {other}")),
    };
    const KNOWN: [&str; 16] = [
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "items",
        "maxLength",
        "maximum",
        "minLength",
        "minimum",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    ];
    if let Some(unknown) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("keyword {unknown}"));
    }
    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
        let target = resolve(target, definitions).ok_or_else(|| format!("no definition {target}"))?;
        return compile(target, definitions, depth + 1);
    }
    if let Some(value) = map.get("const") {
        return Ok(Shape::Exactly(value.clone()));
    }
    if let Some(choices) = map.get("anyOf").and_then(Value::as_array) {
        let shapes = choices.iter().map(|choice| compile(choice, definitions, depth + 1)).collect::<Result<_, _>>()?;
        return Ok(Shape::Either(shapes));
    }
    let unsigned = |key: &str| map.get(key).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    match map.get("type").and_then(Value::as_str) {
        None if map.keys().all(|key| key == "description" || key == "title") => Ok(Shape::Any),
        Some("boolean") => Ok(Shape::Bool),
        Some("string") => match map.get("enum").and_then(Value::as_array) {
            Some(words) => Ok(Shape::Word(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())),
            None => Ok(Shape::Text {
                min: unsigned("minLength").unwrap_or(0),
                max: unsigned("maxLength"),
                pattern: map.get("pattern").and_then(Value::as_str).map(compile_pattern).transpose()?,
            }),
        },
        Some("integer") => {
            let bound =
                |key: &str| map.get(key).and_then(Value::as_i64).ok_or_else(|| format!("integer without {key}"));
            Ok(Shape::Integer { min: bound("minimum")?, max: bound("maximum")? })
        }
        Some("number") => {
            let bound = |key: &str| map.get(key).and_then(Value::as_f64);
            Ok(Shape::Number { min: bound("minimum"), max: bound("maximum") })
        }
        Some("array") => {
            let items = map.get("items").ok_or("list without items")?;
            Ok(Shape::List(Box::new(compile(items, definitions, depth + 1)?)))
        }
        Some("object") => {
            let Some(properties) = map.get("properties").and_then(Value::as_object) else {
                return Ok(Shape::Dictionary);
            };
            let required: Vec<&str> =
                map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            let field = |(name, schema): (&String, &Value)| {
                let shape = compile(schema, definitions, depth + 1)?;
                Ok(Field { name: name.clone(), required: required.contains(&name.as_str()), shape })
            };
            Ok(Shape::Object(properties.iter().map(field).collect::<Result<_, String>>()?))
        }
        other => Err(format!("type {other:?}")),
    }
}

fn compile_pattern(pattern: &str) -> Result<Pattern, String> {
    match pattern {
        COLOR_PATTERN => Ok(Pattern::Color),
        NOT_BLANK_PATTERN => Ok(Pattern::NotBlank),
        other => Err(format!("pattern {other}")),
    }
}

/// Reads a value by its shape.
struct Reader<'a>(&'a Shape);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        // JSON has one kind of number: `1.0` is the integer 1, as a client that holds numbers as doubles writes it.
        #[expect(clippy::cast_possible_truncation, reason = "an integral number within i64 is exact")]
        if self.0.holds_integer() && number.fract() == 0.0 && number.abs() < 9.0e15 {
            return Ok((number as i64).into());
        }
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        match self.0 {
            Shape::List(item) => {
                while let Some(value) = items.next_element_seed(Reader(item))? {
                    list.push(value);
                }
            }
            Shape::Any => {
                while let Some(value) = items.next_element_seed(Reader(&Shape::Any))? {
                    list.push(value);
                }
            }
            Shape::Never(_)
            | Shape::Bool
            | Shape::Text { .. }
            | Shape::Integer { .. }
            | Shape::Number { .. }
            | Shape::Exactly(_)
            | Shape::Word(_)
            | Shape::Object(_)
            | Shape::Dictionary
            | Shape::Either(_) => while items.next_element::<IgnoredAny>()?.is_some() {},
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let shape = match self.0 {
                Shape::Object(fields) => fields.iter().find(|field| field.name == key).map(|field| &field.shape),
                Shape::Any | Shape::Dictionary => Some(&Shape::Any),
                Shape::Never(_)
                | Shape::Bool
                | Shape::Text { .. }
                | Shape::Integer { .. }
                | Shape::Number { .. }
                | Shape::Exactly(_)
                | Shape::Word(_)
                | Shape::List(_)
                | Shape::Either(_) => None,
            };
            match shape {
                Some(shape) => {
                    let value = entries.next_value_seed(Reader(shape))?;
                    map.insert(key, value);
                }
                None => {
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(map))
    }
}
