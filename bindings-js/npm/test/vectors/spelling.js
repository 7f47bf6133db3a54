// How vectors spell what would be long.

import assert from 'node:assert/strict';

/** `a/5/1` repeats its digits; whatever is not that short stands for itself. */
export function token(short) {
  const [lineage, term, nonce, more] = short.split('/');
  const isShort = lineage.length === 1 && nonce?.length === 1 && more === undefined;
  return isShort ? `${lineage.repeat(32)}/${term}/${nonce.repeat(16)}` : short;
}

/** `d` repeats its digit; empty is none. */
export function digest(short) {
  return short === '' ? undefined : short.repeat(64);
}

/** A misspelled key would be a demand that is passed over in silence. */
export function only(object, ...keys) {
  const stray = Object.keys(object).filter((key) => !keys.includes(key));
  assert.deepEqual(stray, [], `none of ${keys}`);
  return object;
}

/** The same object with its keys in camel case, and each value as `read` makes it. */
export function camel(spelled, read) {
  const upper = (_, letter) => letter.toUpperCase();
  const entries = Object.entries(spelled).map(([key, value]) => {
    return [key.replace(/_(.)/g, upper), read(value, key)];
  });
  return Object.fromEntries(entries);
}
