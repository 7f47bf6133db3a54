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

export function bytes(value: Uint8Array, what: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw wrong(value, what, 'a Uint8Array');
}

/** For a choice that the types rule out, and plain JavaScript does not. */
export function noSuch(value: never, what: string): TypeError {
  return wrong(value, what, 'one of those that its type lists');
}

function wrong(value: unknown, what: string, wanted: string): TypeError {
  const spelled = typeof value === 'object' ? 'an object' : `${typeof value} ${String(value)}`;
  return new TypeError(`${what} must be ${wanted}; it is ${value === null ? 'null' : spelled}`);
}
