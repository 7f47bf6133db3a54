//! What `run --events events.jsonl` has told.

use serde_json::Value;

use super::{Scene, text, until};

impl Scene {
    /// The lines that are whole, in order.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = text(&self.path("events.jsonl"));
        let whole = lines.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Waits for the first line of this kind.
    pub(crate) fn told(&self, event: &str) -> Value {
        until(event, || self.events().into_iter().find(|line| line["event"] == event))
    }
}
