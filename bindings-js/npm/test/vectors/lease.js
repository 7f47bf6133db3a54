// lease.json: several candidates, one key, a sequence of steps in true time. This plays the clocks,
// the store and the host of every candidate.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import { Config, Elector, record, wire } from 'leasehold';

import { Key } from './key.js';
import { camel, only, token } from './spelling.js';

const NAME = 'job';
/** The wall clock of every machine at true time 0. */
const WALL_MS = 1_796_065_445_123;
const DEAD = 2n ** 64n - 1n;

export function* cases({ timings, cases }) {
  for (const spelled of cases) yield [spelled.name, () => new World(spelled, timings).play()];
}

class World {
  #case;
  #timings;
  #key = new Key(NAME);
  #clocks = new Map();
  #hosts = new Map();
  #messages = createHash('sha256');

  constructor(spelled, timings) {
    this.#case = only(spelled, 'name', 'source', 'machines', 'start', 'steps', 'bytes');
    this.#timings = timings;
  }

  play() {
    const { start, steps, bytes } = this.#case;
    if (start !== null) this.#key.edit(0, { put: start });
    steps.forEach((step, number) => {
      try {
        this.#take(step);
      } catch (error) {
        error.message = `step ${number}, ${JSON.stringify(step)}\n${error.message}`;
        throw error;
      }
    });
    assert.equal(this.#messages.digest('hex'), bytes, 'the messages have other bytes');
  }

  #take(step) {
    const { at_ms, who } = step;
    if ('input' in step || 'answer' in step) {
      only(step, 'at_ms', 'who', 'input', 'answer', 'op', 'gives');
      this.#tell(step);
    } else if ('perform' in step) {
      only(step, 'at_ms', 'who', 'perform', 'op', 'age');
      this.#hosts.get(who).perform(this.#key, at_ms, step);
    } else if ('store' in step) {
      this.#key.edit(at_ms, only(step, 'at_ms', 'store').store);
    } else if ('clock' in step) {
      only(step, 'at_ms', 'who', 'clock');
      this.#shift(who, only(step.clock, 'mono_ms', 'wall_ms'));
    } else {
      const { ask } = only(step, 'at_ms', 'who', 'ask');
      this.#hosts.get(who).may(this.#now(at_ms, who), only(ask, 'may_start', 'may_finish'));
    }
  }

  #tell(step) {
    const { at_ms, who } = step;
    const gives = only(step.gives, 'event', 'request', 'wake_ms', 'may_start', 'may_finish');
    const now = this.#now(at_ms, who);
    const host = this.#host(who, now);
    const message = host.step(now, host.input(step, this.#key, at_ms));

    const length = Buffer.alloc(2);
    length.writeUInt16BE(message.length);
    this.#messages.update(length).update(message);

    const said = wire.decodeStep(message);
    host.act(said);
    demand(gives.event, event(said), 'event');
    demand(gives.request, host.request(said), 'request');
    if ('wake_ms' in gives) assert.equal(wake(said), gives.wake_ms, 'wake_ms');
    host.may(now, gives);
  }

  /** A machine begins at its first input. */
  #host(who, now) {
    if (!this.#hosts.has(who)) {
      const spelled = only(this.#case.machines[who], 'holder', 'instance', 'timing', 'authority');
      const host = new Host(spelled, timing(this.#timings[spelled.timing]), now);
      this.#hosts.set(who, host);
    }
    return this.#hosts.get(who);
  }

  /** Moves a machine's clocks from here on, and says how far they are from true time. */
  #shift(who, { mono_ms = 0, wall_ms = 0 } = {}) {
    const from = this.#clocks.get(who) ?? { mono_ms: 0, wall_ms: 0 };
    const shift = { mono_ms: from.mono_ms + mono_ms, wall_ms: from.wall_ms + wall_ms };
    this.#clocks.set(who, shift);
    return shift;
  }

  #now(at_ms, who) {
    const { mono_ms, wall_ms } = this.#shift(who);
    return { monoNs: nanoseconds(at_ms + mono_ms), wallNs: nanoseconds(WALL_MS + at_ms + wall_ms) };
  }
}

/** What a host keeps for its candidate. */
class Host {
  #elector;
  #hasStoreClock;
  #salt = 1n;
  /** As last announced. */
  #elected;
  /** The last one drawn. */
  #op;
  #requests = new Map();

  constructor({ holder, instance, authority }, timing, now) {
    this.#hasStoreClock = authority !== 'local';
    const config = new Config({
      holder,
      instance: BigInt(`0x${instance}`),
      timing,
      authority: this.#hasStoreClock
        ? { errorNs: nanoseconds(authority.store_clock_error_ms) }
        : 'LocalObservation',
      clocks: { wall: true, resolutionNs: nanoseconds(1) },
    });
    this.#elector = new Elector(config, NAME, now, this.#salt);
  }

  step(now, input) {
    return this.#elector.stepBytes(wire.encodeInput(now, input));
  }

  input(step, key, at_ms) {
    if ('answer' in step) return this.#done(step);
    const { input } = step;
    const token = this.#elected;
    switch (input) {
      case 'tick':
        return { type: 'Tick' };
      case 'resign':
        return { type: 'Resign' };
      case 'stop':
        return { type: 'Stop' };
      case 'disrupted':
        return { type: 'Disrupted' };
      case 'sealed':
        return { type: 'Sealed', token };
      case 'drained':
        return { type: 'Drained', token };
      default:
        return this.#fields(Object.entries(input), key, at_ms);
    }
  }

