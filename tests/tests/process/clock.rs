//! Clocks that lie. A holder believes whichever of its clocks saw more time pass. An observer looks
//! at CLOCK_BOOTTIME alone, which may be off by 1 %.
//!
//! libfaketime moves the wall. It cannot change the rate of CLOCK_BOOTTIME: in its place it shows
//! the wall, at a rate that begins with each process, while front and keeper tell each other
//! instants; and a timer of that clock it sets as one of the wall, decades away. So `boot_rate.c`
//! does that, for all processes from one instant on.
//!
//! The processes of a kernel share this clock, and the age of a record counts on it. So whoever is
//! to see it at another rate than its rivals gets a time namespace of its own, like a container:
//! they do not compare their clocks with its stamps then, and observe it for themselves.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use leasehold_core::record::Kind;

use crate::rig::{Scene, Started, TTL, fixture, freeze, now, run_line, text, through, until, wake};

/// Shows in `log` under which term it runs. The order of the lines is the order of events, whatever
/// any clock says.
const TICKER: [&str; 3] = ["sh", "-c", "while :; do echo $LEASEHOLD_TERM >>log; sleep 0.02; done"];

/// A clock that is half as fast again takes a third of a ttl, and a busy machine its part of the
/// rest.
const ROOMY: [&str; 2] = ["--ttl", "6s"];

#[test]
fn a_wall_pushed_ahead_costs_its_holder_the_lease_once_and_then_it_is_won_again() {
    let scene = Scene::new();
    let wall = Wall::new(&scene, "+0");
    let holder = wall.run(&scene, &[]);
    holder.says("acquired, term 1");
    let rival = scene.run(&[], &TICKER);
    rival.says("waiting");
    ticks(&scene, 1);
    wall.show("+1h");
    let ended = holder.end();
    assert!(matches!(ended.code, 120 | 121), "{ended:?}");
    assert_eq!(ended.stderr.matches("lost: ").count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains("the keeper was gone"), "{ended:?}");
    ticks(&scene, 2);
    never_two_at_once(&scene);
    drop(rival);

    // An hour ahead from the beginning is as good a wall as any.
    let again = wall.run(&scene, &[]);
    again.says("acquired, term 3");
    is_kept_for(1, &scene, 3);
}

#[test]
fn a_wall_set_back_changes_nothing() {
    let scene = Scene::new();
    let wall = Wall::new(&scene, "+0");
    let holder = wall.run(&scene, &[]);
    holder.says("acquired, term 1");
    let rival = scene.run(&[], &TICKER);
    rival.says("waiting");
    wall.show("-1h");
    is_kept_for(2, &scene, 1);
    assert!(!holder.stderr().contains("lost"), "{}", holder.stderr());
    never_two_at_once(&scene);
}

#[test]
fn a_waiter_whose_wall_is_pushed_ahead_takes_nothing_from_the_living() {
    let scene = Scene::new();
    let wall = Wall::new(&scene, "+0");
    let holder = scene.run(&[], &TICKER);
    holder.says("acquired, term 1");
    let waiter = wall.run(&scene, &[]);
    waiter.says("waiting");
    wall.show("+1h");
    is_kept_for(2, &scene, 1);
    never_two_at_once(&scene);
    drop(holder);
    waiter.says("acquired, term 2");
    ticks(&scene, 2);
    never_two_at_once(&scene);
}

#[test]
fn a_wall_that_runs_fast_or_slow_costs_nobody_anything() {
    at_once(["+0 x1.5", "+0 x0.5"], |rate| {
        let scene = Scene::new();
        let wall = Wall::new(&scene, rate);
        let holder = wall.run(&scene, &ROOMY);
        holder.says("acquired, term 1");
        let waiter = wall.run(&scene, &ROOMY);
        waiter.says("waiting");
        is_kept_for(2, &scene, 1);
        drop(holder);
        ticks(&scene, 2);
        never_two_at_once(&scene);
    });
}

