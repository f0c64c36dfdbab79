//! A layer of the `tracing` crate that adds its spans to the recordings.

#![deny(unsafe_code)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::sync::Once;
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::abi::recording::{self, is_active};
use crate::attributes::AttributeValue;

/// Returns the layer that records spans for the [`Profiler`](crate::ext::Profiler) extension, for plugins that set their own
/// subscriber. It is disabled while no host profiles.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(pjrt_plugin::ext::profiler_layer());
/// # let _ = subscriber;
/// ```
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Recorder.with_filter(filter_fn(|_| is_active()))
}

/// Installs the layer as the global subscriber, unless the plugin has set one.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // This fails if the plugin has set a subscriber, to which it adds the layer itself.
        let _ = tracing::subscriber::set_global_default(Registry::default().with(layer()));
    });
}

struct Recorder;

/// The field whose string replaces the name of a span, because names of spans are constants. Other layers use the same
/// field.
const NAME: &str = "otel.name";

thread_local! {
    /// The spans that this thread has entered, with the times.
    static ENTERED: RefCell<Vec<(u64, Instant)>> = const { RefCell::new(Vec::new()) };
}

/// The fields of a span.
#[derive(Default, Clone)]
struct Fields(recording::Attributes);

impl Fields {
    fn set(&mut self, field: &Field, value: AttributeValue) {
        self.0.retain(|(name, _)| name != field.name());
        self.0.push((Cow::Borrowed(field.name()), value));
    }

    /// Removes a field and returns its value, if it is a string.
    fn take_text(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(field, _)| field == name)?;
        let AttributeValue::String(text) = &mut self.0[place].1 else { return None };
        let text = std::mem::take(text);
        self.0.remove(place);
        Some(text)
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, AttributeValue::Int64(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.set(field, AttributeValue::Int64(value)),
            Err(_) => self.set(field, AttributeValue::String(value.to_string())),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, AttributeValue::Float(value as f32));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, AttributeValue::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, AttributeValue::String(value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, AttributeValue::String(format!("{value:?}")));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        // A thread that is exiting has no thread-local values.
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().push((id.into_u64(), Instant::now())));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let start = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            let place = entered.iter().rposition(|(entered, _)| *entered == id.into_u64())?;
            Some(entered.remove(place).1)
        });
        let (Ok(Some(start)), Some(span)) = (start, context.span(id)) else { return };
        let mut fields = span.extensions().get::<Fields>().cloned().unwrap_or_default();
        let name = fields.take_text(NAME).map_or(Cow::Borrowed(span.name()), Cow::Owned);
        recording::record(name, start, fields.0);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let name = fields.take_text("message").map_or(Cow::Borrowed(event.metadata().name()), Cow::Owned);
        recording::record(name, Instant::now(), fields.0);
    }
}
