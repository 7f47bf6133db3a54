// The conformance vectors, through the package: the answers of the Rust rules, the component and
// the SQL.

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
    for (const [name, run] of cases(vectors)) test(name, run);
  });
}
