//! Where decisions come from: a list, or a seed that writes its list down.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::decision::{Decision, Fate, Fault, Message};
use crate::swarm::Swarm;

/// All decisions about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape(pub Vec<Decision>);

/// Who decides.
#[derive(Clone, Debug)]
pub enum Source {
    /// A list. Of two entries about one message the later one counts.
    Tape(Tape),
    /// A seed.
    Swarm(Swarm),
}

/// A source as a world uses it: it writes down what it decided.
#[derive(Clone, Debug)]
pub(crate) struct Decider {
    from: From,
    decided: Vec<Decision>,
}

#[derive(Clone, Debug)]
enum From {
    Tape(BTreeMap<Message, Fate>),
    Swarm(Swarm),
}

impl Decider {
    /// The faults are known at the start, in the order of the list.
    pub(crate) fn new(source: Source) -> (Self, Vec<(u64, Fault)>) {
        let (from, decisions) = match source {
            Source::Tape(Tape(decisions)) => {
                let fates = decisions.iter().filter_map(|decision| match decision {
                    Decision::Fate(message, fate) => Some((*message, *fate)),
                    Decision::Fault(..) => None,
                });
                (From::Tape(fates.collect()), decisions)
            }
            Source::Swarm(swarm) => {
                let faults = swarm.faults();
                (From::Swarm(swarm), faults)
            }
        };
        let faults = decisions.iter().filter_map(|decision| match decision {
            Decision::Fault(at_ns, fault) => Some((*at_ns, *fault)),
            Decision::Fate(..) => None,
        });
        let faults: Vec<(u64, Fault)> = faults.collect();
        let decided = faults.iter().map(|(at_ns, fault)| Decision::Fault(*at_ns, *fault)).collect();
        (Self { from, decided }, faults)
    }

    pub(crate) fn fate(&mut self, message: Message) -> Fate {
        let fate = match &self.from {
            From::Tape(fates) => fates.get(&message).copied().unwrap_or(Fate::WELL),
            From::Swarm(swarm) => swarm.fate(message),
        };
        if fate != Fate::WELL {
            self.decided.push(Decision::Fate(message, fate));
        }
        fate
    }

    pub(crate) fn into_tape(self) -> Tape {
        Tape(self.decided)
    }
}
