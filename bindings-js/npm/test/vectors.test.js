// The conformance vectors, through the package: the answers of the Rust rules, the component and
// the SQL.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { cases as fence } from './vectors/fence.js';
import { cases as lease } from './vectors/lease.js';
import { cases as record } from './vectors/record.js';
import { cases as timing } from './vectors/timing.js';

for (const [file, cases] of Object.entries({ fence, lease, record, timing })) {
  const path = new URL(`../../../tests/vectors/${file}.json`, import.meta.url);
  const vectors = JSON.parse(readFileSync(path, 'utf8'));
  describe(`${file}.json`, () => {
    test('no list is empty, so that nothing passes by not being there', () => {
      const lists = Object.entries(vectors).filter(([, list]) => Array.isArray(list));
      assert.ok(lists.length > 0);
      for (const [name, list] of lists) assert.notEqual(list.length, 0, name);
      for (const { name, steps, operations } of vectors.cases ?? []) {
        assert.ok((Array.isArray(steps) ? steps : operations).length > 0, name);
      }
    });
    for (const [name, run] of cases(vectors)) test(name, run);
  });
}
