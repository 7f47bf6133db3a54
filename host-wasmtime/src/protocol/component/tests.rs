//! Components that misbehave: the contract's signatures by hand, with a body of the test's.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use leasehold_core::lease::Authority;
use leasehold_core::time::{Clocks, Drift};
use leasehold_core::timing::Timing;
use leasehold_core::token::Nonce;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmSignature, WasmType};
use wit_parser::{Resolve, WorldId, WorldItem};

use super::*;
use crate::clock::SystemClock;
use crate::protocol::{NoEntropy, OsEntropy};

/// A component that opens anything as lease 0 and does `body` in every step.
fn component(body: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let wit = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("wit");
    let (package, _) = resolve.push_dir(wit).unwrap();
    let world = resolve.select_world(&[package], Some("protocol")).unwrap();
    let exports: String =
        exports(&resolve, world).map(|(name, signature)| export(&name, &signature, body)).collect();
    let module = format!(
        r#"(module
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
            {exports})"#
    );
    let mut module = wat::parse_str(module).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

fn exports(resolve: &Resolve, world: WorldId) -> impl Iterator<Item = (String, WasmSignature)> {
    let interfaces = resolve.worlds[world].exports.iter().filter_map(|(key, item)| match item {
        WorldItem::Interface { id, .. } => Some((resolve.name_world_key(key), *id)),
        _ => None,
    });
    interfaces.flat_map(move |(interface, id)| {
        resolve.interfaces[id].functions.values().map(move |function| {
            let name = format!("{interface}#{}", function.name);
            (name, resolve.wasm_signature(AbiVariant::GuestExport, function))
        })
    })
}

fn export(name: &str, signature: &WasmSignature, body: &str) -> String {
    let types = |types: &[WasmType]| {
        let names = types.iter().map(|wasm_type| match wasm_type {
            WasmType::I64 | WasmType::PointerOrI64 => " i64",
            WasmType::F32 => " f32",
            WasmType::F64 => " f64",
            WasmType::I32 | WasmType::Pointer | WasmType::Length => " i32",
        });
        names.collect::<String>()
    };
    let (params, results) = (types(&signature.params), types(&signature.results));
    let body = if name.ends_with("#step") { body } else { "i32.const 64" };
    format!("(func (export \"{name}\") (param{params}) (result{results}) {body})\n")
}

fn instance(engine: &Engine) -> Component {
    Component::new(engine, Arc::new(SystemClock), Arc::new(OsEntropy)).unwrap()
}

fn options() -> Open {
    let clocks = Clocks { wall: true, resolution_ns: 1 };
    Open {
        name: "settlement".to_owned(),
        holder: "tester".to_owned(),
        instance: Nonce(1),
        timing: Timing::from_ttl(3_000, 0, 1_000_000, Drift::DEFAULT),
        authority: Authority::LocalObservation,
        clocks,
    }
}

/// What the first step of such a component ends with, and that nothing follows.
fn end_of(body: &str) -> String {
    let engine = Engine::of(&component(body), None).unwrap();
    let mut instance = instance(&engine);
    let lease = instance.open(&options()).unwrap();
    let dead = instance.step(lease, Input::Tick).unwrap_err();
    assert!(instance.step(lease, Input::Tick).is_err());
    assert!(instance.status(lease).is_err());
    assert!(matches!(instance.open(&options()), Err(OpenError::Dead(_))));
    // Another instance of the same engine is not touched.
    self::instance(&engine).open(&options()).unwrap();
    dead.to_string()
}

#[test]
fn a_component_of_the_contract_steps() {
    let engine = Engine::of(&component("i32.const 64"), None).unwrap();
    let mut instance = instance(&engine);
    let lease = instance.open(&options()).unwrap();
    let step = instance.step(lease, Input::Tick).unwrap();
    assert_eq!((step.request, step.event), (None, None));
}

#[test]
fn a_runaway_is_interrupted() {
    let began = Instant::now();
    let end = end_of("(loop (br 0)) unreachable");
    assert!(end.contains("interrupt"), "{end}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_trap_is_the_end_of_the_instance() {
    let end = end_of("unreachable");
    assert!(end.contains("unreachable"), "{end}");
}

#[test]
fn memory_beyond_the_limit_is_not_given() {
    let limit_pages = MEMORY_BYTES / 65_536;
    let end = end_of(&format!(
        "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
         (if (i32.ne (memory.size) (i32.const {limit_pages})) (then (loop (br 0))))
         unreachable"
    ));
    assert!(end.contains("unreachable"), "{end}");
}

#[test]
fn an_answer_that_no_component_of_ours_gives_is_the_end() {
    let engine = Engine::of(&component("i32.const 64"), None).unwrap();
    let mut instance = instance(&engine);
    // As if the component had logged a token of term 0.
    instance.store.data_mut().event = Some(Event::Elected(types::Token {
        lineage: types::Lineage { high: 0, low: 0 },
        term: 0,
        nonce: 0,
    }));
    let dead = instance.step(LeaseId(0), Input::Tick).unwrap_err();
    assert!(dead.to_string().contains("made up a token"), "{dead}");
}

#[test]
fn bytes_that_are_no_component_are_refused() {
    assert!(Engine::of(b"\0asm", None).is_err());
}

#[test]
fn without_random_bits_the_instance_ends() {
    struct Dry;
    impl Entropy for Dry {
        fn salt(&self) -> Result<u64, NoEntropy> {
            Err(NoEntropy("test".to_owned()))
        }
    }
    let engine = Engine::new(None).unwrap();
    let mut instance = Component::new(&engine, Arc::new(SystemClock), Arc::new(Dry)).unwrap();
    let Err(OpenError::Dead(dead)) = instance.open(&options()) else { panic!("it was opened") };
    assert!(dead.to_string().contains("no random bits"), "{dead}");
}

#[test]
fn options_that_do_not_fit_leave_the_instance_alive() {
    let engine = Engine::new(None).unwrap();
    let mut instance = instance(&engine);
    let wrong = Open { name: "two words".to_owned(), ..options() };
    assert!(matches!(instance.open(&wrong), Err(OpenError::Misuse(_))));
    assert!(instance.open(&options()).is_ok());
}

#[test]
fn compiled_code_is_kept_in_the_folder_that_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("not/there/yet");
    instance(&Engine::new(Some(&cache)).unwrap()).open(&options()).unwrap();
    instance(&Engine::new(Some(&cache)).unwrap()).open(&options()).unwrap();
    assert!(std::fs::read_dir(&cache).unwrap().next().is_some());
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_that_names_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let Err(error) = Engine::new(Some(&file.path().join("cache"))) else { panic!("it was used") };
    let name = file.path().file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(name), "{error}");
}
