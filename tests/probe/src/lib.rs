//! Shows that no panic path is left in the core.
//!
//! The panic handler calls an import. If the linked module has no import, the linker found no way
//! from an export to the handler: no input makes the core panic. Overflow checks are on.
//! With `--cfg panics` one index without a check is put in, so that the check is seen to fail.
//!
//! Everything that the core is given comes from memory that the compiler cannot know.
#![no_std]
#![cfg(target_arch = "wasm32")]
use core::fmt::{self, Display, Write as _};
use core::hint::black_box;
use core::panic::PanicInfo;
use core::slice;

use leasehold_core::fence::{self, Advance, Digest, FenceRow, StepRow};
use leasehold_core::label::{Label, Name, Note};
use leasehold_core::lease::{Authority, Config, Elector, Input};
use leasehold_core::observe::Event;
use leasehold_core::operator::{self, Signature};
use leasehold_core::store::{Entry, OpId, Outcome, Version};
use leasehold_core::time::{Clocks, Drift, Mono, Now};
use leasehold_core::timing::{self, Budget, Timing};
use leasehold_core::token::{Lineage, Nonce, Term, Token};
use leasehold_core::{record, wire};

#[link(wasm_import_module = "probe")]
unsafe extern "C" {
    fn panicked() -> !;
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    // SAFETY: the import takes nothing and touches nothing of ours.
    unsafe { panicked() }
}

/// Decodes `len` bytes at `bytes` as a record, and encodes what they held into `room` bytes at
/// `buffer`.
///
/// # Safety
/// `bytes` must be readable, `buffer` writable, for as many bytes as said; they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn record(bytes: *const u8, len: usize, buffer: *mut u8, room: usize) {
    // SAFETY: the caller's promise.
    let (bytes, buffer) =
        unsafe { (slice::from_raw_parts(bytes, len), slice::from_raw_parts_mut(buffer, room)) };
    judge(record::decode(bytes).map(|record| judge(record::encode(&record, buffer))));
}

/// The same with both messages of [`wire`].
///
/// # Safety
/// As for [`record`](fn@record).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn message(bytes: *const u8, len: usize, buffer: *mut u8, room: usize) {
    // SAFETY: the caller's promise.
    let (bytes, buffer) =
        unsafe { (slice::from_raw_parts(bytes, len), slice::from_raw_parts_mut(buffer, room)) };
    let input = wire::decode_input(bytes);
    judge(input.map(|(now, input)| judge(wire::encode_input(now, &input, buffer))));
    judge(wire::decode_step(bytes).map(|step| judge(wire::encode_step(&step, buffer))));
}

/// Reads everything that is read from a text.
///
/// # Safety
/// `text` must be readable for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn parse(text: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    let text = unsafe { slice::from_raw_parts(text, len) };
    let Ok(text) = str::from_utf8(text) else { return };
    judge(text.parse::<Token>().map(show));
    judge(text.parse::<Digest>().map(show));
    judge(Name::chosen(text).map(show));
    judge(Label::new(text).map(show));
    judge(Note::new(text).map(show));
}

/// Seals and reads with any row, token and reach.
///
/// # Safety
/// `words` must be readable for [`Words`] to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn seal(words: *const u64) {
    let mut words = Words(words);
    let row = words.option(Words::fence_row);
    let advance = words.option(Words::word).map_or(Advance::Proven, Advance::AtMost);
    let token = words.token();
    let _ = black_box(fence::seal(row.as_ref(), token, advance));
    let _ = black_box(fence::read(row.as_ref(), token, advance));
}

/// Asks to write and to cancel with any row, step, token and digest.
///
/// # Safety
/// `words` must be readable for [`Words`] to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn admit(words: *const u64) {
    let mut words = Words(words);
    let row = words.option(Words::fence_row);
    let known = words.option(Words::step_row);
    let digest = words.option(Words::digest);
    let token = words.token();
    let _ = black_box(fence::admit(row.as_ref(), known.as_ref(), token, digest));
    let _ = black_box(fence::cancel(row.as_ref(), known.as_ref(), token));
}

