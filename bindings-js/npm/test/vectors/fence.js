// fence.json: one resource, from a stored start through a sequence of operations.

import assert from 'node:assert/strict';

import { fence } from 'leasehold';

import { camel, digest, only, token } from './spelling.js';

export function* cases(vectors) {
  only(vectors, 'not_tokens', 'cases');
  yield ['not_tokens', () => vectors.not_tokens.forEach(refuse)];
  for (const spelled of vectors.cases) yield [spelled.name, () => play(spelled)];
}

function refuse(text) {
  assert.throws(() => fence.seal(fence.NEW, text), /^Error: not a token: expected /);
}

function play({ row, steps = {}, operations }) {
  const resource = { row: fenceRow(row), steps: new Map() };
  for (const [step, stored] of Object.entries(steps)) resource.steps.set(step, stepRow(stored));
  for (const operation of operations) {
    const expected = new Map(resource.steps);
    const stored = storedStep(operation);
    if (stored !== undefined) expected.set(operation.step, stored);

    assert.deepEqual(perform(resource, operation), verdict(operation.gives), said(operation));
    assert.deepEqual(resource.row, fenceRow(operation.row), said(operation));
    assert.deepEqual(resource.steps, expected, said(operation));
  }
}

/** As a host does: read the rows, ask the rule, store the rows. */
function perform(resource, operation) {
  const { row, steps } = resource;
  const advance = operation.proven === true ? 'proven' : undefined;
  const known = steps.get(operation.step);
  const verbs = {
    seal: (token) => fence.seal(row, token, advance),
    read: (token) => fence.read(row, token, advance),
    write: (token) => fence.admit(row, known, token, digest(operation.digest)),
    cancel: (token) => fence.cancel(row, known, token),
    retire: (token) => fence.retire(row, token),
    recover: (token) => fence.recover(row, token),
    adopt: (token) => fence.adopt(row, token),
  };
  const verb = Object.keys(verbs).find((verb) => verb in operation);
  only(operation, verb, 'proven', 'step', 'digest', 'gives', 'row');
  const answer = verbs[verb](token(operation[verb]));
  resource.row = answer.row ?? row;
  if (answer.step !== undefined && operation.step !== '') steps.set(operation.step, answer.step);
  return answer.verdict;
}

/** What the two verdicts that store a step have stored. */
function storedStep({ write, step, digest: short, gives }) {
  if (step === '' || !['Apply', 'Tombstoned'].includes(gives.verdict)) return undefined;
  const opDigest = write === undefined ? undefined : digest(short);
  return { opDigest, seq: BigInt(gives.seq), cancelled: write === undefined };
}

function fenceRow(spelled) {
  if (spelled === null) return undefined;
  const { token: short, retired, seq } = only(spelled, 'token', 'retired', 'seq');
  return { token: token(short), retired, seq: BigInt(seq) };
}

function stepRow({ op_digest, seq, cancelled }) {
  return { opDigest: digest(op_digest), seq: BigInt(seq), cancelled };
}

function verdict({ verdict: name, ...fields }) {
  return { name, ...camel(fields, (value) => (typeof value === 'string' ? BigInt(value) : value)) };
}

function said(operation) {
  return JSON.stringify(operation);
}
