/**
 * The spans of a lease: derived from what it has to achieve, or from a ttl; and what they have to
 * satisfy. Nanoseconds, but for the two that stand in records.
 *
 * @module
 */

import { object, u32, u64 } from './check.js';
import { core } from './core.js';

/** The spans of a lease; the core's `Timing`. */
export interface Timing {
  /** How long others believe this holder without a renewal. */
  readonly ttlMs: number;
  /** From the send stamp of the confirmed attempt to the next renewal. */
  readonly renewNs: bigint;
  /** How long one request may take; at least the store's p99. */
  readonly attemptNs: bigint;
  /** Lost renewals in a row that cost nothing; at least 2. */
  readonly tolerated: number;
  /** A pause of the process that costs nothing. */
  readonly pauseNs: bigint;
  /** What ending the work takes. */
  readonly drainNs: bigint;
  /** Covers the coarsest clock of any party and the time from a question to its effect. */
  readonly guardNs: bigint;
  /** How often a candidate looks at the record. */
  readonly pollNs: bigint;
  /** The shortest wait of a candidate after a failure. */
  readonly retryNs: bigint;
  /** How long sealing may take before the lease is given up. */
  readonly sealWithinNs: bigint;
  /** How long an offer is kept for the one it is made to. */
  readonly graceMs: number;
  /** How long this instance stays away after resigning or failing to seal. */
  readonly sitOutNs: bigint;
  /** The bound on every party's clock rate, in parts per million. */
  readonly driftPpm: number;
}

/** Whose word decides that another party's lease is over. */
export type Authority = 'LocalObservation' | StoreClock;

/** The store's clock: the age that it computes itself. */
export interface StoreClock {
  /** Bounds every step of that clock, and the difference between servers. */
  readonly errorNs: bigint;
}

/** What a lease has to achieve, and where it lives. */
export interface Budget {
  /** A holder that died is replaced within this. */
  readonly detectionNs: bigint;
  /** The median of one store operation, from the farthest place that uses it. */
  readonly p50Ns: bigint;
  /** The 99th percentile of the same. */
  readonly p99Ns: bigint;
  /** A pause of the process that is to cost nothing. */
  readonly pauseNs: bigint;
  /** What ending the work takes. */
  readonly drainNs: bigint;
  /** Lost renewals in a row that are to cost nothing; at least 2. */
  readonly tolerated: number;
  /** How many other candidates watch the lease. */
  readonly standbys: number;
  /** The bound on every party's clock rate, in parts per million. */
  readonly driftPpm: number;
  /** The coarsest step of any party's clocks. */
  readonly resolutionNs: bigint;
  readonly authority: Authority;
}

/** A timing and what follows from it. */
export interface Plan {
  readonly timing: Timing;
  /** The longest time from the last sign of a holder that died to the next one elected. */
  readonly takeoverNs: bigint;
  /** From the send stamp of the last confirmed renewal to the end of new work. */
  readonly selfFenceNs: bigint;
  /** The longest pause that costs nothing, even with `timing.tolerated` renewals lost. */
  readonly pauseNs: bigint;
  /** Lost renewals in a row that cost nothing, even with a pause of `timing.pauseNs`. */
  readonly lostRenewals: bigint;
  /** Store operations of the holder: at most, while none fails. */
  readonly holderPerHour: bigint;
  /** Store operations of all standbys together: at most, while none fails. */
  readonly standbysPerHour: bigint;
}

/** What is thrown at spans or a budget that do not work. The message says the same in words. */
export interface Refusal extends RangeError {
  /** The first constraint that fails: a variant of the core's `Refusal` or `Misuse`. */
  readonly constraint: string;
  /** The nearest value that satisfies it, in the unit of what it constrains. */
  readonly nearest: bigint | undefined;
}

/** Whether something that was thrown is a {@link Refusal}. */
export function isRefusal(error: unknown): error is Refusal {
  return error instanceof RangeError && 'constraint' in error;
}

