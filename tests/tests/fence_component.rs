//! The vectors through the component: the rules as a wasmtime host gets them.

use leasehold_core::fence::{Advance, Digest, FenceRow, StepRow};
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
    match operation {
        Operation::Seal { token, advance } => {
            let advance = match advance {
                Advance::AtMost(terms) => wit::Advance::AtMost(*terms),
                Advance::Proven => wit::Advance::Proven,
            };
            let (verdict, next) =
                rules.call_seal(store, row, to_token(*token), advance).unwrap().unwrap();
            state.row = next.map(from_row).or(state.row);
            sealed(verdict)
        }
        Operation::Write { token, step, digest } => {
            let known = state.steps.get(step).map(to_step);
            let digest = digest.as_ref().map(|digest| digest.0.as_slice());
            let answer = rules.call_admit(store, row, known.as_ref(), to_token(*token), digest);
            let (verdict, admitted) = answer.unwrap().unwrap();
            if let Some(admitted) = admitted {
                state.row = Some(from_row(admitted.row));
                if !step.is_empty() {
                    state.steps.insert(step.clone(), from_step(admitted.step));
                }
            }
            written(verdict)
        }
    }
}

fn sealed(verdict: wit::SealVerdict) -> Verdict {
    use wit::SealVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::AlreadySealed(last_seq) => {
            Verdict::new("AlreadySealed", &[("last_seq", last_seq.to_string())])
        }
        V::Collision(floor) => with_floor("Collision", floor),
        V::Implausible => Verdict::new("Implausible", &[]),
        V::Sealed(wit::Sealed { prev_floor, last_seq }) => Verdict::new(
            "Sealed",
            &[("prev_floor", prev_floor.to_string()), ("last_seq", last_seq.to_string())],
        ),
    }
}

fn written(verdict: wit::WriteVerdict) -> Verdict {
    use wit::WriteVerdict as V;
    match verdict {
        V::NoResource => Verdict::new("NoResource", &[]),
        V::NotSealed(floor) => with_floor("NotSealed", floor),
        V::ForeignLineage => Verdict::new("ForeignLineage", &[]),
        V::Cancelled => Verdict::new("Cancelled", &[]),
        V::AlreadyApplied(wit::Applied { seq, stale_holder }) => Verdict::new(
            "AlreadyApplied",
            &[("seq", seq.to_string()), ("stale_holder", stale_holder.to_string())],
        ),
        V::KeyReuse => Verdict::new("KeyReuse", &[]),
        V::Gone(floor) => with_floor("Gone", floor),
        V::Fenced(floor) => with_floor("Fenced", floor),
        V::Collision(floor) => with_floor("Collision", floor),
        V::Full => Verdict::new("Full", &[]),
        V::Apply(seq) => Verdict::new("Apply", &[("seq", seq.to_string())]),
    }
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
