// Time of a step from JavaScript, beside a call into wasm that does nothing. Prints lines for
// `cargo xtask bench`: name, unit, ours, beside. The package has to be built.

import assert from 'node:assert/strict';

import { Config, Elector, timing, wire } from 'leasehold';

const ROUNDS = 200;
const RENEWALS = 1_000;
// A renewal is a tick and the store's answer.
const STEPS = 2 * RENEWALS;

const SALT = 7n;
const TIMING = timing.fromTtl(10_000, 0n, 100_000_000n, 10_000);
const CONFIG = new Config({
  holder: 'web-1',
  instance: 1n,
  timing: TIMING,
  authority: 'LocalObservation',
  clocks: { wall: true, resolutionNs: 1n },
});

/** Every round, each of `works` is prepared and then run: the fastest, in picoseconds per step. */
function fastest(...works) {
  const fastest = works.map(() => Infinity);
  // What else the machine does only adds, and in turn it does so to all alike.
  for (let round = 0; round < ROUNDS; round += 1) {
    works.forEach((prepare, at) => {
      const run = prepare();
      const start = process.hrtime.bigint();
      run();
      const elapsed = process.hrtime.bigint() - start;
      fastest[at] = Math.min(fastest[at], Number((elapsed * 1_000n) / BigInt(STEPS)));
    });
  }
  return fastest;
}

/** Steps as a host makes them. */
function steps() {
  const elector = candidate();
  const renew = lead((now, input) => elector.step(now, input));
  return () => {
    for (let count = 0; count < RENEWALS; count += 1) renew();
  };
}

/** The same steps on the wire's bytes. */
function stepsOnBytes() {
  const elector = candidate();
  const renewals = TAPE.inputs.length - STEPS;
  for (const input of TAPE.inputs.slice(0, renewals)) elector.stepBytes(input);
  return () => {
    let step;
    for (let at = renewals; at < TAPE.inputs.length; at += 1) {
      step = elector.stepBytes(TAPE.inputs[at]);
    }
    assert.deepEqual(wire.decodeStep(step), TAPE.last);
  };
}

/** As many calls with a number, which is given back. */
function emptyCalls() {
  return () => {
    let sum = 0;
    for (let count = 0; count < STEPS; count += 1) sum += SAME(count);
    assert.equal(sum, (STEPS * (STEPS - 1)) / 2);
  };
}

function candidate() {
  return new Elector(CONFIG, 'settlement', at(0n), SALT);
}

/** Takes the lease; gives what renews it. */
function lead(step) {
  let now = at(0n);
  const done = ({ request }, outcome) =>
    step(now, { type: 'Done', op: request.op, outcome, salt: SALT });
  const applied = { type: 'Applied', version: Uint8Array.of(1) };
  const elected = done(done(step(now, { type: 'Tick' }), { type: 'Absent' }), applied);
  const leading = step(now, { type: 'Sealed', token: elected.event.token });
  assert.equal(leading.event.type, 'Leading');
  return () => {
    now = at(now.monoNs + TIMING.renewNs);
    const renewed = done(step(now, { type: 'Tick' }), applied);
    if (renewed.event?.type !== 'Renewed') assert.fail('not renewed');
  };
}

function at(monoNs) {
  return { monoNs, wallNs: 1_800_000_000_000_000_000n + monoNs };
}

/** What `steps` tells an elector, and what it answers last. */
function record() {
  const elector = candidate();
  const tape = { inputs: [], last: undefined };
  const renew = lead((now, input) => {
    tape.inputs.push(wire.encodeInput(now, input));
    tape.last = elector.step(now, input);
    return tape.last;
  });
  for (let count = 0; count < RENEWALS; count += 1) renew();
  return tape;
}

/** (module (func (export "same") (param i32) (result i32) local.get 0)) */
function sameNumber() {
  const module = Uint8Array.of(
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...[0x01, 0x06, 0x01, 0x60, 0x01, 0x7f, 0x01, 0x7f],
    ...[0x03, 0x02, 0x01, 0x00],
    ...[0x07, 0x08, 0x01, 0x04, 0x73, 0x61, 0x6d, 0x65, 0x00, 0x00],
    ...[0x0a, 0x06, 0x01, 0x04, 0x00, 0x20, 0x00, 0x0b],
  );
  return new WebAssembly.Instance(new WebAssembly.Module(module)).exports.same;
}

// Once for all rounds: a fresh function is slow at first.
const SAME = sameNumber();
const TAPE = record();
const [step, stepOnBytes, call] = fastest(steps, stepsOnBytes, emptyCalls);
console.log(`step.javascript ps ${step} ${call}`);
console.log(`step.javascript-bytes ps ${stepOnBytes} ${call}`);
