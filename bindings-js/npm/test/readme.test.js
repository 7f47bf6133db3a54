import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

test('the example of the README leads', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, example] = readme.match(/```js\n(.*?)```/s);
  const file = new URL('../generated/readme.mjs', import.meta.url);
  writeFileSync(file, example);
  const said = execFileSync(process.execPath, [fileURLToPath(file)], { encoding: 'utf8', timeout: 20_000 });
  assert.match(said, /^leading [0-9a-f]{32}\/1\/[0-9a-f]{16}\n$/);
});
