/**
 * The elector's inputs and steps as bytes: version 1 of the core's `wire`, whose documentation has
 * the layout. Spans and instants are nanoseconds.
 *
 * @module
 */

import { bytes, noSuch, object } from './check.js';
import { Reader, Writer } from './parts.js';
import type { Token } from './words.js';

/** One sample of the clocks, taken for one input only. */
export interface Now {
  /** The monotonic clock, from an origin of the host's own. */
  readonly monoNs: bigint;
  /** Since 1970; required where the configuration declares a wall clock. */
  readonly wallNs?: bigint | undefined;
}

/** What a host tells an elector. */
export type Input =
  | { readonly type: 'Tick' | 'Stop' | 'Disrupted' }
  /** A request has ended. `salt`: 64 fresh random bits. */
  | { readonly type: 'Done'; readonly op: number; readonly outcome: Outcome; readonly salt: bigint }
  | { readonly type: 'Sealed' | 'Drained' | 'Adopt'; readonly token: Token }
  | {
      readonly type: 'SealRefused';
      readonly token: Token;
      /** From `Fenced` and `Collision` of the token's own lineage only. */
      readonly floor?: bigint | undefined;
    }
  /** `to`: label or instance (16 hex digits) of the one to offer the lease to. */
  | { readonly type: 'Resign'; readonly to?: string | undefined }
  | { readonly type: 'Hint'; readonly entry?: Entry | undefined };

/** How a request ended. */
export type Outcome =
  | { readonly type: 'Absent' | 'Conflict' | 'Undecided' | 'Unavailable' | 'Unknown' | 'Gone' }
  | { readonly type: 'Entry'; readonly entry: Entry }
  /** At most 40 bytes. */
  | { readonly type: 'Applied'; readonly version: Uint8Array };

/** What a key holds, as `Elector.entry` gives it. */
export type Entry = Uint8Array & { readonly [entry]: true };
declare const entry: unique symbol;

/** The answer to one input. */
export interface Step {
  /** To be performed and answered with `Done`; one at a time. */
  readonly request: Request | undefined;
  /** When to call again at the latest. */
  readonly wake: Wake;
  /** To be acted on before the next call. */
  readonly event: Event | undefined;
}

export interface Request {
  /** Comes back with the answer. */
  readonly op: number;
  /** After this the elector counts the answer as `Unknown` by itself. */
  readonly deadline: bigint;
  readonly body: Read | Write;
}

export interface Read {
  readonly type: 'Read';
}

/** `Elector.value` has the bytes to write. */
export interface Write {
  readonly type: 'Write';
  /** The version that the key must have; none: the key must be absent. */
  readonly expect: Uint8Array | undefined;
  readonly draft: Draft;
}

/** What a write says. */
export interface Draft {
  readonly token: Token;
  readonly kind: Kind;
  readonly instance: bigint;
  readonly ttlMs: number;
  readonly attempt: bigint;
  readonly atMs: bigint | undefined;
}

/** `Now`: with any input, at once. `At`: with `Tick`, then or earlier. `Idle`: with an input. */
export type Wake =
  | { readonly type: 'Now' | 'Idle' }
  | { readonly type: 'At'; readonly at: bigint };

/** What happened; the core's `Event`. */
export type Event =
  | { readonly type: 'Standby'; readonly owner: Owner; readonly alive: boolean }
  /** Seal every resource, then answer `Sealed` or `SealRefused`. */
  | { readonly type: 'Elected'; readonly token: Token }
  /** Work may start. */
  | { readonly type: 'Leading'; readonly token: Token; readonly stopAt: bigint }
  | { readonly type: 'Renewed'; readonly until: bigint }
  | { readonly type: 'RenewalLate'; readonly stopAt: bigint }
  /** End the work, then answer `Drained`. */
  | {
      readonly type: 'Demoted';
      readonly token: Token;
      readonly reason: Reason;
      readonly to: string | undefined;
    }
  /** Exactly one for each `Elected`. */
  | { readonly type: 'Ended'; readonly token: Token; readonly how: How }
  | { readonly type: 'StoreDown' | 'StoreUp' | 'Stopped' }
  | { readonly type: 'StoreFault'; readonly fault: StoreFault };

export interface Owner {
  readonly holder: string;
  readonly instance: bigint;
  readonly token: Token;
}

export type StoreFault =
  | { readonly type: 'RecordGone' | 'Exhausted' }
  | { readonly type: 'Malformed'; readonly offset: number }
  | { readonly type: 'Newer'; readonly format: bigint }
  /** Lineages as numbers of 128 bits. */
  | { readonly type: 'ForeignLineage'; readonly known: bigint; readonly found: bigint }
  | {
      readonly type: 'WentBack' | 'BeyondMaxAdvance';
      readonly floor: bigint;
      readonly found: bigint;
    };

export type Kind = (typeof KINDS)[number];
export type Reason = (typeof REASONS)[number];
export type How = (typeof HOWS)[number];

const KINDS = ['Held', 'Offered', 'Released'] as const;
const REASONS = [
  'DeadlinePassed',
  'RivalSeen',
  'Forced',
  'RecordGone',
  'Refused',
  'SealFailed',
  'Twin',
  'Disrupted',
  'Resigned',
  'Asked',
  'Stopped',
] as const;
const HOWS = ['Released', 'Offered', 'Expired', 'DrainTimeout', 'Lost'] as const;

