// Time of a step from JavaScript, beside a call into wasm that does nothing. Prints lines for
// `cargo xtask bench`: name, unit, ours, beside. Run `cargo xtask test js` first, or build.

import { Config, Elector, timing } from 'leasehold';

// A renewal is a tick and the store's answer.
const STEPS_PER_RENEWAL = 2;
const RENEWALS = 1_000;
const ROUNDS = 200;

const TIMING = timing.fromTtl(10_000, 0n, 100_000_000n, 10_000);
const VERSION = Uint8Array.of(1);
const SALT = 7n;

/** An elector that leads: each call is a whole renewal, as a host makes it. */
function leader() {
  const config = new Config({
    holder: 'web-1',
    instance: 1n,
    timing: TIMING,
    authority: 'LocalObservation',
    clocks: { wall: true, resolutionNs: 1n },
  });
  let now = at(0n);
  const elector = new Elector(config, 'settlement', now, SALT);
  const done = (step, outcome) =>
    elector.step(now, { type: 'Done', op: step.request.op, outcome, salt: SALT });
  const read = elector.step(now, { type: 'Tick' });
  const write = done(read, { type: 'Absent' });
  const { event } = done(write, { type: 'Applied', version: VERSION });
  expect(elector.step(now, { type: 'Sealed', token: event.token }), 'Leading');
  return () => {
    now = at(now.monoNs + TIMING.renewNs);
    const write = elector.step(now, { type: 'Tick' });
    expect(done(write, { type: 'Applied', version: VERSION }), 'Renewed');
  };
}

function at(monoNs) {
  return { monoNs, wallNs: 1_800_000_000_000_000_000n + monoNs };
}

function expect(step, type) {
  if (step.event?.type !== type) throw new Error(`expected ${type}, not ${step.event?.type}`);
}

/** A call with a number, which it gives back. */
function emptyCall() {
  // (module (func (export "f") (param i32) (result i32) local.get 0))
  const same = Uint8Array.of(
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...[0x01, 0x06, 0x01, 0x60, 0x01, 0x7f, 0x01, 0x7f],
    ...[0x03, 0x02, 0x01, 0x00],
    ...[0x07, 0x05, 0x01, 0x01, 0x66, 0x00, 0x00],
    ...[0x0a, 0x06, 0x01, 0x04, 0x00, 0x20, 0x00, 0x0b],
  );
  return new WebAssembly.Instance(new WebAssembly.Module(same)).exports.f;
}

function picosecondsPerStep(renew) {
  const start = process.hrtime.bigint();
  for (let count = 0; count < RENEWALS; count += 1) renew(count);
  const elapsed = process.hrtime.bigint() - start;
  return Number((elapsed * 1_000n) / BigInt(RENEWALS * STEPS_PER_RENEWAL));
}

const renew = leader();
const call = emptyCall();
let sum = 0;
const callTwice = (count) => {
  sum = (sum + call(count) + call(count + 1)) | 0;
};
// The fastest of many rounds of each, taken in turn: what else the machine does only adds.
let [ours, beside] = [Infinity, Infinity];
for (let round = 0; round < ROUNDS; round += 1) {
  ours = Math.min(ours, picosecondsPerStep(renew));
  beside = Math.min(beside, picosecondsPerStep(callTwice));
}
console.log(`step.javascript ps ${ours} ${beside}`);