/** The spans for a budget. Throws a {@link Refusal} where there are none. */
export function derive(budget: Budget): Plan {
  const words = BigUint64Array.of(
    u64(object(budget, 'budget').detectionNs, 'budget.detectionNs'),
    u64(budget.p50Ns, 'budget.p50Ns'),
    u64(budget.p99Ns, 'budget.p99Ns'),
    u64(budget.pauseNs, 'budget.pauseNs'),
    u64(budget.drainNs, 'budget.drainNs'),
    BigInt(u32(budget.tolerated, 'budget.tolerated')),
    BigInt(u32(budget.standbys, 'budget.standbys')),
    BigInt(u32(budget.driftPpm, 'budget.driftPpm')),
    u64(budget.resolutionNs, 'budget.resolutionNs'),
  );
  return plan(core.derive(words, errorNs(budget.authority)));
}

/** The spans that go with a ttl, a drain and a guard; {@link check} refuses what does not fit. */
export function fromTtl(
  ttlMs: number,
  drainNs: bigint,
  guardNs: bigint,
  driftPpm: number,
): Timing {
  const [ttl, ppm] = [u32(ttlMs, 'ttlMs'), u32(driftPpm, 'driftPpm')];
  return timing(core.fromTtl(ttl, u64(drainNs, 'drainNs'), u64(guardNs, 'guardNs'), ppm));
}

/**
 * Whether these spans work together, on clocks whose coarsest step is `resolutionNs`: throws a
 * {@link Refusal} or says what they do.
 */
export function check(
  timing: Timing,
  resolutionNs: bigint,
  authority: Authority = 'LocalObservation',
  standbys = 0,
): Plan {
  const words = timingWords(timing);
  const resolution = u64(resolutionNs, 'resolutionNs');
  return plan(core.check(words, resolution, errorNs(authority), u32(standbys, 'standbys')));
}

/** For a configuration. */
export function timingWords(timing: Timing): BigUint64Array {
  return BigUint64Array.of(
    BigInt(u32(object(timing, 'timing').ttlMs, 'timing.ttlMs')),
    u64(timing.renewNs, 'timing.renewNs'),
    u64(timing.attemptNs, 'timing.attemptNs'),
    BigInt(u32(timing.tolerated, 'timing.tolerated')),
    u64(timing.pauseNs, 'timing.pauseNs'),
    u64(timing.drainNs, 'timing.drainNs'),
    u64(timing.guardNs, 'timing.guardNs'),
    u64(timing.pollNs, 'timing.pollNs'),
    u64(timing.retryNs, 'timing.retryNs'),
    u64(timing.sealWithinNs, 'timing.sealWithinNs'),
    BigInt(u32(timing.graceMs, 'timing.graceMs')),
    u64(timing.sitOutNs, 'timing.sitOutNs'),
    BigInt(u32(timing.driftPpm, 'timing.driftPpm')),
  );
}

/** For a configuration. None: local observation decides. */
export function errorNs(authority: Authority): bigint | undefined {
  if (authority === 'LocalObservation') return undefined;
  const clock = object(authority, "authority, if not 'LocalObservation',");
  return u64(clock.errorNs, 'authority.errorNs');
}

const TIMING_WORDS = 13;

function timing(words: BigUint64Array): Timing {
  const [
    ttlMs,
    renewNs,
    attemptNs,
    tolerated,
    pauseNs,
    drainNs,
    guardNs,
    pollNs,
    retryNs,
    sealWithinNs,
    graceMs,
    sitOutNs,
    driftPpm,
  ] = words;
  return {
    ttlMs: Number(ttlMs),
    renewNs,
    attemptNs,
    tolerated: Number(tolerated),
    pauseNs,
    drainNs,
    guardNs,
    pollNs,
    retryNs,
    sealWithinNs,
    graceMs: Number(graceMs),
    sitOutNs,
    driftPpm: Number(driftPpm),
  };
}

function plan(words: BigUint64Array): Plan {
  const [takeoverNs, selfFenceNs, pauseNs, lostRenewals, holderPerHour, standbysPerHour] =
    words.subarray(TIMING_WORDS);
  return {
    timing: timing(words),
    takeoverNs,
    selfFenceNs,
    pauseNs,
    lostRenewals,
    holderPerHour,
    standbysPerHour,
  };
}
