//! What a wasm module or component asks its host for, and who in it does.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{KnownCustom, Name, Operator, Parser, Payload, TypeRef};

use crate::Outcome;

/// The names of all imports of the outermost module or component.
pub(crate) fn imports(wasm: &[u8]) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    let mut depth = 0u32;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ImportSection(section) if depth == 0 => {
                for import in section.into_imports() {
                    let import = import?;
                    names.push(format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    names.push(import?.name.name.to_string());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// The calls by which code outside Rust's own `core` comes to reach an import. For people: names
/// are as the compiler mangled them, and equal functions share one.
pub(crate) fn callers(module: &[u8]) -> Outcome<Vec<String>> {
    let Calls { imports, bodies, names } = Calls::read(module)?;
    let name = |function: &u32| names.get(function).map_or("?", String::as_str);
    let ours = |function: &u32| !name(function).contains("4core");
    let mut reaching: BTreeSet<u32> = (0..imports).collect();
    loop {
        let more: Vec<u32> = (imports..)
            .zip(&bodies)
            .filter(|(caller, calls)| !reaching.contains(caller) && !calls.is_disjoint(&reaching))
            .map(|(caller, _)| caller)
            .collect();
        if more.is_empty() {
            break;
        }
        reaching.extend(more);
    }
    let edges =
        (imports..).zip(&bodies).filter(|(caller, _)| ours(caller)).flat_map(|(caller, calls)| {
            calls.intersection(&reaching).map(move |callee| (caller, callee))
        });
    let edges = edges.filter(|(_, callee)| !ours(callee));
    Ok(edges.map(|(caller, callee)| format!("{} -> {}", name(&caller), name(callee))).collect())
}

/// Who calls whom, by the function's number; imported functions are counted first.
#[derive(Default)]
struct Calls {
    imports: u32,
    bodies: Vec<BTreeSet<u32>>,
    names: BTreeMap<u32, String>,
}

impl Calls {
    fn read(module: &[u8]) -> Outcome<Self> {
        let mut calls = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        calls.imports += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let mut called = BTreeSet::new();
                    for operator in body.get_operators_reader()? {
                        if let Operator::Call { function_index } = operator? {
                            called.insert(function_index);
                        }
                    }
                    calls.bodies.push(called);
                }
                Payload::CustomSection(section) => {
                    let KnownCustom::Name(names) = section.as_known() else { continue };
                    for group in names {
                        let Name::Function(names) = group? else { continue };
                        for name in names {
                            let name = name?;
                            calls.names.insert(name.index, name.name.to_owned());
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(calls)
    }
}