/// Retires, recovers and adopts any row, with any token.
///
/// # Safety
/// `words` must be readable for [`Words`] to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn change_hands(words: *const u64) {
    let mut words = Words(words);
    let row = words.option(Words::fence_row);
    let token = words.token();
    let _ = black_box(fence::retire(row.as_ref(), token));
    let _ = black_box(fence::recover(row.as_ref(), token));
    let _ = black_box(fence::adopt(row.as_ref(), token));
}

/// Checks any timing, and makes an elector of it.
///
/// # Safety
/// `words` must be readable for [`Words`] to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn configure(words: *const u64) {
    let mut words = Words(words);
    let Some(drift) = Drift::from_ppm(words.word() as u32) else { return };
    let timing = Timing::from_ttl(words.word() as u32, words.word(), words.word(), drift);
    let timing = black_box(Timing {
        renew_ns: words.word(),
        attempt_ns: words.word(),
        tolerated: words.word() as u32,
        pause_ns: words.word(),
        poll_ns: words.word(),
        grace_ms: words.word() as u32,
        sit_out_ns: words.word(),
        ..timing
    });
    let authority = words.authority();
    let clocks = Clocks { wall: words.flag(), resolution_ns: words.word() };
    let Ok(holder) = Label::new("web-1") else { return };
    let config = Config::new(words.nonce(), holder, timing, authority, clocks);
    judge(config.map(|config| black_box(Elector::new(&config, words.now(), words.word())).state()));
}

/// Derives a timing from any budget, and explains it.
///
/// # Safety
/// `words` must be readable for [`Words`] to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn derive(words: *const u64) {
    let mut words = Words(words);
    let Some(drift) = Drift::from_ppm(words.word() as u32) else { return };
    let budget = Budget {
        detection_ns: words.word(),
        p50_ns: words.word(),
        p99_ns: words.word(),
        pause_ns: words.word(),
        drain_ns: words.word(),
        tolerated: words.word() as u32,
        standbys: words.word() as u32,
        drift,
        resolution_ns: words.word(),
        authority: words.authority(),
    };
    match timing::derive(&black_box(budget)) {
        Ok(plan) => show(plan),
        Err(refusal) => show(refusal),
    }
}

/// Lets an operator do everything to any record.
///
/// # Safety
/// `words` must be readable for [`Words`] to read, `bytes` for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn operate(words: *const u64, bytes: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(bytes, len) };
    let mut words = Words(words);
    let (Ok(record), Ok(to)) = (record::decode(bytes), Label::new("web-1")) else { return };
    let signature = Signature {
        holder: to,
        instance: words.nonce(),
        attempt: words.nonce(),
        at_ms: words.option(Words::word),
    };
    let ask = record::Ask { id: words.nonce(), to };
    judge(operator::ask(&record, black_box(ask)));
    let reason = Note::new(core::str::from_utf8(bytes).unwrap_or_default());
    let reason = reason.unwrap_or(Note::EMPTY);
    judge(operator::force(&record, black_box(signature), words.nonce(), reason));
    judge(operator::waive(&record, signature));
    let _ = black_box(operator::init(record.name, words.token(), signature, words.word() as u32));
}

/// Gives any input to an elector in any state, and asks it everything.
///
/// # Safety
/// `elector` must point to an elector, `words` be readable for [`Words`] to read, `bytes` for
/// `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn step(
    elector: *mut Elector<&'static Config>,
    words: *const u64,
    bytes: *const u8,
    len: usize,
) {
    // SAFETY: the caller's promise.
    let (elector, bytes) = unsafe { (&mut *elector, slice::from_raw_parts(bytes, len)) };
    let mut words = Words(words);
    let input = words.input(bytes);
    match black_box(elector.step(words.now(), input)).event {
        Some(Event::Demoted { reason, .. }) => show(reason),
        Some(Event::StoreFault(fault)) => show(fault),
        _ => {}
    }
    let now = words.now();
    black_box((elector.may_start(now), elector.may_finish(now), elector.remaining_ns(now)));
    black_box((elector.stop_at(now), elector.valid_until(now), elector.token(), elector.state()));
}

