//! Observes a plugin in a child process.

use super::observe::fact::{Message, send};
use super::observe::{Observer, TABLE, observe};
use super::options::ChildOptions;
use super::subject::Subject;
use pjrt_testing::host::Plugin;

/// Observes the plugin in the given subjects, and sends facts to the parent.
pub fn child(options: &ChildOptions) {
    let plugin = match Plugin::load(&options.plugin) {
        Ok(plugin) => plugin,
        Err(error) => return send(&Message::Unusable(error.to_string())),
    };
    send(&Message::Loaded(plugin.version()));
    let observer = Observer::new(plugin, &options.options, &options.scratch);
    for (index, text) in options.subjects.iter().enumerate() {
        let Some(subject) = Subject::parse(text) else { continue };
        if subject.area != TABLE {
            observer.prepare();
        }
        send(&Message::Begins(options.first + index));
        observe(&observer, &subject.area, &subject.name);
    }
}
