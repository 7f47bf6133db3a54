//! A seed as a source of decisions: each seed draws which kinds of faults its world sees, and how
//! many of each, so that rare combinations come up as often as mild weather.

use alloc::vec::Vec;

use leasehold_core::lease::Authority;
use leasehold_core::time::{Drift, MILLISECOND_NS};
use leasehold_core::timing::Timing;

use crate::SECOND_NS;
use crate::clock::{Clock, InSuspend};
use crate::decision::{Decision, Fate, Fault, Hinted, Kind, Message, Service};
use crate::flaw::Flaw;
use crate::random::{Dice, Stream};
use crate::tape::Source;
use crate::world::{NodeSetup, Setup};

/// Under which rules a seed draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regime {
    /// What is wrong in every world.
    pub flaw: Option<Flaw>,
    /// What breaks that exclusivity assumes.
    pub beyond: Option<Beyond>,
    /// How many times the declared bound the clocks drift; 0 counts as 1.
    pub drift_times: u8,
    /// Nothing but margins: no drain, the least guard, a drift large enough to matter.
    pub margins: bool,
}

/// What breaks the assumptions of exclusivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Memory images run twice.
    Twins,
    /// Wall clocks are set back on computers whose monotonic clocks miss time asleep.
    WallSetBack,
    /// Virtual machines are frozen with both clocks.
    Frozen,
    /// The store is restored from copies.
    Restored,
    /// The store is restored from copies and gives version numbers out again.
    RestoredRepeating,
    /// The record is deleted.
    Deleted,
    /// The record is edited.
    Spoilt,
    /// Operators waive exclusivity.
    ForcedNow,
}

impl Beyond {
    /// Every one.
    pub const ALL: &'static [Self] = &[
        Self::Twins,
        Self::WallSetBack,
        Self::Frozen,
        Self::Restored,
        Self::RestoredRepeating,
        Self::Deleted,
        Self::Spoilt,
        Self::ForcedNow,
    ];

    /// The variant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Twins => "Twins",
            Self::WallSetBack => "WallSetBack",
            Self::Frozen => "Frozen",
            Self::Restored => "Restored",
            Self::RestoredRepeating => "RestoredRepeating",
            Self::Deleted => "Deleted",
            Self::Spoilt => "Spoilt",
            Self::ForcedNow => "ForcedNow",
        }
    }
}

impl Regime {
    /// Everything that is promised is promised here.
    pub const WITHIN: Self = Self { flaw: None, beyond: None, drift_times: 1, margins: false };

    /// Half of the seeds stay within the assumptions with room to spare, a quarter with nothing but
    /// margins, and a quarter goes beyond them, most often by a store that was restored.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let beyond = match seed % 8 {
            1 | 5 => return Self { margins: true, ..Self::WITHIN },
            3 => Some(Beyond::Restored),
            7 => Beyond::ALL.get((seed / 8) as usize % Beyond::ALL.len()).copied(),
            _ => None,
        };
        Self { beyond, ..Self::WITHIN }
    }

    /// The world of a seed, and who decides what happens in it.
    #[must_use]
    pub fn world(self, seed: u64) -> (Setup, Source) {
        let setup = setup(seed, self);
        let swarm = Swarm {
            seed,
            regime: self,
            counts_asleep: setup.nodes.iter().map(|node| !node.stops_asleep).collect(),
            bound_ppb: bound_ppb(setup.drift, self),
            drain_ns: setup.nodes.first().map_or(0, |node| node.timing.drain_ns),
            healed_ns: setup.healed_ns,
            mix: Mix::draw(seed),
        };
        (setup, Source::Swarm(swarm))
    }
}

/// A seed and what it was made for.
#[derive(Clone, Debug)]
pub struct Swarm {
    seed: u64,
    regime: Regime,
    /// Of each node, whether its monotonic clock counts time asleep.
    counts_asleep: Vec<bool>,
    bound_ppb: i64,
    drain_ns: u64,
    healed_ns: u64,
    mix: Mix,
}

/// How often messages fare ill: once in so many; 0: never.
#[derive(Clone, Copy, Debug)]
struct Mix {
    jitter_ns: u64,
    late: u64,
    very_late: u64,
    lost: u64,
    refused: u64,
    repeated: u64,
    paused: u64,
}

