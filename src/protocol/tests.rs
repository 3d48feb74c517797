//! Properties of the whole wire: values are generated from the contract itself.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::contract::{Sender, contract};
use super::shape::{Pattern, Shape};
use super::*;

/// Any valid value of a shape. Numbers have few digits, which the reader gives back exactly.
fn value(shape: &Shape) -> BoxedStrategy<Value> {
    match shape {
        Shape::Any => any_value(),
        Shape::Never(reason) => panic!("{reason}"),
        Shape::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Shape::Text { pattern: Some(Pattern::Color), .. } => "#[0-9a-fA-F]{6}".prop_map(Value::from).boxed(),
        Shape::Text { min, max, pattern } => {
            let start = if *min > 0 || pattern.is_some() { "x" } else { "" };
            assert!(*min <= 1 && max.is_none_or(|max| max > 20));
            proptest::collection::vec(any::<char>(), 0..12)
                .prop_map(move |chars| Value::from(chars.into_iter().collect::<String>() + start))
                .boxed()
        }
        Shape::Integer { min, max } => {
            prop_oneof![Just(*min), Just(*max), *min..=*max, 0_i64..1000].prop_map(Value::from).boxed()
        }
        Shape::Number { min, max } => {
            let (min, max) = (min.unwrap_or(-1e5) * 64.0, max.unwrap_or(1e5) * 64.0);
            #[expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]
            let whole = (min as i64)..=(max as i64);
            whole.prop_map(|number| Value::from(number as f64 / 64.0)).boxed()
        }
        Shape::Exactly(value) => Just(value.clone()).boxed(),
        Shape::Word(words) => proptest::sample::select(words.clone()).prop_map(Value::from).boxed(),
        Shape::List(item) => proptest::collection::vec(value(item), 0..3).prop_map(Value::from).boxed(),
        Shape::Dictionary => proptest::collection::btree_map("[a-z]{1,3}", any_value(), 0..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
            .boxed(),
        Shape::Either(shapes) => proptest::strategy::Union::new(shapes.iter().map(value)).boxed(),
        Shape::Object(fields) => {
            let mut strategy = Just(Map::new()).boxed();
            for field in fields {
                let name = field.name.clone();
                let present = if field.required { Just(true).boxed() } else { any::<bool>().boxed() };
                strategy = (strategy, present, value(&field.shape))
                    .prop_map(move |(mut map, present, value)| {
                        if present {
                            map.insert(name.clone(), value);
                        }
                        map
                    })
                    .boxed();
            }
            strategy.prop_map(Value::Object).boxed()
        }
    }
}

fn any_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| proptest::collection::vec(inner, 0..3).prop_map(Value::from)).boxed()
}

/// Any valid message of either side, with its type.
fn message() -> impl Strategy<Value = (Sender, String, Value)> {
    let of = |sender: Sender| {
        contract().shapes(sender).iter().map(move |(name, shape)| {
            let name = name.clone();
            // The literal of `type` is part of each shape.
            value(shape).prop_map(move |value| (sender, name.clone(), value)).boxed()
        })
    };
    proptest::strategy::Union::new(of(Sender::Foreman).chain(of(Sender::Client)))
}

/// Decodes and encodes again.
fn again(sender: Sender, text: &str) -> Result<Value, Rejection> {
    let text = match sender {
        Sender::Foreman => encode_server(&decode_server(text)?),
        Sender::Client => encode_client(&decode_client(text)?),
    };
    Ok(serde_json::from_str(&text).unwrap())
}

/// Whole numbers are equal however they are written.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// Every path of a value, as keys and indices, the root left out.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (key, child) in children {
        let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        places(child, &path, into);
        into.push(path);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What the schema allows, the types hold and give back unchanged, unknown fields aside.
    #[test]
    fn valid_messages_survive(
        (sender, name, mut sent) in message(),
        more in any_value(),
    ) {
        if sender == Sender::Foreman {
            // Server messages are not answered; we neither send nor keep an id on them.
            sent.as_object_mut().unwrap().remove("id");
        }
        let mut with_more = sent.clone();
        with_more["unknown field"] = more;
        let back = again(sender, &with_more.to_string());
        prop_assert!(back.is_ok(), "{name}: {back:?}");
        let back = back.unwrap();
        prop_assert!(same(&back, &sent), "{name}: {back} is not {sent}");
    }

    /// A null anywhere, but in what may be any value, is an issue that names its place.
    #[test]
    fn null_is_nowhere_allowed(
        (sender, name, mut sent) in message(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut paths = Vec::new();
        places(&sent, "", &mut paths);
        paths.retain(|path| !path.starts_with("/result/"));
        let path = at.get(&paths).clone();
        *sent.pointer_mut(&path).unwrap() = Value::Null;
        let back = again(sender, &sent.to_string());
        prop_assert!(back.is_err(), "{name}: null at {path} was taken");
        let issues = back.unwrap_err().issues;
        let field = path.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
        prop_assert!(issues.contains(field), "{name}: {path}: {issues}");
    }

    /// Whatever text comes, the answer is a value or an issue, and what is answered can be sent.
    #[test]
    fn any_text_is_decoded_or_refused(text in "\\PC{0,60}|[\\[\\]{}\",:0-9eE.+\\-a-z\\\\]{0,80}") {
        for rejection in [decode_client(&text).err(), decode_server(&text).err()].into_iter().flatten() {
            prop_assert!(!rejection.issues.is_empty());
        }
    }
}

#[test]
fn a_type_of_the_other_side_is_unknown() {
    for (name, _) in &contract().server {
        let text = json!({"v": 1, "type": name}).to_string();
        assert!(decode_client(&text).unwrap_err().issues.starts_with("type: unknown message type"), "{name}");
    }
}
