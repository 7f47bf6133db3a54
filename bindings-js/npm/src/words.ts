// Texts as 64-bit words and back. The core checks them; here they are only spelled.

import { text } from './check.js';
import { core } from './core.js';

/** A fencing token, `lineage/term/nonce`: 32 hex digits, a decimal number, 16 hex digits. */
export type Token = string;

/** A SHA-256 as 64 lower-case hex digits. */
export type Digest = string;

/** Throws where it is none. */
export function tokenWords(token: Token, what: string): BigUint64Array {
  return core.parseToken(text(token, what));
}

export function tokenText(high: bigint, low: bigint, term: bigint, nonce: bigint): Token {
  return `${hex(high)}${hex(low)}/${term}/${hex(nonce)}`;
}

/** Throws where it is none. */
export function digestWords(digest: Digest | undefined, what: string): BigUint64Array {
  return digest === undefined ? new BigUint64Array() : core.parseDigest(text(digest, what));
}

/** None without words. */
export function digestText(words: BigUint64Array): Digest | undefined {
  return words.length === 0 ? undefined : Array.from(words, hex).join('');
}

function hex(word: bigint): string {
  return word.toString(16).padStart(16, '0');
}
