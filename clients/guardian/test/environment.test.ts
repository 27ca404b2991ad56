// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { limitsFrom, runtimeFrom } from '../src/environment.js';

test('maps the modes of Guardian to runtimes', () => {
  assert.equal(runtimeFrom({}), 'cpython');
  assert.equal(runtimeFrom({ PYTHON_SANDBOX_MODE: 'pyodide' }), 'cpython');
  assert.equal(runtimeFrom({ PYTHON_SANDBOX_MODE: 'docker' }), 'oci');
  assert.equal(runtimeFrom({ PYTHON_SANDBOX_MODE: 'native' }), 'native');
  assert.throws(() => runtimeFrom({ PYTHON_SANDBOX_MODE: 'dcoker' }), /PYTHON_SANDBOX_MODE value: dcoker/);
});

test('reads limits, each where it counts', () => {
  const environment = {
    PYTHON_SANDBOX_TIMEOUT_MS: '5000', PYTHON_SANDBOX_HEAP_MB: '300', PYTHON_SANDBOX_MEMORY: '1g',
    PYTHON_SANDBOX_PIDS: '12',
  };
  assert.deepEqual(limitsFrom(environment, 'cpython'), { wall_ms: 5000, memory_bytes: 300 << 20 });
  assert.deepEqual(limitsFrom(environment, 'oci'), { wall_ms: 5000, memory_bytes: 1 << 30, pids: 12 });
  assert.deepEqual(limitsFrom({}, 'cpython'), { wall_ms: 120_000 });
});

test('refuses what is malformed in the words that Guardian uses', () => {
  for (const text of ['', '0', '-1', '1.5', 'soon', '1e3']) {
    assert.throws(() => limitsFrom({ PYTHON_SANDBOX_TIMEOUT_MS: text }, 'cpython'),
      { message: 'PYTHON_SANDBOX_TIMEOUT_MS is not configured (must be a positive integer)' });
  }
  assert.throws(() => limitsFrom({ PYTHON_SANDBOX_MEMORY: '1x' }, 'oci'), { message: 'Invalid PYTHON_SANDBOX_MEMORY value: 1x' });
  assert.throws(() => limitsFrom({ PYTHON_SANDBOX_PIDS: 'x' }, 'oci'), { message: 'Invalid PYTHON_SANDBOX_PIDS value: x' });
});