impl Mix {
    fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed, Stream::Mix, 0);
        let mut once_in = |first, last| match dice.one_in(2) {
            true => dice.within(first, last),
            false => 0,
        };
        Self {
            jitter_ns: once_in(1, 80) * MILLISECOND_NS,
            late: once_in(5, 40),
            very_late: once_in(10, 80),
            lost: once_in(4, 40),
            refused: once_in(4, 40),
            repeated: once_in(4, 20),
            paused: once_in(20, 200),
        }
    }
}

fn bound_ppb(drift: Drift, regime: Regime) -> i64 {
    i64::from(drift.ppm()) * 1_000 * i64::from(regime.drift_times.max(1))
}

/// A rate at either end of what is allowed, or in between.
fn rate_ppb(dice: &mut Dice, bound_ppb: i64) -> i64 {
    match dice.below(3) {
        0 => bound_ppb,
        1 => -bound_ppb,
        _ => bound_ppb - dice.below(bound_ppb.unsigned_abs() * 2 + 1).cast_signed(),
    }
}

fn setup(seed: u64, regime: Regime) -> Setup {
    let mut dice = Dice::new(seed, Stream::Setup, 0);
    let no_guard = regime.flaw == Some(Flaw::NoGuard);
    let margins = regime.margins || no_guard;
    // A guard covers little: a large drift, rarely at its ends, would cover the rest.
    let wide = !no_guard && (margins || dice.one_in(2));
    let ppm = if wide { 100_000 } else { 10_000 };
    let drift = Drift::from_ppm(ppm).unwrap_or(Drift::DEFAULT);
    let bound_ppb = bound_ppb(drift, regime);
    let resolution_ns = match dice.below(3) {
        _ if no_guard => 1000 * MILLISECOND_NS,
        0 => 1,
        1 => MILLISECOND_NS / 100,
        _ => MILLISECOND_NS,
    };
    let store_clock =
        Clock::new(SECOND_NS, None, rate_ppb(&mut dice, bound_ppb), 1, InSuspend::Counts);
    let authority = match dice.one_in(4) {
        true => Authority::StoreClock { error_ns: MILLISECOND_NS },
        false => Authority::LocalObservation,
    };
    let count = dice.within(2, 4);
    let nodes: Vec<NodeSetup> = (0..count)
        .map(|_| {
            let ttl_ms = dice.within(5_000, 10_000) as u32;
            let timing = match (no_guard, margins) {
                (true, _) => Timing::from_ttl(ttl_ms, 0, 0, drift),
                (_, true) => Timing::from_ttl(ttl_ms, 0, 2 * resolution_ns, drift),
                _ => Timing::from_ttl(
                    ttl_ms,
                    SECOND_NS / 2,
                    2 * resolution_ns + 10 * MILLISECOND_NS,
                    drift,
                ),
            };
            // Seen early, a last renewal is counted from early.
            let poll_ns = if margins { 100 * MILLISECOND_NS } else { timing.poll_ns };
            let timing = Timing { poll_ns, ..timing };
            let set_back = regime.beyond == Some(Beyond::WallSetBack);
            let stops_asleep = set_back || dice.one_in(3);
            let has_wall = stops_asleep || !dice.one_in(4);
            let in_suspend = if stops_asleep { InSuspend::Stops } else { InSuspend::Counts };
            let wall_ns = has_wall.then_some(1_796_065_445 * SECOND_NS + dice.below(SECOND_NS));
            let mono_ns = dice.below(1_000_000 * SECOND_NS);
            let rate_ppb = rate_ppb(&mut dice, bound_ppb);
            NodeSetup {
                clock: Clock::new(mono_ns, wall_ns, rate_ppb, resolution_ns, in_suspend),
                has_wall,
                stops_asleep,
                resolution_ns: if no_guard { 0 } else { resolution_ns },
                timing,
                authority,
            }
        })
        .collect();
    let healed_ns = dice.within(30, 60) * SECOND_NS;
    let end_ns = healed_ns + takeover_ns(&nodes, drift, bound_ppb);
    Setup {
        seed,
        nodes,
        store_clock,
        drift,
        flaw: regime.flaw,
        beyond_drift: regime.drift_times > 1,
        healed_ns,
        end_ns,
    }
}

