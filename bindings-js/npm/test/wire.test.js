// What crosses into wasm and back, as far as the vectors do not show it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Config, Elector, fence, record, timing, wire } from 'leasehold';

import { initSync } from '../generated/leasehold.js';

const MAX_U64 = 2n ** 64n - 1n;
const TOKEN = `${'0123456789abcdef'.repeat(2)}/${2n ** 63n - 1n}/${'f'.repeat(16)}`;
const MILLISECOND_NS = 1_000_000n;
const TIMING = timing.fromTtl(10_000, 1_000n * MILLISECOND_NS, 100n * MILLISECOND_NS, 10_000);
const OPTIONS = {
  holder: 'web-1',
  instance: 0xan,
  timing: TIMING,
  authority: 'LocalObservation',
  clocks: { wall: true, resolutionNs: MILLISECOND_NS },
};

function at(ms) {
  const monoNs = BigInt(ms) * MILLISECOND_NS;
  return { monoNs, wallNs: 1_796_065_445_123n * MILLISECOND_NS + monoNs };
}

function elector(options = {}) {
  return new Elector(new Config({ ...OPTIONS, ...options }), 'job', at(0), 1n);
}

function done(op, outcome) {
  return { type: 'Done', op, outcome, salt: MAX_U64 };
}

/** An elector that leads, and what it wrote. */
function leader() {
  const machine = elector();
  const read = machine.step(at(0), { type: 'Tick' }).request;
  const write = machine.step(at(1), done(read.op, { type: 'Absent' })).request;
  const value = machine.value();
  machine.step(at(2), done(write.op, { type: 'Applied', version: Uint8Array.of(1) }));
  machine.step(at(3), { type: 'Sealed', token: machine.token });
  assert.equal(machine.state, 'Leading');
  return { machine, value };
}

/** Every input, with and without what it may leave out. */
function inputs() {
  const { machine, value } = leader();
  const entry = machine.entry(value, new Uint8Array(40), MAX_U64);
  const broken = machine.entry(new Uint8Array(3000), new Uint8Array());
  const bare = ['Absent', 'Conflict', 'Undecided', 'Unavailable', 'Unknown', 'Gone'];
  const outcomes = [
    ...bare.map((type) => ({ type })),
    { type: 'Entry', entry },
    { type: 'Entry', entry: broken },
    { type: 'Applied', version: new Uint8Array(40) },
    { type: 'Applied', version: new Uint8Array() },
  ];
  return [
    ...['Tick', 'Stop', 'Disrupted', 'Resign', 'Hint'].map((type) => ({ type })),
    ...['Sealed', 'Drained', 'Adopt', 'SealRefused'].map((type) => ({ type, token: TOKEN })),
    ...outcomes.map((outcome) => done(2 ** 32 - 1, outcome)),
    { type: 'SealRefused', token: TOKEN, floor: MAX_U64 },
    { type: 'Resign', to: 'x'.repeat(128) },
    { type: 'Hint', entry },
    { type: 'Hint', entry: broken },
  ];
}

test('the core reads every input that is encoded', () => {
  const encodings = new Set();
  for (const input of inputs()) {
    for (const now of [at(0), { monoNs: MAX_U64 }]) {
      const bytes = wire.encodeInput(now, input);
      elector().stepBytes(bytes);
      encodings.add(Buffer.from(bytes).toString('hex'));
    }
  }
  assert.equal(encodings.size, 2 * inputs().length);
});

test('an input has the bytes of the documented layout', () => {
  const hex = (now, input) => Buffer.from(wire.encodeInput(now, input)).toString('hex');
  const outcome = { type: 'Applied', version: Uint8Array.of(0xab, 0xcd) };
  const [message, zero, none] = ['0101', '0000000000000000', '00'];
  assert.equal(
    hex({ monoNs: 7n, wallNs: MAX_U64 }, { type: 'Done', op: 0x0102, outcome, salt: 0x5a17n }),
    `${message}000000000000000701ffffffffffffffff01000001020202abcd0000000000005a17`,
  );
  assert.equal(
    hex({ monoNs: 0n }, { type: 'SealRefused', token: TOKEN, floor: 9n }),
    `${message}${zero}${none}03${'0123456789abcdef'.repeat(2)}7fffffffffffffffffffffffffffffff` +
      '010000000000000009',
  );
  const resign = { type: 'Resign', to: 'b' };
  assert.equal(hex({ monoNs: 0n }, resign), `${message}${zero}${none}05010162`);
});

