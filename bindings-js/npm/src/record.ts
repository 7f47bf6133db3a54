/**
 * The lease record and its canonical bytes, which the core alone judges.
 *
 * @module
 */

import { bytes, text } from './check.js';
import { core } from './core.js';

/** The record's own keys, in order; empty texts where a state does not use one. */
export interface LeaseRecord {
  readonly format: 1;
  readonly name: string;
  readonly lineage: string;
  readonly term: string;
  readonly nonce: string;
  readonly state: 'held' | 'offered' | 'released';
  readonly holder: string;
  readonly instance: string;
  readonly ttl_ms: number;
  readonly attempt: string;
  readonly to: string;
  readonly ask_id: string;
  readonly ask_to: string;
  readonly at: string;
  readonly expires_by: string;
  readonly note: string;
}

/** A record, or why the bytes are none: of a later format, or not what leasehold writes. */
export type Content =
  | { readonly type: 'Record'; readonly record: LeaseRecord }
  | { readonly type: 'Newer'; readonly format: bigint }
  | { readonly type: 'Malformed'; readonly offset: number };

/** Reads what a store keeps under the key of the lease `name`: another lease's record is none. */
export function decode(name: string, value: Uint8Array): Content {
  const fault = core.recordFault(text(name, 'name'), bytes(value, 'value'));
  if (fault.length === 0) {
    const record: LeaseRecord = JSON.parse(new TextDecoder().decode(value));
    return { type: 'Record', record };
  }
  const [tag, number] = fault;
  return tag === 0n
    ? { type: 'Newer', format: number }
    : { type: 'Malformed', offset: Number(number) };
}
