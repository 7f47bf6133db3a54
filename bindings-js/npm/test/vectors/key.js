// The store of a lease vector: one linearizable key, changed by candidates and by anybody's hand.

import assert from 'node:assert/strict';

import { only, token } from './spelling.js';

/** The keys of a record, in the order of its bytes, and what a vector may leave out. */
const RECORD = {
  format: 1,
  name: '',
  lineage: '',
  term: '',
  nonce: '',
  state: 'held',
  holder: 'rival',
  instance: '00000000000000bb',
  ttl_ms: 10000,
  attempt: '0000000000000022',
  to: '',
  ask_id: '',
  ask_to: '',
  at: '',
  expires_by: '',
  note: '',
};

export class Key {
  #record;
  #held;
  #kept;
  #writes = 0n;

  constructor(name) {
    this.#record = { ...RECORD, name };
  }

  edit(at_ms, edit) {
    if (edit === 'delete') this.#held = undefined;
    else if (edit === 'keep') this.#kept = this.#held?.value;
    else if (edit === 'restore') this.#restore(at_ms);
    else if ('put' in edit) this.#put(at_ms, this.bytes(only(edit, 'put').put));
    else if ('patch' in edit) this.#put(at_ms, this.patched(only(edit, 'patch').patch));
    else this.#put(at_ms, this.bytes(edit));
  }

  read(at_ms) {
    if (this.#held === undefined) return undefined;
    const { value, version, since_ms } = this.#held;
    return { value, version, age_ms: at_ms - since_ms };
  }

  /** The new version; none: the key is not as expected. */
  write(at_ms, expect, value) {
    const { version } = this.#held ?? {};
    if (!same(version, expect)) return undefined;
    return this.#put(at_ms, value);
  }

  /** The bytes as they would be with some fields changed. */
  patched(changes) {
    const held = JSON.parse(new TextDecoder().decode(this.#held.value));
    return this.#encode({ ...held, ...this.#fields(changes) });
  }

  /** The bytes of a record, or those that are spelled out. */
  bytes(spelled) {
    if ('bytes' in spelled) return new TextEncoder().encode(only(spelled, 'bytes').bytes);
    assert.ok('token' in spelled, 'a record without a token');
    return this.#encode({ ...this.#record, ...this.#fields(spelled) });
  }

  #fields({ token: short, ...fields }) {
    only(fields, ...Object.keys(RECORD));
    if (short === undefined) return fields;
    const [lineage, term, nonce] = token(short).split('/');
    return { ...fields, lineage, term, nonce };
  }

  #encode(fields) {
    return new TextEncoder().encode(JSON.stringify(fields));
  }

  #restore(at_ms) {
    if (this.#kept === undefined) this.#held = undefined;
    else this.#put(at_ms, this.#kept);
  }

  #put(at_ms, value) {
    this.#writes += 1n;
    const version = new Uint8Array(8);
    new DataView(version.buffer).setBigUint64(0, this.#writes);
    this.#held = { value, version, since_ms: at_ms };
    return version;
  }
}

function same(version, other) {
  if (version === undefined || other === undefined) return version === other;
  return Buffer.from(version).equals(other);
}