test('a step that was cut or added to is refused', () => {
  const step = elector().stepBytes(wire.encodeInput(at(0), { type: 'Tick' }));
  assert.equal(wire.decodeStep(step).request.body.type, 'Read');
  for (let length = 0; length < step.length; length += 1) {
    assert.throws(() => wire.decodeStep(step.subarray(0, length)), /not a step/);
  }
  assert.throws(() => wire.decodeStep(Uint8Array.of(...step, 0)), /not a step/);
  for (const at of [0, 1, 2]) assert.throws(() => wire.decodeStep(step.with(at, 3)), /not a step/);
  assert.throws(() => wire.decodeStep(wire.encodeInput(at(0), { type: 'Tick' })), /not a step/);
});

test('a wrong argument is named, and leaves the elector as it was', () => {
  const [{ machine }, { machine: twin }] = [leader(), leader()];
  const version = new Uint8Array(41);
  const wrong = [
    [() => machine.step(undefined, { type: 'Tick' }), /now must be an object; it is undefined/],
    [() => machine.step({ monoNs: 1 }, { type: 'Tick' }), /now\.monoNs must be.*the number 1/],
    [() => machine.step({ monoNs: -1n }, { type: 'Tick' }), /now\.monoNs must be a bigint from 0n/],
    [() => machine.mayFinish({ monoNs: 1n, wallNs: 2n ** 64n }), /now\.wallNs must be/],
    [() => machine.step(at(4), null), /input must be an object; it is null/],
    [() => machine.step(at(4), { type: 'tick' }), /input\.type must be one of.*it is "tick"/],
    [() => machine.step(at(4), { type: 'Resign', to: 'web 2' }), /a label has 1 to 128 characters/],
    [() => machine.step(at(4), { type: 'Resign', to: 2 }), /input\.to must be a string/],
    [() => machine.step(at(4), { type: 'Sealed', token: 'a/1/b' }), /not a token: expected/],
    [() => machine.step(at(4), { type: 'Drained' }), /input\.token must be a string/],
    [() => machine.step(at(4), done(1.5, { type: 'Absent' })), /input\.op must be a whole number/],
    [() => machine.step(at(4), done(1, { type: 'absent' })), /input\.outcome\.type must be one of/],
    [() => machine.step(at(4), done(1, undefined)), /input\.outcome must be an object/],
    [() => machine.step(at(4), done(1, { type: 'Applied', version })), /more than 40 bytes/],
    [() => machine.step(at(4), { type: 'Hint', entry: 'x' }), /input\.entry must be a Uint8Array/],
    [() => machine.step(at(4), { type: 'Hint', entry: new Uint8Array(9) }), /not a message/],
    [() => machine.step(at(4), { type: 'Hint', entry: new Uint8Array(5000) }), /is too long/],
    [() => machine.step(at(4), done(1, { type: 'Entry', entry: new Uint8Array(2176) })), /not a m/],
    [() => machine.stepBytes([1, 1]), /input must be a Uint8Array/],
    [() => machine.stepBytes(new Uint8Array(5000)), /not a message/],
    [() => machine.entry(new Uint8Array(), version), /at most 40 bytes/],
    [() => machine.mayStart(4n), /now must be an object; it is the bigint 4/],
    [() => new Elector({}, 'job', at(0), 1n), /config must be a Config: make one with/],
    [() => new Elector(new Config(OPTIONS), 'a b', at(0), 1n), /a name has 1 to 128 characters/],
    [() => new Config({ ...OPTIONS, holder: '' }), /a label has 1 to 128 characters/],
    [() => new Config({ ...OPTIONS, clocks: undefined }), /clocks must be an object/],
    [() => elector({ timing: { ...TIMING, driftPpm: 1_000_000 } }), /a drift is 0 to 999 999/],
    [() => elector({ authority: 'StoreClock' }), /authority, if not 'LocalObservation', must be/],
    [() => fence.seal(null, TOKEN), /row, if there is one, must be an object; it is null/],
    [() => fence.seal({ ...fence.NEW, seq: 0 }, TOKEN), /row\.seq must be a bigint/],
    [() => fence.admit(fence.NEW, undefined, TOKEN, 'D'.repeat(64)), /not a digest: expected/],
    [() => fence.seal(fence.NEW, TOKEN, null), /advance, if not 'proven', must be a bigint/],
    [() => record.decode('job', '{}'), /value must be a Uint8Array/],
  ];
  for (const [call, message] of wrong) assert.throws(call, message);

  const tick = wire.encodeInput(at(5), { type: 'Tick' });
  assert.deepEqual(machine.stepBytes(tick), twin.stepBytes(tick));
});

test('no bytes make the core trap', () => {
  const valid = inputs().map((input) => wire.encodeInput(at(9), input));
  const { machine } = leader();
  let accepted = 0;
  for (const bytes of drawn(20_000, valid)) {
    try {
      wire.decodeStep(machine.stepBytes(bytes));
      accepted += 1;
    } catch (error) {
      assert.match(error.message, /^(not a message of version 1|the entry was read for another)/);
    }
    record.decode('job', bytes);
  }
  assert.ok(accepted > 100, `${accepted} were inputs`);
});

