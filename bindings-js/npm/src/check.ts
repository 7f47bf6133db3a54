// Arguments, checked before they cross into wasm: there a wrong one would be read as some other.

const MAX_U32 = 2 ** 32 - 1;
const MAX_U64 = 2n ** 64n - 1n;

/** A whole number below 2^64. */
export function u64(value: bigint, what: string): bigint {
  if (typeof value === 'bigint' && value >= 0n && value <= MAX_U64) return value;
  throw wrong(value, what, 'a bigint from 0n to 2n ** 64n - 1n');
}

/** A whole number below 2^32. */
export function u32(value: number, what: string): number {
  if (Number.isInteger(value) && value >= 0 && value <= MAX_U32) return value;
  throw wrong(value, what, 'a whole number from 0 to 2 ** 32 - 1');
}

export function optionalU64(value: bigint | undefined, what: string): bigint | undefined {
  return value === undefined ? undefined : u64(value, what);
}

export function text(value: string, what: string): string {
  if (typeof value === 'string') return value;
  throw wrong(value, what, 'a string');
}

export function bool(value: boolean, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw wrong(value, what, 'true or false');
}

/** What the engine itself says of a typed array, whatever a subclass or an own field says. */
const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const internal = (name: string) =>
  Object.getOwnPropertyDescriptor(typedArray, name)!.get! as (this: Uint8Array) => unknown;
const brand = internal(Symbol.toStringTag as unknown as string);
const bufferOf = internal('buffer');
const offsetOf = internal('byteOffset');
const lengthOf = internal('byteLength');

/** A plain view of the same bytes: a length that lies would be written past its room in wasm. */
export function bytes(value: Uint8Array, what: string): Uint8Array {
  // Not `instanceof`: test runners hand arrays from one realm to code in another.
  if (ArrayBuffer.isView(value) && brand.call(value) === 'Uint8Array') {
    const length = lengthOf.call(value) as number;
    return new Uint8Array(bufferOf.call(value) as ArrayBuffer, offsetOf.call(value) as number, length);
  }
  throw wrong(value, what, 'a Uint8Array');
}

/** Anything with fields. */
export function object<T extends object>(value: T, what: string): T {
  if (typeof value === 'object' && value !== null) return value;
  throw wrong(value, what, 'an object');
}

/** What to throw at a choice that the types rule out, and plain JavaScript does not. */
export function noSuch(choice: never, what: string): TypeError {
  return wrong((choice as { type: unknown }).type, what, 'one of those that its type lists');
}

function wrong(value: unknown, what: string, wanted: string): TypeError {
  return new TypeError(`${what} must be ${wanted}; it is ${describe(value)}`);
}

function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' || typeof value === 'bigint') return `the ${typeof value} ${value}`;
  return value === null ? 'null' : typeof value;
}
