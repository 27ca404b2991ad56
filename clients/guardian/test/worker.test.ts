// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { TIMED_OUT } from '../src/environment.js';
import type { Json } from '../src/protocol.js';
import { skip } from './binary.js';
import { startRun } from './host.js';

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a Guardian host with the worker thread', { skip }, () => {
  test('hands over the start data and gets the result', async () => {
    const run = startRun({
      execFunc: 'done({"who": user["did"], "n": table.num(table.cell({"type": "table", "fileId": "f"}, 0, "q")), "s": len(sources)})',
      user: { did: 'd' }, documents: [{}], sources: [{}, {}],
      tablesPack: { f: { rows: [{ q: '1,5' }], columnKeys: ['q'] } },
    });
    assert.deepEqual(await run.settled, { who: 'd', n: 1.5, s: 2 });
    assert.equal(await run.exited, 0);
  });

  test('two done calls in flight: the slow first one settles nothing, both have their event', async () => {
    const run = startRun({ execFunc: 'done("slow", final=False)\ndone("fast")' }, {
      sign: async (result: Json) => (result === 'slow' ? later(200).then(() => result) : result),
    });
    assert.equal(await run.settled, 'fast');
    await later(300);
    assert.deepEqual(run.events, ['fast', 'slow']);
  });

  test('a done call that fails rejects the run once', async () => {
    const run = startRun({ execFunc: 'done(1, final=False)\ndone(2)' }, {
      sign: async (result: Json) => {
        if (result === 1) throw new Error('schema');
        return later(100).then(() => result);
      },
    });
    await assert.rejects(run.settled, /schema/);
  });

  test('only non-final calls, and none at all, settle with null', async () => {
    const some = startRun({ execFunc: 'done(1, final=False)\ndebug({"a": None})' });
    assert.equal(await some.settled, null);
    assert.deepEqual(some.events, [1]);
    assert.deepEqual(some.debug, [{ a: null }]);
    assert.equal(await startRun({ execFunc: 'x = 1' }).settled, null);
  });

  test('an error carries the traceback and keeps the calls before it', async () => {
    const run = startRun({ execFunc: 'done(1, final=False)\ndef f():\n    raise ValueError("no")\nf()' });
    await assert.rejects(run.settled, /ValueError: no/);
    assert.deepEqual(run.events, [1]);
  });

  test('the limit on time is told in the words that Guardian matches', async () => {
    const run = startRun({ execFunc: 'while True: pass' }, { environment: { PYTHON_SANDBOX_TIMEOUT_MS: '300' } });
    await assert.rejects(run.settled, { message: TIMED_OUT });
    await run.exited;
  });

  test("the host's own timer ends the worker", async () => {
    const run = startRun({ execFunc: 'while True: pass' }, { timeoutMs: 1500, environment: { PYTHON_SANDBOX_TIMEOUT_MS: '10000' } });
    await assert.rejects(run.settled, { message: TIMED_OUT });
    assert.equal(await run.exited, 1);
  });

  test('a script that exits with a code rejects with it; with 0 it ends well', async () => {
    await assert.rejects(startRun({ execFunc: 'import sys\nsys.exit(3)' }).settled, /exited with code 3/);
    assert.equal(await startRun({ execFunc: 'import sys\nsys.exit(0)' }).settled, null);
  });

  test('a variable that is malformed rejects before anything runs', async () => {
    const run = startRun({ execFunc: 'done(1)' }, { environment: { PYTHON_SANDBOX_TIMEOUT_MS: 'x' } });
    await assert.rejects(run.settled, /PYTHON_SANDBOX_TIMEOUT_MS is not configured/);
  });
});
