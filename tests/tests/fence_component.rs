//! The vectors through the component: the rules as a wasmtime host gets them.

use leasehold_core::fence::{Admitted, Advance, Digest, FenceRow, StepRow};
use leasehold_core::token::{Lineage, Nonce, Token};
use leasehold_tests::fence_vectors::{self, Case, Observed, Operation, State, Verdict};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

use bindings::Protocol;
use bindings::exports::leasehold::protocol::fence as wit;
use bindings::leasehold::protocol::types;

mod bindings {
    wasmtime::component::bindgen!({ path: "../host-wasmtime/wit", world: "protocol" });
}

#[test]
fn the_component_gives_what_the_vectors_demand() {
    let engine = Engine::default();
    let component = Component::new(&engine, leasehold_host::COMPONENT).unwrap();
    let mut linker = Linker::new(&engine);
    // The rules have no use for a clock or a store.
    linker.define_unknown_imports_as_traps(&component).unwrap();
    let mut store = Store::new(&engine, ());
    let protocol = Protocol::instantiate(&mut store, &component, &linker).unwrap();

    let cases = fence_vectors::load().cases;
    let observed: Vec<_> = cases.iter().map(|case| perform(case, &protocol, &mut store)).collect();
    fence_vectors::check("component", &cases, &observed);
}

fn perform(case: &Case, protocol: &Protocol, store: &mut Store<()>) -> Vec<Observed> {
    let mut state = case.start.clone();
    let mut observe = |operation| Observed {
        verdict: step(&mut state, operation, protocol, store),
        state: state.clone(),
    };
    case.operations.iter().map(|(operation, _)| observe(operation)).collect()
}

/// One operation as a host performs it: read the rows, ask the component, store the rows.
fn step(
    state: &mut State,
    operation: &Operation,
    protocol: &Protocol,
    store: &mut Store<()>,
) -> Verdict {
    let rules = protocol.leasehold_protocol_fence();
    let row = state.row.as_ref().map(to_row);
    let (verdict, next) = match operation {
        Operation::Seal { token, advance } => {
            let answer = rules.call_seal(store, row, to_token(*token), to_advance(*advance));
            let (verdict, next) = answer.unwrap().unwrap();
            (sealed(verdict), next)
        }
        Operation::Read { token, advance } => {
            let answer = rules.call_read(store, row, to_token(*token), to_advance(*advance));
            let (verdict, next) = answer.unwrap().unwrap();
            (sealed(verdict), next)
        }
        Operation::Retire { token } => {
            let answer = rules.call_retire(store, row, to_token(*token));
            let (verdict, next) = answer.unwrap().unwrap();
            (retired(verdict), next)
        }
        Operation::Recover { token } => {
            let answer = rules.call_recover(store, row, to_token(*token));
            let (verdict, next) = answer.unwrap().unwrap();
            (recovered(verdict), next)
        }
        Operation::Adopt { token } => {
            let answer = rules.call_adopt(store, row, to_token(*token));
            let (verdict, next) = answer.unwrap().unwrap();
            (adopted(verdict), next)
        }
        Operation::Write { token, step, digest } => {
            let known = state.steps.get(step).map(to_step);
            let digest = digest.as_ref().map(|digest| digest.0.as_slice());
            let answer = rules.call_admit(store, row, known.as_ref(), to_token(*token), digest);
            let (verdict, admitted) = answer.unwrap().unwrap();
            return wrote(state, step, written(verdict), admitted);
        }
        Operation::Cancel { token, step } => {
            let known = state.steps.get(step).map(to_step);
            let answer = rules.call_cancel(store, row, known.as_ref(), to_token(*token));
            let (verdict, admitted) = answer.unwrap().unwrap();
            return wrote(state, step, cancelled(verdict), admitted);
        }
    };
    state.row = next.map(from_row).or(state.row);
    verdict
}

fn wrote(
    state: &mut State,
    step: &str,
    verdict: Verdict,
    admitted: Option<wit::Admitted>,
) -> Verdict {
    if let Some(wit::Admitted { row, step: step_row }) = admitted {
        state.store(step, Admitted { row: from_row(row), step: from_step(step_row) });
    }
    verdict
}

fn sealed(verdict: wit::SealVerdict) -> Verdict {
    use wit::SealVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::AlreadySealed(last_seq) => already_sealed(last_seq),
        V::Collision(floor) => with_floor("Collision", floor),
        V::Implausible => Verdict::new("Implausible", &[]),
        V::Sealed(moved) => with_floors("Sealed", moved),
    }
}