/// How long it may take until somebody leads: the longest window, the longest time to stay away,
/// one more poll and a few requests, all on the slowest clock; and the last word of an operator.
fn takeover_ns(nodes: &[NodeSetup], drift: Drift, bound_ppb: i64) -> u64 {
    let longest = |span: fn(&Timing) -> u64| nodes.iter().map(|node| span(&node.timing)).max();
    let ttl_ns = longest(|timing| u64::from(timing.ttl_ms) * MILLISECOND_NS).unwrap_or(0);
    let rest_ns = longest(|timing| {
        timing.sit_out_ns + timing.seal_within_ns + timing.poll_ns + 8 * timing.attempt_ns
    });
    let by_clock_ns = drift.stretch_ns(ttl_ns) + rest_ns.unwrap_or(0);
    let slowest = u128::from(1_000_000_000 - bound_ppb.unsigned_abs().min(900_000_000));
    let in_truth_ns = (u128::from(by_clock_ns) * 1_000_000_000).div_ceil(slowest);
    u64::try_from(in_truth_ns).unwrap_or(u64::MAX) + 25 * SECOND_NS
}

impl Swarm {
    /// Everything that happens to this world.
    pub(crate) fn faults(&self) -> Vec<Decision> {
        let mut faults = Vec::new();
        let classes = Class::ALL.iter().zip(1u64..);
        for (class, entity) in classes {
            let mut dice = Dice::new(self.seed, Stream::Fault, entity);
            let on = dice.one_in(3);
            let gap_ns = dice.within(3, 15) * SECOND_NS;
            let needed = self.needs(*class);
            if !needed && (!on || class.is_beyond()) {
                continue;
            }
            let gap_ns = match (needed, class) {
                // Time for terms to grow in between.
                (true, Class::Beyond) if self.restores() => 2 * gap_ns,
                (true, _) => gap_ns.min(8 * SECOND_NS),
                (false, _) => gap_ns,
            };
            let mut at_ns = SECOND_NS + dice.below(gap_ns);
            while at_ns < self.healed_ns {
                let fault = self.fault(*class, &mut dice);
                faults.push(Decision::Fault(at_ns, fault));
                if matches!(fault, Fault::Restore { .. }) && dice.one_in(2) {
                    // The whole site comes back: nobody remembers what was lost.
                    faults.extend((0..self.counts_asleep.len() as u8).map(|node| {
                        Decision::Fault(at_ns, Fault::Crash { node, down_ns: SECOND_NS / 2 })
                    }));
                }
                at_ns += dice.within(gap_ns / 4, gap_ns * 7 / 4);
            }
        }
        faults
    }

    fn restores(&self) -> bool {
        matches!(self.regime.beyond, Some(Beyond::Restored | Beyond::RestoredRepeating))
    }

    /// Whether the regime is about this.
    fn needs(&self, class: Class) -> bool {
        match class {
            Class::Beyond => self.regime.beyond.is_some(),
            Class::Suspend => {
                matches!(self.regime.beyond, Some(Beyond::WallSetBack))
            }
            Class::FailOver => self.regime.flaw == Some(Flaw::StoreLosesLastWrite),
            Class::Resign => self.restores(),
            Class::RestoreResource => self.regime.flaw == Some(Flaw::ResourceForgetsFloor),
            _ => false,
        }
    }

    fn fault(&self, class: Class, dice: &mut Dice) -> Fault {
        let nodes = self.counts_asleep.len() as u64;
        let (node, other) = (dice.below(nodes) as u8, dice.below(nodes) as u8);
        let for_ns = match dice.below(4) {
            0 => dice.below(SECOND_NS),
            1 => dice.below(4 * SECOND_NS),
            // About a ttl: what was right before is wrong after.
            2 => dice.within(3 * SECOND_NS, 9 * SECOND_NS),
            _ => dice.below(20 * SECOND_NS),
        };
        match class {
            Class::Pause => Fault::Pause { node, for_ns },
            Class::Suspend => Fault::Suspend { node, for_ns },
            Class::Crash => Fault::Crash { node, down_ns: for_ns / 4 },
            Class::StepWall => {
                let by_ns = for_ns.cast_signed();
                let may_go_back = self.counts_asleep.get(usize::from(node)) == Some(&true);
                let back = may_go_back && dice.one_in(2);
                Fault::StepWall { node, by_ns: if back { -by_ns * 100 } else { by_ns / 4 } }
            }
            Class::Rate => Fault::Rate { node, ppb: rate_ppb(dice, self.bound_ppb) },
            Class::Migrate => Fault::Migrate { node, back_ns: for_ns },
            Class::Cut => {
                let which = dice.below(3);
                Fault::Cut { node, requests: which != 1, answers: which != 0, for_ns }
            }
            Class::Ask => Fault::Ask { to: other },
            Class::Force => Fault::Force { now: false },
            Class::Resign => Fault::Resign { node, to: Some(other).filter(|_| dice.one_in(2)) },
            Class::Stop => Fault::Stop { node },
            Class::Hint => {
                let content = match dice.below(3) {
                    0 => Hinted::Nothing,
                    1 => Hinted::Fresh,
                    _ => Hinted::Stale,
                };
                Fault::Hint { node, content }
            }
            Class::Slow => Fault::Slow { by_ns: for_ns, for_ns: 2 * for_ns },
            Class::RestoreResource => Fault::RestoreResource { back: dice.within(1, 3) as u8 },
            Class::FailOver => Fault::FailOver,
            Class::Beyond => self.beyond(dice, node, for_ns),
        }
    }

