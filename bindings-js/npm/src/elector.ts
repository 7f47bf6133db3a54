import { bool, bytes, object, optionalU64, text, u64 } from './check.js';
import { core } from './core.js';
import { errorNs, timingWords, type Authority, type Timing } from './timing.js';
import { decodeStep, encodeInput, type Entry, type Input, type Now, type Step } from './wire.js';
import { tokenText, type Token } from './words.js';

/** What the electors of one process share. */
export interface Options {
  /** Says to people who this process is. */
  readonly holder: string;
  /** 64 random bits, drawn at every start of a process: what decisions compare. */
  readonly instance: bigint;
  readonly timing: Timing;
  readonly authority: Authority;
  /** What this host's clocks can do. */
  readonly clocks: Clocks;
}

export interface Clocks {
  /** Whether every sample carries `wallNs`. */
  readonly wall: boolean;
  /** The coarsest step of either clock. */
  readonly resolutionNs: bigint;
}

export type State =
  | 'Observing'
  | 'Standby'
  | 'Campaigning'
  | 'Confirming'
  | 'Sealing'
  | 'Leading'
  | 'Draining'
  | 'Releasing'
  | 'Stopped';

type ConfigHandle = InstanceType<typeof core.Config>;
type ElectorHandle = InstanceType<typeof core.Elector>;

/** For this module only. */
let handleOf: (config: Config) => ConfigHandle;

/** Checked {@link Options}. */
export class Config {
  #handle: ConfigHandle;

  static {
    handleOf = (config) => {
      if (#handle in object(config, 'config')) return config.#handle;
      throw new TypeError('config must be a Config: make one with `new Config(options)`');
    };
  }

  /** Throws a `Refusal` for a timing that does not work. */
  constructor(options: Options) {
    const { holder, instance, timing, authority, clocks } = object(options, 'options');
    const { wall, resolutionNs } = object(clocks, 'clocks');
    this.#handle = new core.Config(
      text(holder, 'holder'),
      u64(instance, 'instance'),
      timingWords(timing),
      errorNs(authority),
      bool(wall, 'clocks.wall'),
      u64(resolutionNs, 'clocks.resolutionNs'),
    );
  }
}

/**
 * One candidate for one lease: the core's machine. One input, one plain answer; no clock, no store,
 * no timer, no callback. It is never saved and never restored.
 */
export class Elector {
  #handle: ElectorHandle | undefined;

  /** A candidate that knows nothing. `salt`: 64 fresh random bits. */
  constructor(config: Config, name: string, now: Now, salt: bigint) {
    const [monoNs, wallNs] = sample(now);
    this.#handle = new core.Elector(
      handleOf(config),
      text(name, 'name'),
      monoNs,
      wallNs,
      u64(salt, 'salt'),
    );
  }

  /** The lease's key in the store. */
  get key(): string {
    return this.#live.key();
  }

  get state(): State {
    return this.#live.state() as State;
  }

  /** The token of the term, from `Elected` to `Ended`. */
  get token(): Token | undefined {
    const words = this.#live.token();
    if (words.length === 0) return undefined;
    const [high, low, term, nonce] = words;
    return tokenText(high, low, term, nonce);
  }

  /** Takes one input at one sample of the clocks. An input that is wrong changes nothing. */
  step(now: Now, input: Input): Step {
    return decodeStep(this.stepBytes(encodeInput(now, input)));
  }

  /** {@link step} on the wire's bytes, for traces and tapes. */
  stepBytes(input: Uint8Array): Uint8Array {
    return this.#live.step(bytes(input, 'input'));
  }

  /** After a step that asks for a write: what to write. */
  value(): Uint8Array | undefined {
    return this.#live.value();
  }

  /**
   * What the key was found to hold, for an input.
   *
   * `version`: what names this state of the key, at most 40 bytes. `ageNs`: by the store's own
   * clock; 2^64-1 where it knows that the writer is dead.
   */
  entry(value: Uint8Array, version: Uint8Array, ageNs?: bigint): Entry {
    const age = optionalU64(ageNs, 'ageNs');
    return this.#live.entry(bytes(value, 'value'), bytes(version, 'version'), age) as Entry;
  }

  /** Whether work may start: leading, and before `stopAt`. */
  mayStart(now: Now): boolean {
    return this.#live.mayStart(...sample(now));
  }

  /** Whether started work may still finish: leading or draining, and before `validUntil`. */
  mayFinish(now: Now): boolean {
    return this.#live.mayFinish(...sample(now));
  }

  /** Nanoseconds until `stopAt`; 0 where nothing may start. */
  remainingNs(now: Now): bigint {
    return this.#live.remainingNs(...sample(now));
  }

  /** When nothing may start any more; none where nothing is held. */
  stopAt(now: Now): bigint | undefined {
    return this.#live.stopAt(...sample(now));
  }

  /** When nothing may finish any more; none where nothing is held. */
  validUntil(now: Now): bigint | undefined {
    return this.#live.validUntil(...sample(now));
  }

  /** Gives its memory back at once, rather than when it is collected. */
  free(): void {
    this.#handle?.free();
    this.#handle = undefined;
  }

  get #live(): ElectorHandle {
    if (this.#handle === undefined) throw new Error('this elector was freed: make a new one');
    return this.#handle;
  }
}

function sample(now: Now): [bigint, bigint | undefined] {
  return [u64(object(now, 'now').monoNs, 'now.monoNs'), optionalU64(now.wallNs, 'now.wallNs')];
}