fn written(verdict: wit::WriteVerdict) -> Verdict {
    use wit::WriteVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::NotSealed(floor) => with_floor("NotSealed", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::Cancelled => Verdict::new("Cancelled", &[]),
        V::AlreadyApplied(applied) => already_applied(applied),
        V::KeyReuse => Verdict::new("KeyReuse", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::Collision(floor) => with_floor("Collision", floor),
        V::Full => Verdict::new("Full", &[]),
        V::Apply(seq) => Verdict::new("Apply", &[("seq", seq.to_string())]),
    }
}

fn cancelled(verdict: wit::CancelVerdict) -> Verdict {
    use wit::CancelVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::NotSealed(floor) => with_floor("NotSealed", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::Cancelled => Verdict::new("Cancelled", &[]),
        V::AlreadyApplied(applied) => already_applied(applied),
        V::Gone(floor) => with_floor("Gone", floor),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::Collision(floor) => with_floor("Collision", floor),
        V::Full => Verdict::new("Full", &[]),
        V::Tombstoned(seq) => Verdict::new("Tombstoned", &[("seq", seq.to_string())]),
    }
}

fn retired(verdict: wit::RetireVerdict) -> Verdict {
    use wit::RetireVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::NotSealed(floor) => with_floor("NotSealed", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::AlreadyRetired => Verdict::new("AlreadyRetired", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::Collision(floor) => with_floor("Collision", floor),
        V::Retired => Verdict::new("Retired", &[]),
    }
}

fn recovered(verdict: wit::RecoverVerdict) -> Verdict {
    use wit::RecoverVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::Kept(floor) => with_floor("Kept", floor),
        V::Recovered(moved) => with_floors("Recovered", moved),
    }
}

fn adopted(verdict: wit::AdoptVerdict) -> Verdict {
    use wit::AdoptVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::AlreadySealed(last_seq) => already_sealed(last_seq),
        V::Collision(floor) => with_floor("Collision", floor),
        V::Adopted(moved) => with_floors("Adopted", moved),
    }
}

fn with_floors(name: &str, moved: wit::Sealed) -> Verdict {
    let wit::Sealed { prev_floor, last_seq } = moved;
    let fields = [("prev_floor", prev_floor.to_string()), ("last_seq", last_seq.to_string())];
    Verdict::new(name, &fields)
}

fn already_sealed(last_seq: u64) -> Verdict {
    Verdict::new("AlreadySealed", &[("last_seq", last_seq.to_string())])
}

fn already_applied(applied: wit::Applied) -> Verdict {
    let wit::Applied { seq, stale_holder } = applied;
    let fields = [("seq", seq.to_string()), ("stale_holder", stale_holder.to_string())];
    Verdict::new("AlreadyApplied", &fields)
}

fn with_floor(name: &str, floor: u64) -> Verdict {
    Verdict::new(name, &[("floor", floor.to_string())])
}

fn to_token(token: Token) -> types::Token {
    types::Token {
        lineage: to_lineage(token.lineage),
        term: token.term.get(),
        nonce: token.nonce.0,
    }
}

fn to_advance(advance: Advance) -> wit::Advance {
    match advance {
        Advance::AtMost(terms) => wit::Advance::AtMost(terms),
        Advance::Proven => wit::Advance::Proven,
    }
}

fn to_lineage(lineage: Lineage) -> types::Lineage {
    types::Lineage { high: (lineage.0 >> 64) as u64, low: lineage.0 as u64 }
}

fn to_row(row: &FenceRow) -> wit::FenceRow {
    let FenceRow { lineage, floor, nonce, retired, seq } = *row;
    wit::FenceRow { lineage: to_lineage(lineage), floor, nonce: nonce.0, retired, seq }
}

fn from_row(row: wit::FenceRow) -> FenceRow {
    let wit::FenceRow { lineage, floor, nonce, retired, seq } = row;
    let lineage = Lineage(u128::from(lineage.high) << 64 | u128::from(lineage.low));
    FenceRow { lineage, floor, nonce: Nonce(nonce), retired, seq }
}

fn to_step(step: &StepRow) -> wit::StepRow {
    let op_digest = step.op_digest.map(|digest| digest.0.to_vec());
    wit::StepRow { op_digest, seq: step.seq, cancelled: step.cancelled }
}

fn from_step(step: wit::StepRow) -> StepRow {
    let op_digest = step.op_digest.map(|digest| Digest(digest.try_into().expect("32 bytes")));
    StepRow { op_digest, seq: step.seq, cancelled: step.cancelled }
}
