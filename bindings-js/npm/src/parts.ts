// The parts that wire messages are made of: numbers with the highest byte first, texts and bytes
// behind their length.

import { bytes, optionalU64, text, u32, u64 } from './check.js';
import { core } from './core.js';
import { tokenText, tokenWords, type Token } from './words.js';

/** No message is longer. */
const MAX_LEN = 2048 + 128;
const MAX_VERSION_LEN = 40;

/**
 * Room for the message being written, of which there is one at a time; and for one that is too
 * long, which the core refuses.
 */
const room = new Uint8Array(2 * MAX_LEN);
let taken = false;

export class Writer {
  readonly #buffer: Uint8Array;
  readonly #view: DataView;
  #length = 0;

  private constructor(buffer: Uint8Array) {
    this.#buffer = buffer;
    this.#view = new DataView(buffer.buffer);
  }

  /** One message. A getter among its fields may write another meanwhile, in room of its own. */
  static message(write: (to: Writer) => void): Uint8Array {
    const owns = !taken;
    const to = new Writer(owns ? room : new Uint8Array(room.length));
    taken = true;
    try {
      write(to);
      return to.written();
    } finally {
      if (owns) taken = false;
    }
  }

  written(): Uint8Array {
    return this.#buffer.slice(0, this.#length);
  }

  u8(value: number): void {
    this.#view.setUint8(this.#length, value);
    this.#length += 1;
  }

  u32(value: number, what: string): void {
    this.#view.setUint32(this.#length, u32(value, what));
    this.#length += 4;
  }

  u64(value: bigint, what: string): void {
    this.#view.setBigUint64(this.#length, u64(value, what));
    this.#length += 8;
  }

  optional<T>(value: T | undefined, write: (value: T) => void): void {
    this.u8(value === undefined ? 0 : 1);
    if (value !== undefined) write(value);
  }

  optionalU64(value: bigint | undefined, what: string): void {
    this.optional(optionalU64(value, what), (value) => this.u64(value, what));
  }

  bytes(value: Uint8Array, what: string): void {
    if (bytes(value, what).length > MAX_LEN) {
      throw new TypeError(`${what} is too long: give what \`Elector.entry\` gave`);
    }
    this.#buffer.set(value, this.#length);
    this.#length += value.length;
  }

  version(value: Uint8Array, what: string): void {
    if (bytes(value, what).length > MAX_VERSION_LEN) {
      throw new TypeError(`${what} has more than ${MAX_VERSION_LEN} bytes: give a shorter one`);
    }
    this.u8(value.length);
    this.bytes(value, what);
  }

  label(value: string, what: string): void {
    core.checkLabel(text(value, what));
    this.u8(value.length);
    for (let at = 0; at < value.length; at += 1) this.u8(value.charCodeAt(at));
  }

  token(value: Token): void {
    for (const word of tokenWords(value, 'input.token')) this.u64(word, 'input.token');
  }
}

export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;

  constructor(message: Uint8Array) {
    this.#bytes = message;
    this.#view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  }

  /** What to throw at bytes that are no step. */
  malformed(): Error {
    return new Error(
      `not a step as this version of leasehold writes it (near byte ${this.#offset}): it was cut ` +
        'or changed, is an input, or comes from another version',
    );
  }

  end(): void {
    if (this.#offset !== this.#bytes.length) throw this.malformed();
  }

  u8(): number {
    return this.#view.getUint8(this.#skip(1));
  }

  u32(): number {
    return this.#view.getUint32(this.#skip(4));
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#skip(8));
  }

  u128(): bigint {
    return (this.u64() << 64n) | this.u64();
  }

  bool(): boolean {
    const byte = this.u8();
    if (byte > 1) throw this.malformed();
    return byte === 1;
  }

  optional<T>(read: (from: Reader) => T): T | undefined {
    return this.bool() ? read(this) : undefined;
  }

  oneOf<T>(names: readonly T[]): T {
    const name = names[this.u8()];
    if (name === undefined) throw this.malformed();
    return name;
  }

  /** Borrowed from the message. */
  prefixed(): Uint8Array {
    const length = this.u8();
    const start = this.#skip(length);
    return this.#bytes.subarray(start, start + length);
  }

  label(): string {
    return String.fromCharCode(...this.prefixed());
  }

  token(): Token {
    return tokenText(this.u64(), this.u64(), this.u64(), this.u64());
  }

  /** Where the next `count` bytes begin. */
  #skip(count: number): number {
    const start = this.#offset;
    if (start + count > this.#bytes.length) throw this.malformed();
    this.#offset += count;
    return start;
  }
}
