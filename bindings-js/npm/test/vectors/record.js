// record.json: bytes that are records, and bytes that are none. The package writes records through
// an elector only (lease.json); here it reads them.

import assert from 'node:assert/strict';

import { record } from 'leasehold';

import { only, token } from './spelling.js';

export function* cases(vectors) {
  const { records, unwritable, refused } = only(vectors, 'records', 'unwritable', 'refused');
  for (const spelled of records) yield [spelled.name, () => read(spelled)];
  for (const spelled of unwritable) yield [spelled.name, () => refuse(spelled)];
  for (const spelled of refused) yield [spelled.name, () => fault(spelled)];
}

function read(spelled) {
  const { fields, bytes } = only(spelled, 'name', 'fields', 'bytes');
  const written = spell(fields);
  assert.equal(JSON.stringify(written), bytes);
  assert.deepEqual(record.decode(fields.name, encoded(bytes)), { type: 'Record', record: written });
}

function refuse(spelled) {
  const { fields } = only(spelled, 'name', 'fields');
  const bytes = encoded(JSON.stringify(spell(fields)));
  assert.equal(record.decode(fields.name, bytes).type, 'Malformed');
}

function fault(spelled) {
  const { bytes, hex, under, fault } = only(spelled, 'name', 'bytes', 'hex', 'under', 'fault');
  const value = hex === undefined ? encoded(bytes) : Uint8Array.from(Buffer.from(hex, 'hex'));
  const [[type, number]] = Object.entries(only(fault, 'Newer', 'Malformed'));
  const expected = type === 'Newer' ? { format: BigInt(number.format) } : { offset: number.offset };
  // Any name will do where the bytes are no record at all.
  const name = under ?? 'settlement';
  assert.deepEqual(record.decode(name, value), { type, ...expected });
}

/** The record's keys in their order. */
function spell({ name, token: short, at_ms, expires_by_ms, ...fields }) {
  const [lineage, term, nonce] = token(short).split('/');
  const { state, holder, instance, ttl_ms, attempt, to, ask_id, ask_to, note } = fields;
  const at = at_ms === null ? '' : new Date(at_ms).toISOString();
  const acquired = { format: 1, name, lineage, term, nonce, state, holder, instance };
  return { ...acquired, ttl_ms, attempt, to, ask_id, ask_to, at, expires_by: expires_by_ms, note };
}

function encoded(text) {
  return new TextEncoder().encode(text);
}
