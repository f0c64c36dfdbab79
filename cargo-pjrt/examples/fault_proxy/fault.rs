//! The language of faults.

use pjrt_sys::{FieldLayout, SLOTS, STRUCTS, StructLayout};

use super::functions::EXTENSION_FUNCTIONS;

/// A fault.
pub(crate) struct Fault {
    /// The number of the function, or `None` for `GetPjrtApi`.
    pub(crate) slot: Option<usize>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) actions: Vec<Action>,
}

/// The condition for a fault to occur.
pub(crate) enum Condition {
    /// A field, or its remainder modulo a divisor, has a value.
    Field { path: Path, divisor: Option<i64>, value: i64, equal: bool },
    /// The call has this number, counted from 1 among the calls of a client that fulfill the preceding
    /// conditions.
    Call(u64),
    /// At least this many other clients exist.
    Clients(i64),
    /// The call happens within a callback of the host.
    InsideCallback,
    /// The array of the call is not in the default memory of its device.
    InAnotherMemory,
    /// The call is made by another thread than the one that created the newest client.
    AnotherThread,
    /// Another thread is in the same function.
    AtOnce,
    /// This function was called before with the same object.
    After(usize),
    /// This function was called since the newest client was created.
    Since(usize),
    /// This function was not called since the newest client was created.
    Without(usize),
    /// This function returned an error since the newest client was created.
    Failed(usize),
    /// The array of the call, or the first argument of an execution, has this element type.
    OfType(i64),
    /// The array of the call, or the first argument of an execution, has this number of dimensions.
    OfRank(i64),
    /// The array of the call, or the first argument of an execution, has at least this number of dimensions.
    RankFrom(i64),
    /// A field has at least this value.
    Least(Path, i64),
    /// The call is about a device other than the first one.
    OnAnotherDevice,
}

/// The misbehavior.
pub(crate) enum Action {
    /// Changes a field before the good plugin sees it.
    Give(Path, Value),
    /// Changes a field after the good plugin wrote it.
    Set(Path, Value),
    /// Returns an error with this code without a call of the good plugin.
    Fail(u32),
    /// Returns success without a call of the good plugin.
    Skip,
    /// Turns an error of the good plugin into success.
    Accept,
    /// Replaces the code of the good plugin's error.
    Code(u32),
    /// Removes the message of the good plugin's error.
    NoMessage,
    /// A special action, with its name and arguments.
    Special(String, Vec<String>),
}

/// A field of the Args struct, or of data that the field points to.
pub(crate) struct Path {
    pub(crate) field: FieldLayout,
    pub(crate) then: Then,
}

pub(crate) enum Then {
    /// The field itself.
    Nothing,
    /// A field of the struct that the field points to, and `true` if that struct begins with its size.
    Field(FieldLayout, bool),
    /// An element of the array that the field points to.
    Element(usize),
}

/// A new value.
pub(crate) enum Value {
    Number(i64),
    /// The old value plus this number.
    Plus(i64),
    /// A pointer to an array of zeros.
    Zeros,
    /// A pointer to memory that is not otherwise used.
    Scratch,
    /// A pointer to this text.
    Text(String),
    /// An event that never completes.
    Never,
    /// An event that is complete.
    Complete,
}