#[test]
fn a_slow_holder_is_dead_before_a_fast_rival_begins() {
    let scene = Scene::new();
    let slow = BootClock::gaining(&scene, -RHO_PPM);
    let holder = slow.run_apart(&scene);
    holder.says("acquired, term 1");
    let rival = BootClock::gaining(&scene, RHO_PPM).run(&scene, &[]);
    rival.says("waiting");
    is_kept_for(1, &scene, 1);
    stopped_in_time(&scene, &holder, TTL);
    rival.says("acquired, term 2");
    ticks(&scene, 2);
    never_two_at_once(&scene);
}

#[test]
fn a_holder_whose_clock_is_far_too_fast_keeps_its_lease_and_ends_it_early() {
    let scene = Scene::new();
    let holder = BootClock::gaining(&scene, 5 * RHO_PPM).run_apart(&scene);
    holder.says("acquired, term 1");
    let rival = scene.run(&[], &TICKER);
    rival.says("waiting");
    is_kept_for(1, &scene, 1);
    stopped_in_time(&scene, &holder, TTL * 100 / 105);
    rival.says("acquired, term 2");
    ticks(&scene, 2);
    never_two_at_once(&scene);
}

#[test]
fn all_of_a_kernel_whose_clock_is_far_off_agree_on_it() {
    at_once([500_000, -100_000], |gain_ppm| {
        let scene = Scene::new();
        let clock = BootClock::gaining(&scene, gain_ppm);
        let holder = clock.run(&scene, &ROOMY);
        holder.says("acquired, term 1");
        let rival = clock.run(&scene, &ROOMY);
        rival.says("waiting");
        is_kept_for(2, &scene, 1);
        let gained = scene.store().row().unwrap().written > now();
        assert_eq!(gained, gain_ppm > 0, "the stamps are of that clock");
        stopped_in_time(&scene, &holder, 2 * TTL * 10 / 9);
        rival.says("acquired, term 2");
        ticks(&scene, 2);
        never_two_at_once(&scene);
    });
}

#[test]
fn containers_whose_boot_clocks_are_days_apart_share_a_store() {
    let scene = Scene::new();
    let run = scene.command(run_line(&[], &TICKER));
    let days = ["unshare", "--map-root-user", "--time", "--boottime", "864000"];
    let holder = scene.start(&mut through(&days, &run));
    holder.says("acquired, term 1");
    let rival = scene.run(&[], &TICKER);
    rival.says("waiting");
    is_kept_for(1, &scene, 1);
    stopped_in_time(&scene, &holder, TTL);
    rival.says("acquired, term 2");
    ticks(&scene, 2);
    never_two_at_once(&scene);
}

/// What the clocks of two parties may gain or lose: the bound that the semantics promise for.
const RHO_PPM: i32 = 10_000;

/// libfaketime keeps a file in the shared memory for every process, leaves it there when the process
/// is killed, and does not start when it finds one that a process of the same number has left.
const OWN_MEMORY: [&str; 7] = [
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /dev/shm && exec \"$@\"",
    "sh",
];

/// What some processes take for the wall, in the words of libfaketime.
struct Wall {
    file: PathBuf,
    libraries: String,
}

impl Wall {
    fn new(scene: &Scene, shown: &str) -> Self {
        let mut faketime = Command::new("faketime");
        faketime.args(["-f", "+0", "printenv", "LD_PRELOAD"]).current_dir(scene.folder());
        let found = through(&OWN_MEMORY, &faketime).output().unwrap();
        assert!(found.status.success(), "install the package `faketime`: {found:?}");
        let libfaketime = String::from_utf8(found.stdout).unwrap();
        let timers = preloadable(scene, "kernel_timers");
        let libraries = format!("{}:{}", timers.display(), libfaketime.trim());
        let wall = Self { file: scene.path("wall"), libraries };
        wall.show(shown);
        wall
    }

    /// From now on. The file is read each time a process asks for the time.
    fn show(&self, shown: &str) {
        let new = self.file.with_extension("new");
        fs::write(&new, shown).unwrap();
        fs::rename(&new, &self.file).unwrap();
    }