const VERSION = 1;
const INPUT = 1;
const STEP = 2;

/** Throws a `TypeError` that names the argument which is wrong. */
export function encodeInput(now: Now, input: Input): Uint8Array {
  return Writer.message((to) => {
    to.u8(VERSION);
    to.u8(INPUT);
    to.u64(object(now, 'now').monoNs, 'now.monoNs');
    to.optionalU64(now.wallNs, 'now.wallNs');
    writeInput(to, object(input, 'input'));
  });
}

/** Throws for bytes that no elector gives. */
export function decodeStep(message: Uint8Array): Step {
  const from = new Reader(bytes(message, 'a step'));
  if (from.u8() !== VERSION || from.u8() !== STEP) throw from.malformed();
  const step = {
    request: from.optional(readRequest),
    wake: readWake(from),
    event: from.optional(readEvent),
  };
  from.end();
  return step;
}

function writeInput(to: Writer, input: Input): void {
  switch (input.type) {
    case 'Tick':
      return to.u8(0);
    case 'Done':
      to.u8(1);
      to.u32(input.op, 'input.op');
      writeOutcome(to, object(input.outcome, 'input.outcome'));
      return to.u64(input.salt, 'input.salt');
    case 'Sealed':
      to.u8(2);
      return to.token(input.token);
    case 'SealRefused':
      to.u8(3);
      to.token(input.token);
      return to.optionalU64(input.floor, 'input.floor');
    case 'Drained':
      to.u8(4);
      return to.token(input.token);
    case 'Resign':
      to.u8(5);
      return to.optional(input.to, (label) => to.label(label, 'input.to'));
    case 'Stop':
      return to.u8(6);
    case 'Disrupted':
      return to.u8(7);
    case 'Hint':
      to.u8(8);
      return to.optional(input.entry, (entry) => to.bytes(entry, 'input.entry'));
    case 'Adopt':
      to.u8(9);
      return to.token(input.token);
    default:
      throw noSuch(input, 'input.type');
  }
}

function writeOutcome(to: Writer, outcome: Outcome): void {
  switch (outcome.type) {
    case 'Absent':
      return to.u8(0);
    case 'Entry':
      to.u8(1);
      return to.bytes(outcome.entry, 'input.outcome.entry');
    case 'Applied':
      to.u8(2);
      return to.version(outcome.version, 'input.outcome.version');
    case 'Conflict':
      return to.u8(3);
    case 'Undecided':
      return to.u8(4);
    case 'Unavailable':
      return to.u8(5);
    case 'Unknown':
      return to.u8(6);
    case 'Gone':
      return to.u8(7);
    default:
      throw noSuch(outcome, 'input.outcome.type');
  }
}

function readRequest(from: Reader): Request {
  return { op: from.u32(), deadline: from.u64(), body: readBody(from) };
}

function readBody(from: Reader): Read | Write {
  switch (from.u8()) {
    case 0:
      return { type: 'Read' };
    case 1:
      return {
        type: 'Write',
        expect: from.optional((from) => from.prefixed().slice()),
        draft: readDraft(from),
      };
    default:
      throw from.malformed();
  }
}

function readDraft(from: Reader): Draft {
  return {
    token: from.token(),
    kind: from.oneOf(KINDS),
    instance: from.u64(),
    ttlMs: from.u32(),
    attempt: from.u64(),
    atMs: from.optional((from) => from.u64()),
  };
}

function readWake(from: Reader): Wake {
  switch (from.u8()) {
    case 0:
      return { type: 'Now' };
    case 1:
      return { type: 'At', at: from.u64() };
    case 2:
      return { type: 'Idle' };
    default:
      throw from.malformed();
  }
}

function readEvent(from: Reader): Event {
  switch (from.u8()) {
    case 0:
      return { type: 'Standby', owner: readOwner(from), alive: from.bool() };
    case 1:
      return { type: 'Elected', token: from.token() };
    case 2:
      return { type: 'Leading', token: from.token(), stopAt: from.u64() };
    case 3:
      return { type: 'Renewed', until: from.u64() };
    case 4:
      return { type: 'RenewalLate', stopAt: from.u64() };
    case 5:
      return {
        type: 'Demoted',
        token: from.token(),
        reason: from.oneOf(REASONS),
        to: from.optional((from) => from.label()),
      };
    case 6:
      return { type: 'Ended', token: from.token(), how: from.oneOf(HOWS) };
    case 7:
      return { type: 'StoreDown' };
    case 8:
      return { type: 'StoreUp' };
    case 9:
      return { type: 'StoreFault', fault: readStoreFault(from) };
    case 10:
      return { type: 'Stopped' };
    default:
      throw from.malformed();
  }
}

function readOwner(from: Reader): Owner {
  return { holder: from.label(), instance: from.u64(), token: from.token() };
}

function readStoreFault(from: Reader): StoreFault {
  switch (from.u8()) {
    case 0:
      return { type: 'RecordGone' };
    case 1:
      return { type: 'Malformed', offset: from.u32() };
    case 2:
      return { type: 'Newer', format: from.u64() };
    case 3:
      return { type: 'ForeignLineage', known: from.u128(), found: from.u128() };
    case 4:
      return { type: 'WentBack', floor: from.u64(), found: from.u64() };
    case 5:
      return { type: 'BeyondMaxAdvance', floor: from.u64(), found: from.u64() };
    case 6:
      return { type: 'Exhausted' };
    default:
      throw from.malformed();
  }
}