    fn beyond(&self, dice: &mut Dice, node: u8, for_ns: u64) -> Fault {
        let back = dice.within(1, 16) as u8;
        match self.regime.beyond {
            Some(Beyond::Twins) => Fault::Twin { node },
            Some(Beyond::WallSetBack) => {
                Fault::StepWall { node, by_ns: -(2 * for_ns).cast_signed() }
            }
            Some(Beyond::Frozen) => Fault::Freeze { node, for_ns },
            Some(Beyond::Restored) => Fault::Restore { back, repeats: false },
            Some(Beyond::RestoredRepeating) => Fault::Restore { back, repeats: true },
            Some(Beyond::Deleted) => Fault::Delete,
            Some(Beyond::Spoilt) => Fault::Spoil,
            Some(Beyond::ForcedNow) | None => Fault::Force { now: true },
        }
    }

    /// What happens to a message that is sent at this true time.
    pub(crate) fn fate(&self, message: Message) -> Fate {
        let Message { kind, node, life, number } = message;
        let entity =
            (kind as u64) << 56 | u64::from(node) << 48 | u64::from(life) << 32 | u64::from(number);
        let mut dice = Dice::new(self.seed, Stream::Fate, entity);
        let mix = self.mix;
        let mut way = || {
            if dice.one_in(mix.lost) {
                return None;
            }
            Some(if dice.one_in(mix.very_late) {
                dice.below(30 * SECOND_NS)
            } else if dice.one_in(mix.late) {
                dice.below(3 * SECOND_NS)
            } else {
                MILLISECOND_NS + dice.below(mix.jitter_ns)
            })
        };
        let there_ns = way();
        let back_ns = way();
        let there_ns = match kind {
            Kind::Drain if self.drain_ns > 0 => Some(dice.below(2 * self.drain_ns)),
            Kind::Drain => Some(dice.below(4 * SECOND_NS)),
            _ => there_ns,
        };
        let service = match dice.below(4) {
            _ if !dice.one_in(mix.refused) || kind != Kind::Request => Service::Performed,
            0 => Service::Unavailable,
            1 => Service::Undecided,
            2 => Service::Conflict,
            _ => Service::Unknown,
        };
        let again_ns = dice.one_in(mix.repeated).then(|| dice.below(30 * SECOND_NS));
        let pause_ns = if dice.one_in(mix.paused) { dice.below(10 * SECOND_NS) } else { 0 };
        Fate { pause_ns, there_ns, service, back_ns, again_ns }
    }
}

/// The kinds of faults that are on or off in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Pause,
    Suspend,
    Crash,
    StepWall,
    Rate,
    Migrate,
    Cut,
    Ask,
    Force,
    Resign,
    Stop,
    Hint,
    Slow,
    RestoreResource,
    FailOver,
    Beyond,
}

impl Class {
    const ALL: [Self; 16] = [
        Self::Pause,
        Self::Suspend,
        Self::Crash,
        Self::StepWall,
        Self::Rate,
        Self::Migrate,
        Self::Cut,
        Self::Ask,
        Self::Force,
        Self::Resign,
        Self::Stop,
        Self::Hint,
        Self::Slow,
        Self::RestoreResource,
        Self::FailOver,
        Self::Beyond,
    ];

    const fn is_beyond(self) -> bool {
        matches!(self, Self::Beyond)
    }
}
