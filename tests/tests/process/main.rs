//! `leasehold` as people meet it: real processes on a real SQLite file, killed, stopped, woken and
//! misled. A test waits for events, never for a fixed time, and judges the order of events by
//! CLOCK_BOOTTIME.
#![cfg(target_os = "linux")]

mod bad_input;
mod clock;
mod contention;
mod corners;
mod doctor;
mod events;
mod exit_codes;
mod fence_commands;
mod frozen;
mod life;
mod operator;
mod pid_one;
mod rig;
mod run_options;
mod status;
mod store_faults;
mod supervision;
mod terminal;
mod timing;