    fn run(&self, scene: &Scene, options: &[&str]) -> Started {
        let preload = format!("LD_PRELOAD={}", self.libraries);
        let file = format!("FAKETIME_TIMESTAMP_FILE={}", self.file.display());
        let plain = ["FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
        // Set at last: the programs before it have the shared memory of all.
        let wrapper = [&OWN_MEMORY[..], &["env", &preload, &file], &plain].concat();
        let run = scene.command(run_line(options, &TICKER));
        let run = scene.start(&mut through(&wrapper, &run));
        has_loaded(&run, "libfaketime.so");
        run
    }
}

/// CLOCK_BOOTTIME as some processes see it.
struct BootClock {
    library: PathBuf,
    since: Duration,
    gain_ppm: i32,
}

impl BootClock {
    fn gaining(scene: &Scene, gain_ppm: i32) -> Self {
        Self { library: preloadable(scene, "boot_rate"), since: now(), gain_ppm }
    }

    fn run(&self, scene: &Scene, options: &[&str]) -> Started {
        let run = scene.start(&mut self.command(scene, options));
        has_loaded(&run, "boot_rate.so");
        run
    }

    /// Where nobody else compares instants with these processes.
    fn run_apart(&self, scene: &Scene) -> Started {
        let unshare = ["unshare", "--map-root-user", "--time"];
        let run = scene.start(&mut through(&unshare, &self.command(scene, &[])));
        run.says("acquired");
        has_loaded(&run, "boot_rate.so");
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/time")).unwrap();
        assert_ne!(namespace(&run.front().to_string()), namespace("self"));
        run
    }

    fn command(&self, scene: &Scene, options: &[&str]) -> Command {
        let mut run = scene.command(run_line(options, &TICKER));
        run.env("LD_PRELOAD", &self.library)
            .env("BOOT_RATE_SINCE", self.since.as_nanos().to_string())
            .env("BOOT_RATE_GAIN", self.gain_ppm.to_string());
        run
    }
}

/// A library made of this C file of the fixtures. Whoever builds this test has a C compiler: the
/// linker of Rust is one.
fn preloadable(scene: &Scene, name: &str) -> PathBuf {
    let library = scene.path(&format!("{name}.so"));
    let source = fixture(&format!("{name}.c"));
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
    let built = built.expect("cc is needed here: install a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

fn has_loaded(run: &Started, library: &str) {
    let maps = format!("/proc/{}/maps", run.front());
    until(library, || fs::read_to_string(&maps).unwrap().contains(library).then_some(()));
}

/// What only waits need not wait for one another.
fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    thread::scope(|scope| {
        for case in cases {
            let test = &test;
            scope.spawn(move || test(case));
        }
    });
}

/// Waits until the command of this term has shown itself anew.
fn ticks(scene: &Scene, term: u64) {
    let line = format!("{term}\n");
    let count = || text(&scene.path("log")).matches(&line).count();
    let before = count();
    until(&format!("the command of term {term}"), || (count() > before).then_some(()));
}

/// Waits for so many ttls, by the test's own clock, and sees that the holder renews and works on.
fn is_kept_for(ttls: u32, scene: &Scene, term: u64) {
    let end = now() + ttls * TTL;
    until("the ttls", || {
        let row = scene.store().row().unwrap();
        assert_eq!((row.term(), row.kind), (term, Kind::Held));
        (now() > end).then_some(())
    });
    ticks(scene, term);
}

/// Stops the front, so that it can renew no more, and sees that the command is dead in time.
fn stopped_in_time(scene: &Scene, holder: &Started, ttl: Duration) {
    let front = [holder.front()];
    freeze(&front, &[&scene.store()]);
    holder.is_dead_in_time(now(), ttl);
    wake(&front);
}

fn never_two_at_once(scene: &Scene) {
    let log = text(&scene.path("log"));
    let terms: Vec<u64> = log.lines().map(|line| line.parse().unwrap()).collect();
    assert!(terms.is_sorted(), "two at once: {terms:?}");
}
