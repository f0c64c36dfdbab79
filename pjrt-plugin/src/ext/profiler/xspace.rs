//! Conversion of a recording to an `XSpace`.

#![deny(unsafe_code)]

use std::collections::BTreeMap;
use std::time::{Instant, UNIX_EPOCH};

use prost::Message;

use super::Timeline;
use crate::abi::recording::Recording;
use crate::attributes::AttributeValue;
use crate::core::sync::lock;

/// The fields of `XSpace` that this crate writes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Space {
    #[prost(message, repeated, tag = "1")]
    pub(super) planes: Vec<Plane>,
    #[prost(string, repeated, tag = "3")]
    pub(super) warnings: Vec<String>,
}

/// `XPlane`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Plane {
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<Line>,
    #[prost(btree_map = "int64, message", tag = "4")]
    pub(super) event_metadata: BTreeMap<i64, Name>,
    #[prost(btree_map = "int64, message", tag = "5")]
    pub(super) stat_metadata: BTreeMap<i64, Name>,
}

/// `XLine`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Line {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    /// The start, in nanoseconds of Unix time.
    #[prost(int64, tag = "3")]
    pub(super) timestamp_ns: i64,
    #[prost(message, repeated, tag = "4")]
    pub(super) events: Vec<Event>,
}

/// `XEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    #[prost(int64, tag = "1")]
    pub(super) metadata_id: i64,
    #[prost(int64, optional, tag = "2")]
    pub(super) offset_ps: Option<i64>,
    #[prost(int64, tag = "3")]
    pub(super) duration_ps: i64,
    #[prost(message, repeated, tag = "4")]
    pub(super) stats: Vec<Stat>,
}

/// `XStat`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Stat {
    #[prost(int64, tag = "1")]
    pub(super) metadata_id: i64,
    #[prost(oneof = "StatValue", tags = "2, 4, 5")]
    pub(super) value: Option<StatValue>,
}

/// The value in an `XStat`.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum StatValue {
    #[prost(double, tag = "2")]
    Double(f64),
    #[prost(int64, tag = "4")]
    Int64(i64),
    #[prost(string, tag = "5")]
    String(String),
}

/// `XEventMetadata` and `XStatMetadata`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Name {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// Names, which are numbered in the order of their addition.
#[derive(Default)]
struct Names(BTreeMap<String, i64>);

impl Names {
    fn number(&mut self, name: &str) -> i64 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = self.0.len() as i64 + 1;
        self.0.insert(name.to_owned(), number);
        number
    }

    fn into_metadata(self) -> BTreeMap<i64, Name> {
        self.0.into_iter().map(|(name, id)| (id, Name { id, name })).collect()
    }
}

/// Lines of events that share the names and the start.
struct Writer {
    start: Instant,
    timestamp_ns: i64,
    events: Names,
    stats: Names,
    lines: Vec<Line>,
}

impl Writer {
    fn line(&mut self, name: &str) -> usize {
        let id = self.lines.len() as i64 + 1;
        let timestamp_ns = self.timestamp_ns;
        self.lines.push(Line { id, name: name.to_owned(), timestamp_ns, events: Vec::new() });
        self.lines.len() - 1
    }

    fn event<'a>(
        &mut self,
        line: usize,
        name: &str,
        (start, end): (Instant, Instant),
        attributes: impl Iterator<Item = (&'a str, &'a AttributeValue)>,
    ) {
        let stats = attributes.map(|(name, value)| Stat {
            metadata_id: self.stats.number(name),
            value: Some(match value {
                AttributeValue::Int64(value) => StatValue::Int64(*value),
                AttributeValue::Bool(value) => StatValue::Int64(i64::from(*value)),
                AttributeValue::Float(value) => StatValue::Double(f64::from(*value)),
                AttributeValue::String(value) => StatValue::String(value.clone()),
                AttributeValue::Int64List(values) => StatValue::String(format!("{values:?}")),
            }),
        });
        let event = Event {
            // An event that began before the recording is shown from the start of the recording on.
            offset_ps: Some(picoseconds(self.start, start)),
            duration_ps: picoseconds(start.max(self.start), end),
            stats: stats.collect(),
            metadata_id: self.events.number(name),
        };
        self.lines[line].events.push(event);
    }
}

fn picoseconds(from: Instant, to: Instant) -> i64 {
    i64::try_from(to.saturating_duration_since(from).as_nanos().saturating_mul(1000)).unwrap_or(i64::MAX)
}

/// Encodes an `XSpace` with one plane, which has a line for each thread and for each timeline.
pub(super) fn encode(platform: &str, recording: &Recording, timelines: &[Timeline]) -> Vec<u8> {
    let timestamp_ns = recording.wall_start.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut writer = Writer {
        start: recording.start,
        timestamp_ns: i64::try_from(timestamp_ns).unwrap_or(i64::MAX),
        events: Names::default(),
        stats: Names::default(),
        lines: Vec::new(),
    };
    let content = lock(&recording.content);
    let mut line_of = BTreeMap::new();
    for (thread, name) in &content.threads {
        line_of.insert(*thread, writer.line(name));
    }
    for span in &content.spans {
        let attributes = span.attributes.iter().map(|(name, value)| (name.as_ref(), value));
        writer.event(line_of[&span.thread], &span.name, (span.start, span.end), attributes);
    }
    for timeline in timelines {
        let line = writer.line(&timeline.name);
        for span in &timeline.spans {
            let attributes = span.attributes.iter().map(|(name, value)| (name.as_str(), value));
            writer.event(line, &span.name, (span.start, span.start + span.duration), attributes);
        }
    }
    let warnings = if content.dropped == 0 {
        Vec::new()
    } else {
        vec![format!(
            "the plugin '{platform}' dropped {} spans, because its limit was reached",
            content.dropped
        )]
    };
    let plane = Plane {
        // Viewers show planes with this prefix as devices.
        name: format!("/device:CUSTOM:{platform}"),
        lines: writer.lines,
        event_metadata: writer.events.into_metadata(),
        stat_metadata: writer.stats.into_metadata(),
    };
    Space { planes: vec![plane], warnings }.encode_to_vec()
}