/** Noise, and messages with a few bytes changed. */
function* drawn(count, valid) {
  let seed = 1;
  const below = (limit) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * limit);
  };
  for (let number = 0; number < count; number += 1) {
    const noise = below(4) === 0;
    const bytes = noise ? new Uint8Array(below(300)) : valid[below(valid.length)].slice();
    for (let left = noise ? bytes.length : below(4); left > 0; left -= 1) {
      bytes[below(bytes.length)] = below(256);
    }
    yield bytes;
  }
}

test('settings that do not work together are refused with the nearest that do', () => {
  const refused = (constraint, nearest) => (error) => {
    assert.ok(timing.isRefusal(error));
    assert.deepEqual([error.constraint, error.nearest], [constraint, nearest]);
    return true;
  };
  const short = { ...TIMING, guardNs: 1n };
  assert.throws(() => elector({ timing: short }), refused('Guard', 2n * MILLISECOND_NS));
  assert.throws(() => timing.check(short, MILLISECOND_NS), refused('Guard', 2n * MILLISECOND_NS));
  assert.throws(() => elector({ timing: { ...TIMING, ttlMs: 0 } }), refused('Ttl', undefined));
  assert.equal(timing.check(TIMING, MILLISECOND_NS).timing.ttlMs, 10_000);
});

test('deadlines are those that were announced', () => {
  const { machine } = leader();
  const now = at(4);
  assert.ok(machine.mayStart(now) && machine.mayFinish(now));
  assert.equal(machine.stopAt(now), now.monoNs + machine.remainingNs(now));
  assert.equal(machine.validUntil(now) - machine.stopAt(now), TIMING.drainNs);
  const late = at(10_000);
  assert.ok(!machine.mayStart(late) && !machine.mayFinish(late));
  assert.equal(machine.remainingNs(late), 0n);
  assert.equal(elector().stopAt(now), undefined);
  assert.equal(elector().token, undefined);
});

test('a freed elector says so', () => {
  const { machine } = leader();
  machine.free();
  machine.free();
  assert.throws(() => machine.state, /this elector was freed: make a new one/);
});

test('neither answers nor refusals leave anything in memory', () => {
  const { memory } = initSync();
  const { machine, value } = leader();
  const tick = wire.encodeInput(at(5), { type: 'Tick' });
  const row = { token: TOKEN, retired: false, seq: 0n };
  const config = new Config(OPTIONS);
  const round = () => {
    machine.stepBytes(tick);
    machine.entry(value, tick);
    fence.admit(row, undefined, TOKEN, 'd'.repeat(64));
    new Elector(config, 'job', at(0), 1n).free();
    assert.throws(() => machine.stepBytes(value));
    assert.throws(() => fence.seal(row, 'not a token'));
    assert.throws(() => elector({ timing: { ...TIMING, ttlMs: 0 } }));
    assert.throws(() => elector({ holder: '' }));
    assert.throws(() => new Elector(config, '', at(0), 1n));
  };
  const rounds = (count) => {
    for (let left = count; left > 0; left -= 1) round();
    return memory.buffer.byteLength;
  };
  const before = rounds(500);
  assert.equal(rounds(5_000), before);
});

test('an array that lies about its length is taken for what it is', () => {
  class Short extends Uint8Array {
    get length() {
      return 4;
    }
  }
  const { machine } = leader();
  assert.throws(() => machine.stepBytes(new Short(8000).fill(0x41)));
  const tick = wire.encodeInput(at(4), { type: 'Tick' });
  assert.deepEqual(machine.stepBytes(Short.from(tick)), machine.stepBytes(tick));
  assert.throws(
    () => machine.stepBytes({ [Symbol.toStringTag]: 'Uint8Array', length: 5 }),
    /Uint8Array/,
  );
  assert.equal(machine.state, 'Leading');
});

test('a getter that steps another elector leaves the message as it is', () => {
  const { machine } = leader();
  const { machine: other } = leader();
  const now = {
    monoNs: at(4).monoNs,
    get wallNs() {
      other.step(at(999_999), { type: 'Tick' });
      return at(4).wallNs;
    },
  };
  machine.step(now, { type: 'Tick' });
  assert.equal(machine.state, 'Leading');
});

test('an entry that was read for another lease is refused', () => {
  const { machine, value } = leader();
  const entry = machine.entry(value, Uint8Array.of(1));
  const other = new Elector(new Config(OPTIONS), 'another', at(0), 1n);
  const { op } = other.step(at(0), { type: 'Tick' }).request;
  assert.throws(() => other.step(at(1), done(op, { type: 'Entry', entry })), /another lease/);
  assert.equal(other.state, 'Observing');
});
