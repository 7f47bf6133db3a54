// timing.json: budgets with their plans or refusals, and timings made by hand.

import assert from 'node:assert/strict';

import { timing } from 'leasehold';

import { camel, only } from './spelling.js';

/** All other numbers reach beyond what a JavaScript number keeps. */
const SMALL = ['ttl_ms', 'grace_ms', 'tolerated', 'standbys', 'drift_ppm'];

export function* cases(vectors) {
  const { budgets, timings } = only(vectors, 'budgets', 'timings');
  for (const spelled of budgets) yield [spelled.name, () => derive(spelled)];
  for (const spelled of timings) yield [spelled.name, () => check(spelled)];
}

function derive(spelled) {
  const { budget, plan, refusal } = only(spelled, 'name', 'budget', 'plan', 'refusal');
  const { authority, ...spans } = budget;
  const call = () => timing.derive({ ...values(spans), authority: authorityOf(authority) });
  if (refusal !== undefined) {
    refused(call, refusal);
    return;
  }
  const { timing: planned, ...promises } = plan;
  assert.deepEqual(call(), { timing: values(planned), ...values(promises) });
}

function check(spelled) {
  only(spelled, 'name', 'timing', 'resolution_ns', 'accepted', 'misuse');
  const made = values(spelled.timing);
  const call = () => timing.check(made, BigInt(spelled.resolution_ns));
  if (spelled.misuse !== undefined) {
    refused(call, spelled.misuse);
    return;
  }
  assert.equal(spelled.accepted, true);
  assert.deepEqual(call().timing, made);
}

function refused(call, spelled) {
  const [[constraint, fields], ...more] = Object.entries(spelled);
  const [nearest, ...others] = Object.values(fields);
  assert.deepEqual([more, others], [[], []]);
  assert.throws(call, (error) => {
    assert.ok(timing.isRefusal(error), error);
    assert.equal(error.constraint, constraint);
    assert.equal(error.nearest, nearest === undefined ? undefined : BigInt(nearest));
    return true;
  });
}

function authorityOf(spelled) {
  if (spelled === 'local') return 'LocalObservation';
  return { errorNs: BigInt(only(spelled, 'store_clock_error_ns').store_clock_error_ns) };
}

function values(spelled) {
  return camel(spelled, (value, key) => (SMALL.includes(key) ? value : BigInt(value)));
}