/// One index without a check.
///
/// # Safety
/// `words` must be readable for [`Words`] to read.
#[cfg(panics)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn index(words: *const u64) {
    let mut words = Words(words);
    let digest = words.digest();
    black_box(digest.0[words.word() as usize]);
}

/// Uses what came of it.
fn judge<T, E: Display>(outcome: Result<T, E>) {
    match outcome {
        Ok(value) => drop(black_box(value)),
        Err(error) => show(error),
    }
}

/// Writes it for people: the messages are without a panic path too.
fn show(value: impl Display) {
    let _ = write!(Nowhere, "{value}");
}

struct Nowhere;

impl fmt::Write for Nowhere {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        black_box(text);
        Ok(())
    }
}

/// Values from memory: as many words as the reader asks for, each read once.
struct Words(*const u64);

impl Words {
    fn word(&mut self) -> u64 {
        // SAFETY: whoever made this promised that the memory is there.
        let word = unsafe { self.0.read_volatile() };
        self.0 = self.0.wrapping_add(1);
        word
    }

    fn flag(&mut self) -> bool {
        self.word() & 1 == 1
    }

    fn option<T>(&mut self, read: fn(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| read(self))
    }

    fn nonce(&mut self) -> Nonce {
        Nonce(self.word())
    }

    fn lineage(&mut self) -> Lineage {
        Lineage(u128::from(self.word()) << 64 | u128::from(self.word()))
    }

    fn token(&mut self) -> Token {
        let term = Term::new(self.word()).unwrap_or(Term::LAST);
        Token { lineage: self.lineage(), term, nonce: self.nonce() }
    }

    fn now(&mut self) -> Now {
        Now { mono: Mono(self.word()), wall_ns: self.option(Self::word) }
    }

    fn fence_row(&mut self) -> FenceRow {
        FenceRow {
            lineage: self.lineage(),
            floor: self.word(),
            nonce: self.nonce(),
            retired: self.flag(),
            seq: self.word(),
        }
    }

    fn step_row(&mut self) -> StepRow {
        let op_digest = self.option(Self::digest);
        StepRow { op_digest, seq: self.word(), cancelled: self.flag() }
    }

    fn digest(&mut self) -> Digest {
        let mut digest = [0; 32];
        digest.iter_mut().for_each(|byte| *byte = self.word() as u8);
        Digest(digest)
    }

    fn authority(&mut self) -> Authority {
        match self.option(Self::word) {
            Some(error_ns) => Authority::StoreClock { error_ns },
            None => Authority::LocalObservation,
        }
    }

    fn input<'a>(&mut self, bytes: &'a [u8]) -> Input<'a> {
        match self.word() {
            0 => Input::Tick,
            1 => Input::Sealed(self.token()),
            2 => Input::SealRefused { token: self.token(), floor: self.option(Self::word) },
            3 => Input::Drained(self.token()),
            4 => Input::Resign {
                to: Label::new(core::str::from_utf8(bytes).unwrap_or_default()).ok(),
            },
            5 => Input::Stop,
            6 => Input::Disrupted,
            7 => Input::Adopt(self.token()),
            8 => Input::Hint(match self.outcome(bytes) {
                Outcome::Entry(entry) => Some(entry),
                _ => None,
            }),
            _ => Input::Done {
                op: OpId(self.word() as u32),
                outcome: self.outcome(bytes),
                salt: self.word(),
            },
        }
    }

    fn outcome<'a>(&mut self, bytes: &'a [u8]) -> Outcome<'a> {
        match (self.word(), Version::new(&self.digest().0)) {
            (0, Some(version)) => Outcome::Entry(Entry {
                record: record::decode(bytes),
                version,
                age_ns: self.option(Self::word),
            }),
            (1, Some(version)) => Outcome::Applied(version),
            (2, _) => Outcome::Absent,
            (3, _) => Outcome::Conflict,
            (4, _) => Outcome::Undecided,
            (5, _) => Outcome::Unavailable,
            (6, _) => Outcome::Gone,
            _ => Outcome::Unknown,
        }
    }
}
