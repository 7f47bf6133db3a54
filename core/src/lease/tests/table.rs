//! Whatever happens to an elector, in any order: it moves along every row of its table.

use super::rig::{HELD, Rig, held_by_rival, rival};
use super::*;
use crate::lease::entropy::Entropy;

/// What may happen next; `dice` decides.
fn anything_happens(rig: &mut Rig, dice: &mut Entropy) {
    let token = rig.elector.token();
    let _ = match (dice.draw() % 24, rig.request, token) {
        (0, ..) => rig.input(Input::Resign { to: None }),
        (1, ..) => rig.input(Input::Stop),
        (2, ..) => rig.input(Input::Disrupted),
        (3, _, Some(token)) => rig.input(Input::SealRefused { token, floor: None }),
        (4..8, _, Some(token)) => rig.input(Input::Drained(token)),
        (8..14, _, Some(token)) => rig.input(Input::Sealed(token)),
        (14, ..) => {
            rig.key.put(&rival(dice.draw() % 100 + 1, HELD));
            None
        }
        (15, Some(request), _) => {
            rig.perform(&request);
            rig.fail(Outcome::Unknown)
        }
        (16, Some(_), _) => rig.fail(Outcome::Undecided),
        (17, Some(_), _) => {
            rig.pass(u64::from(TTL_MS));
            rig.answer(1)
        }
        (_, Some(_), _) => rig.answer(1),
        (_, None, _) if rig.wake != Wake::Idle => rig.until_wake(),
        (_, None, _) => None,
    };
}

#[test]
fn every_row_of_the_table_is_visited() {
    for seed in 0..400 {
        let mut dice = Entropy::new(seed);
        let absent = seed % 2 == 0;
        let mut rig = Rig::new(if absent { Key::default() } else { held_by_rival(7) });
        rig.tick();
        for _ in 0..100 {
            anything_happens(&mut rig, &mut dice);
        }
    }
    let rows: BTreeSet<(State, Cause)> = TABLE.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(visited(), rows);
}