const CODES: &[&str] = &[
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl Fault {
    /// Parses a fault.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().peekable();
        let function = words.next().ok_or("expected the name of a function")?;
        if function == "GetPjrtApi" {
            let name = words.next().ok_or("expected an action")?.to_owned();
            let action = Action::Special(name, words.map(str::to_owned).collect());
            return Ok(Self { slot: None, conditions: Vec::new(), actions: vec![action] });
        }
        let slot = slot(function)?;
        let args = args_of(slot);
        let (mut conditions, mut actions) = (Vec::new(), Vec::new());
        while let Some(word) = words.next() {
            match word {
                "when" => {
                    while let Some((path, value)) = words.peek().and_then(|word| word.split_once('=')) {
                        let equal = !path.ends_with('!');
                        let path = path.trim_end_matches('!');
                        let (path, divisor) = match path.split_once('%') {
                            Some((path, divisor)) => (path, Some(number(divisor)?)),
                            None => (path, None),
                        };
                        let value = number(value)?;
                        let path = Path::parse(args, path)?;
                        conditions.push(Condition::Field { path, divisor, value, equal });
                        words.next();
                    }
                }
                "call" => conditions.push(Condition::Call(number(words.next().unwrap_or(""))? as u64)),
                "clients" => conditions.push(Condition::Clients(number(words.next().unwrap_or(""))?)),
                "on_another_device" => conditions.push(Condition::OnAnotherDevice),
                "in_another_memory" => conditions.push(Condition::InAnotherMemory),
                "another_thread" => conditions.push(Condition::AnotherThread),
                "at_once" => conditions.push(Condition::AtOnce),
                "inside_callback" => conditions.push(Condition::InsideCallback),
                "after" => conditions.push(Condition::After(slot_of(words.next())?)),
                "since" => conditions.push(Condition::Since(slot_of(words.next())?)),
                "without" => conditions.push(Condition::Without(slot_of(words.next())?)),
                "of_type" => conditions.push(Condition::OfType(number(words.next().unwrap_or(""))?)),
                "of_rank" => conditions.push(Condition::OfRank(number(words.next().unwrap_or(""))?)),
                "rank_from" => conditions.push(Condition::RankFrom(number(words.next().unwrap_or(""))?)),
                "least" => {
                    let path = Path::parse(args, words.next().unwrap_or(""))?;
                    conditions.push(Condition::Least(path, number(words.next().unwrap_or(""))?));
                }
                "failed" => conditions.push(Condition::Failed(slot_of(words.next())?)),
                "give" | "set" => {
                    while let Some((path, value)) = words.peek().and_then(|word| assignment(word)) {
                        let path = Path::parse(args, path)?;
                        actions.push(match word {
                            "give" => Action::Give(path, value),
                            _ => Action::Set(path, value),
                        });
                        words.next();
                    }
                }
                "fail" => actions.push(Action::Fail(code(words.next())?)),
                "code" => actions.push(Action::Code(code(words.next())?)),
                "skip" => actions.push(Action::Skip),
                "accept" => actions.push(Action::Accept),
                "message" => {
                    words.next();
                    actions.push(Action::NoMessage);
                }
                special => {
                    let rest = words.by_ref().map(str::to_owned).collect();
                    actions.push(Action::Special(special.to_owned(), rest));
                }
            }
        }
        if actions.is_empty() {
            Err("nothing happens".to_owned())
        } else {
            Ok(Self { slot: Some(slot), conditions, actions })
        }
    }
}

fn slot(name: &str) -> Result<usize, String> {
    (0..SLOTS.len() + EXTENSION_FUNCTIONS.len())
        .find(|slot| name_of(*slot) == name)
        .ok_or_else(|| format!("unknown function {name}"))
}

/// Returns the name of a function. The functions of extensions are numbered after those of the table.
pub(crate) fn name_of(slot: usize) -> &'static str {
    SLOTS.get(slot).map_or_else(|| EXTENSION_FUNCTIONS[slot - SLOTS.len()].name, |slot| slot.name)
}

/// Returns the layout of the struct that a function takes.
pub(crate) fn args_of(slot: usize) -> &'static StructLayout {
    SLOTS.get(slot).map_or_else(|| EXTENSION_FUNCTIONS[slot - SLOTS.len()].args, |slot| slot.args)
}

fn slot_of(word: Option<&str>) -> Result<usize, String> {
    slot(word.unwrap_or(""))
}

fn code(word: Option<&str>) -> Result<u32, String> {
    let code = CODES.iter().position(|code| Some(*code) == word);
    code.map(|code| code as u32).ok_or_else(|| format!("unknown error code {word:?}"))
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

/// Parses `field=value`, `field+number` or `field-number`.
fn assignment(word: &str) -> Option<(&str, Value)> {
    if let Some((path, value)) = word.split_once('=') {
        let value = match value {
            "null" => Value::Number(0),
            "zeros" => Value::Zeros,
            "scratch" => Value::Scratch,
            "never" => Value::Never,
            "complete" => Value::Complete,
            _ => match value.strip_prefix("text:") {
                Some(text) => Value::Text(text.to_owned()),
                None => Value::Number(value.parse().ok()?),
            },
        };
        return Some((path, value));
    }
    let at = word.find(['+', '-'])?;
    Some((&word[..at], Value::Plus(word[at..].parse().ok()?)))
}

impl Path {
    pub(crate) fn parse(args: &StructLayout, text: &str) -> Result<Self, String> {
        let field = |layout: &StructLayout, name: &str| {
            layout.field(name).copied().ok_or_else(|| format!("{} has no field {name}", layout.name))
        };
        if let Some((first, second)) = text.split_once('>') {
            let first = field(args, first)?;
            let name = first.ty.rsplit([' ', '*']).next().unwrap_or("");
            let pointee = STRUCTS.iter().find(|layout| layout.name == name);
            let pointee = pointee.ok_or_else(|| format!("{} does not point to a struct", first.name))?;
            // Some hosts leave the size of a layout uninitialized.
            let is_sized = pointee.fields.first().is_some_and(|first| first.name == "struct_size")
                && pointee.name != "PJRT_Buffer_MemoryLayout";
            return Ok(Self { field: first, then: Then::Field(field(pointee, second)?, is_sized) });
        }
        if let Some((first, index)) = text.split_once('.') {
            let index = number(index)? as usize;
            return Ok(Self { field: field(args, first)?, then: Then::Element(index) });
        }
        Ok(Self { field: field(args, text)?, then: Then::Nothing })
    }
}
