//! `leasehold timing`: what it explains is what `run` does, and what it refuses `run` refuses.

use leasehold_core::record;
use serde_json::Value;

use crate::rig::{Ended, LEASE, Scene};

#[test]
fn without_options_it_explains_a_run_without_options() {
    let scene = Scene::new();
    let explained = timing(&scene, "");
    assert_eq!(
        explained.stdout.lines().next(),
        Some("leasehold run --ttl 15s --grace 3s"),
        "{explained:?}"
    );
    let plan = &timing(&scene, "--json").json()["run"];
    assert_eq!(run(&scene, ""), plan["ttl_ms"]);
    let help = scene.leasehold(["run", "--help"]).end().stdout;
    for default in ["[default: 15s]", "[default: 3s]"] {
        assert_eq!(help.matches(default).count(), 1, "{default} in {help}");
    }
}

#[test]
fn a_ttl_is_explained_in_words_and_figures() {
    let scene = Scene::new();
    let ended = timing(&scene, "--ttl 10s --grace 1s --standbys 3");
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "leasehold run --ttl 10s --grace 1s");
    assert_eq!(lines[1], "  a ttl of 10s, renewed every 3.352s, each attempt within 838ms");
    assert!(lines[2].starts_with("  a dead holder is replaced within 13"), "{ended:?}");
    assert_eq!(lines.len(), 7, "{ended:?}");
    let plan = &timing(&scene, "--ttl 10s --grace 1s --standbys 3 --json").json()["run"];
    assert_eq!(plan["options"], "--ttl 10s --grace 1s");
    assert_eq!(plan["ttl_ms"], 10_000);
    assert_eq!(plan["drain_ns"], 1_500_000_000);
    // How long an offer is kept; --grace is another.
    assert!(plan["offer_grace_ms"].is_u64() && plan["grace_ms"].is_null(), "{plan}");
    assert_eq!(plan["standbys_per_hour"], 3 * 3600);
}

#[test]
fn what_it_refuses_run_refuses_in_the_same_words() {
    let scene = Scene::new();
    for options in
        ["--ttl 2s", "--ttl 25h", "--ttl 0s", "--ttl 15s --grace 15s", "--grace 100years"]
    {
        let refused = timing(&scene, options);
        refused.expect(78, "--ttl and --grace: ");
        assert_eq!(refused.stdout, "");
        let line = [&["run", LEASE, "--store", "./leases.db"], &*words(options), &["--", "true"]];
        let run = scene.leasehold(line.concat()).end();
        assert_eq!((run.code, &run.stderr), (78, &refused.stderr), "{options}");
    }
    // The value that a refusal names does.
    timing(&scene, "--ttl 2s").expect(78, "need 4.465s or more; use that, or a shorter drain");
    timing(&scene, "--ttl 3s").expect(78, "the drain is --grace, 3s by default, and 500ms for");
    timing(&scene, "--ttl 4465ms").expect(0, "");
}

#[test]
fn a_budget_gets_the_longest_ttl_with_which_run_keeps_it() {
    let scene = Scene::new();
    let budget = "--detect 30s --p99 50ms --p50 5ms --grace 1s --standbys 2";
    let ended = timing(&scene, budget);
    let options = ended.stdout.lines().next().unwrap().strip_prefix("leasehold run ").unwrap();
    let report = timing(&scene, &format!("{budget} --json")).json();
    let (run_by, derived) = (&report["run"], &report["derived"]);
    assert_eq!(run_by["options"], options);
    assert_eq!(run(&scene, options), run_by["ttl_ms"]);
    // The same as if it had been explained by itself.
    let explained = timing(&scene, &format!("{options} --standbys 2 --json")).json();
    assert_eq!(explained["run"], *run_by);
    for plan in [run_by, derived] {
        assert!(plan["takeover_ns"].as_u64().unwrap() <= 30_000_000_000, "{report}");
        assert!(plan["attempt_ns"].as_u64().unwrap() >= 50_000_000, "{report}");
    }
    let longer =
        format!("--ttl {}s --grace 1s --json", run_by["ttl_ms"].as_u64().unwrap() / 1000 + 1);
    let longer = timing(&scene, &longer).json();
    assert!(longer["run"]["takeover_ns"].as_u64().unwrap() > 30_000_000_000, "{longer}");
}

#[test]
fn a_budget_that_only_the_library_keeps_says_what_run_would_need() {
    let scene = Scene::new();
    let budget = |detect: &str| format!("--detect {detect} --p99 500ms --tolerate 6");
    let ended = timing(&scene, &budget("30s"));
    ended.expect(0, "");
    assert!(ended.stdout.starts_with("no ttl of `run` keeps this budget"), "{ended:?}");
    let report = timing(&scene, &format!("{} --json", budget("30s"))).json();
    assert_eq!((&report["run"], &report["derived"]["tolerated"]), (&Value::Null, &6.into()));
    let (_, rest) = ended.stdout.split_once("plan for --detect ").unwrap();
    let (detect, _) = rest.split_once(" or more").unwrap();
    assert!(detect.ends_with('s') && !detect.ends_with("ms"), "{detect}");
    let enough = timing(&scene, &budget(detect));
    assert!(enough.stdout.starts_with("leasehold run --ttl "), "{enough:?}");
}

#[test]
fn a_budget_that_nothing_keeps_is_refused_with_the_nearest_that_something_does() {
    let scene = Scene::new();
    let refused = timing(&scene, "--detect 2s --p99 50ms --json");
    refused.expect(78, "the detection target is too short");
    let (_, rest) = refused.stderr.split_once(" need ").unwrap();
    let (least, _) = rest.split_once(" or more").unwrap();
    timing(&scene, &format!("--detect {least} --p99 50ms")).expect(0, "");
    timing(&scene, "--detect 30s --p99 50ms --tolerate 1").expect(78, "at least 2 lost renewals");
    timing(&scene, "--detect 30s --p99 3h").expect(78, "the store is too slow");
}

#[test]
fn options_that_make_no_sense_together_are_refused() {
    let scene = Scene::new();
    timing(&scene, "--detect 30s").expect(78, "--p99 <DURATION>");
    timing(&scene, "--p99 50ms").expect(78, "--detect <DURATION>");
    timing(&scene, "--ttl 15s --detect 30s --p99 50ms").expect(78, "cannot be used with");
    timing(&scene, "--pause 1s").expect(78, "--detect <DURATION>");
    let median = timing(&scene, "--detect 30s --p99 50ms --p50 60ms");
    median.expect(78, "--p50 60ms is over --p99 50ms: ");
    assert_eq!(median.stdout, "");
}

fn timing(scene: &Scene, options: &str) -> Ended {
    scene.leasehold([&["timing"], &*words(options)].concat()).end()
}

/// The ttl in the record of a `run` with these options, in milliseconds.
fn run(scene: &Scene, options: &str) -> u32 {
    let line = [&["run", LEASE, "--store", "./leases.db"], &*words(options), &["--", "true"]];
    let ended = scene.leasehold(line.concat()).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    record::decode(&scene.store().value()).unwrap().ttl_ms
}

fn words(options: &str) -> Vec<&str> {
    options.split_whitespace().collect()
}