  #fields([[word, value], ...more], key, at_ms) {
    assert.deepEqual(more, []);
    switch (word) {
      case 'resign':
        return { type: 'Resign', to: value };
      case 'seal_refused':
        return {
          type: 'SealRefused',
          token: this.#elected,
          floor: value === null ? undefined : BigInt(value),
        };
      case 'hint':
        return { type: 'Hint', entry: this.#hint(value, key, at_ms) };
      case 'adopt':
        return { type: 'Adopt', token: token(value) };
      default:
        assert.fail(`no such input: ${word}`);
    }
  }

  #done({ answer, op = this.#op }) {
    const request = this.#requests.get(op);
    assert.ok(request, `no request ${op} was made`);
    if (answer === 'performed') assert.ok(request.kept, `request ${op} was never performed`);
    const outcome = answer === 'performed' ? request.kept : { type: pascal(answer) };
    this.#salt += 1n;
    return { type: 'Done', op, outcome, salt: this.#salt };
  }

  #hint(hint, key, at_ms) {
    if (hint === 'nothing') return undefined;
    if (hint === 'key') return this.#entry(key.read(at_ms), 'none');
    if ('patch' in hint) {
      return this.#entry({ ...key.read(at_ms), value: key.patched(hint.patch) }, 'none');
    }
    return this.#entry({ value: key.bytes(hint), version: new Uint8Array(8) }, 'none');
  }

  #entry(found, age) {
    if (found === undefined) return undefined;
    const ages = { none: undefined, exact: nanoseconds(found.age_ms ?? 0), dead: DEAD };
    return this.#elector.entry(found.value, found.version, ages[age]);
  }

  act({ event, request }) {
    if (event?.type === 'Elected') this.#elected = event.token;
    if (request === undefined) return;
    this.#op = request.op;
    this.#requests.set(request.op, { body: request.body, value: this.#elector.value() });
  }

  perform(key, at_ms, { op = this.#op, age = this.#hasStoreClock ? 'exact' : 'none' }) {
    const request = this.#requests.get(op);
    if (request.body.type === 'Write') {
      const version = key.write(at_ms, request.body.expect, request.value);
      request.kept = version === undefined ? { type: 'Conflict' } : { type: 'Applied', version };
    } else {
      const entry = this.#entry(key.read(at_ms), age);
      request.kept = entry === undefined ? { type: 'Absent' } : { type: 'Entry', entry };
    }
  }

  /** As vectors spell it; what is written must be what was drafted. */
  request({ request }) {
    if (request === undefined) {
      assert.equal(this.#elector.value(), undefined);
      return null;
    }
    if (request.body.type === 'Read') return 'read';
    const { token, kind, instance, ttlMs, attempt } = request.body.draft;
    const { type, record: written } = record.decode(NAME, this.#elector.value());
    assert.equal(type, 'Record');
    assert.deepEqual(
      [`${written.lineage}/${written.term}/${written.nonce}`, written.state, written.ttl_ms],
      [token, kind.toLowerCase(), ttlMs],
    );
    assert.deepEqual([written.instance, written.attempt], [hex(instance), hex(attempt)]);
    return { write: written.state, term: written.term, to: written.to };
  }

  may(now, { may_start, may_finish }) {
    if (may_start !== undefined) assert.equal(this.#elector.mayStart(now), may_start, 'may_start');
    if (may_finish !== undefined) {
      assert.equal(this.#elector.mayFinish(now), may_finish, 'may_finish');
    }
  }
}

/** What is not demanded may be anything. */
function demand(demanded, found, what) {
  if (demanded === null || typeof demanded !== 'object') {
    assert.deepEqual(found, demanded, what);
    return;
  }
  for (const [key, part] of Object.entries(demanded)) {
    assert.ok(found !== null && key in Object(found), `${what}: ${JSON.stringify(found)}`);
    demand(part, found[key], `${what}.${key}`);
  }
}

function event({ event }) {
  switch (event?.type) {
    case undefined:
      return null;
    case 'Standby':
      return { standby: { holder: event.owner.holder, alive: event.alive } };
    case 'Leading':
    case 'RenewalLate':
      return { [snake(event.type)]: { stop_at_ms: milliseconds(event.stopAt) } };
    case 'Renewed':
      return { renewed: { until_ms: milliseconds(event.until) } };
    case 'Demoted':
      return { demoted: { reason: event.reason, to: event.to ?? '' } };
    case 'Ended':
      return { ended: { how: event.how } };
    case 'StoreFault':
      return { store_fault: { name: event.fault.type } };
    default:
      return { [snake(event.type)]: {} };
  }
}

function wake({ wake }) {
  return wake.type === 'At' ? milliseconds(wake.at) : snake(wake.type);
}

/** All spans are in milliseconds. */
function timing({ ttl_ms, grace_ms, tolerated, drift_ppm, ...spans }) {
  const spanned = Object.entries(camel(spans, nanoseconds));
  const spelled = spanned.map(([key, span]) => [key.replace(/Ms$/, 'Ns'), span]);
  const whole = { ttlMs: ttl_ms, graceMs: grace_ms, tolerated, driftPpm: drift_ppm };
  return { ...whole, ...Object.fromEntries(spelled) };
}

function nanoseconds(ms) {
  return BigInt(ms) * 1_000_000n;
}

/** Rounded down. */
function milliseconds(ns) {
  return Number(ns / 1_000_000n);
}

function hex(number) {
  return number.toString(16).padStart(16, '0');
}

function pascal(word) {
  return word[0].toUpperCase() + word.slice(1);
}

function snake(name) {
  return name.replace(/(?<=.)[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}
