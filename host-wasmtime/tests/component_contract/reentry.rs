//! A host that calls back during an import: the engine lets it, the component does not.

use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use crate::guest::timing::Budget;
use crate::guest::wit::{Authority, Done, Event, Input, Lineage, Misuse, Outcome, Sample, Token};
use crate::guest::{Call, Host, fence, instantiate, linker, options};

const TOKEN: Token = Token { lineage: Lineage { high: 0, low: 1 }, term: 1, nonce: 1 };
const EXPORTS: usize = 13;

#[test]
fn an_export_entered_during_an_import_is_misuse_and_the_outer_call_goes_on() {
    let (engine, mut linker) = linker();
    call_back_from_every_import(&mut linker);
    let (protocol, mut store) = instantiate(&engine, &linker);
    let elector = protocol.leasehold_protocol_elector();

    let lease = elector.call_open(&mut store, &options("settlement")).unwrap().unwrap();
    refused(&mut store, &["clock", "entropy"]);

    elector.call_step(&mut store, lease, &Input::Tick).unwrap().unwrap();
    refused(&mut store, &["clock", "storage"]);

    let absent = Input::Done(Done { op: 1, outcome: Outcome::Absent });
    elector.call_step(&mut store, lease, &absent).unwrap().unwrap();
    refused(&mut store, &["clock", "entropy", "storage"]);

    let applied = Input::Done(Done { op: 2, outcome: Outcome::Applied(vec![1]) });
    elector.call_step(&mut store, lease, &applied).unwrap().unwrap();
    refused(&mut store, &["clock", "entropy", "log"]);

    let status = elector.call_query(&mut store, lease).unwrap().unwrap();
    refused(&mut store, &["clock"]);
    assert_eq!(status.token.map(|token| token.term), Some(1), "the outer calls went on");
    assert!(matches!(
        store.data().calls.as_slice(),
        [Call::Read { op: 1, .. }, Call::Transact { op: 2, .. }, Call::Event { .. },]
    ));
}

/// Checks that `imports` were called in the last export, and all that they called was refused.
fn refused(store: &mut wasmtime::Store<Host>, imports: &[&str]) {
    let answers = std::mem::take(&mut store.data_mut().answers);
    assert_eq!(answers.len(), imports.len() * EXPORTS, "{imports:?}");
    assert!(answers.iter().all(|answer| matches!(answer, Some(Misuse::ReEntered))), "{answers:?}");
}

fn call_back_from_every_import(linker: &mut Linker<Host>) {
    let mut clock = linker.instance("leasehold:protocol/clock@0.1.0").unwrap();
    clock
        .func_wrap("now", |mut store: StoreContextMut<'_, Host>, (): ()| {
            call_back(&mut store);
            Ok((Sample { mono: 1_000_000_000, wall_ns: Some(1) },))
        })
        .unwrap();
    let mut entropy = linker.instance("leasehold:protocol/entropy@0.1.0").unwrap();
    entropy
        .func_wrap("salt", |mut store: StoreContextMut<'_, Host>, (): ()| {
            call_back(&mut store);
            Ok((7u64,))
        })
        .unwrap();
    type Write = (u32, u32, u64, String, Option<Vec<u8>>, Vec<u8>);
    let mut storage = linker.instance("leasehold:protocol/storage@0.1.0").unwrap();
    storage
        .func_wrap(
            "submit-read",
            |mut store: StoreContextMut<'_, Host>, (lease, op, _, key): (u32, u32, u64, String)| {
                call_back(&mut store);
                store.data_mut().calls.push(Call::Read { lease, op, key });
                Ok(())
            },
        )
        .unwrap();
    storage
        .func_wrap(
            "submit-transact",
            |mut store: StoreContextMut<'_, Host>, (lease, op, _, key, expect, value): Write| {
                call_back(&mut store);
                store.data_mut().calls.push(Call::Transact { lease, op, key, expect, value });
                Ok(())
            },
        )
        .unwrap();
    let mut log = linker.instance("leasehold:protocol/log@0.1.0").unwrap();
    log.func_wrap("emit", |mut store: StoreContextMut<'_, Host>, (lease, event): (u32, Event)| {
        call_back(&mut store);
        store.data_mut().calls.push(Call::Event { lease, event: format!("{event:?}") });
        Ok(())
    })
    .unwrap();
}

/// Enters every export.
fn call_back(store: &mut StoreContextMut<'_, Host>) {
    let Some(protocol) = store.data_mut().callee.take() else { return };
    let elector = protocol.leasehold_protocol_elector();
    let rules = protocol.leasehold_protocol_fence();
    let spans = protocol.leasehold_protocol_timing();
    let timing = options("other").timing;
    let budget = Budget {
        detection_ns: 30_000_000_000,
        p50_ns: 1_000_000,
        p99_ns: 10_000_000,
        pause_ns: 0,
        drain_ns: 0,
        tolerated: 2,
        standbys: 1,
        drift_ppm: 10_000,
        resolution_ns: 1,
        authority: Authority::LocalObservation,
    };
    let answers: [_; EXPORTS] = [
        elector.call_open(&mut *store, &options("other")).unwrap().err(),
        elector.call_step(&mut *store, 1, &Input::Tick).unwrap().err(),
        elector.call_query(&mut *store, 1).unwrap().err(),
        elector.call_close(&mut *store, 1).unwrap().err(),
        rules.call_seal(&mut *store, None, TOKEN, fence::Advance::Proven).unwrap().err(),
        rules.call_admit(&mut *store, None, None, TOKEN, None).unwrap().err(),
        rules.call_read(&mut *store, None, TOKEN, fence::Advance::Proven).unwrap().err(),
        rules.call_cancel(&mut *store, None, None, TOKEN).unwrap().err(),
        rules.call_retire(&mut *store, None, TOKEN).unwrap().err(),
        rules.call_recover(&mut *store, None, TOKEN).unwrap().err(),
        rules.call_adopt(&mut *store, None, TOKEN).unwrap().err(),
        spans.call_derive(&mut *store, budget).unwrap().err(),
        spans.call_check(&mut *store, timing, 1).unwrap().err(),
    ];
    let host = store.data_mut();
    host.callee = Some(protocol);
    host.answers.extend(answers);
}
