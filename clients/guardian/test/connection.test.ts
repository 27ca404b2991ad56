// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Connection, ConnectionError, RefusedError } from '../src/connection.js';
import type { Json } from '../src/protocol.js';
import { binary, skip } from './binary.js';

describe('a connection', { skip }, () => {
  let connection: Connection;
  before(() => void (connection = new Connection()));
  after(() => connection.close());

  async function run(script: string, documents: { [key: string]: Json }[] = []) {
    const results: [Json, boolean][] = [];
    const debug: Json[] = [];
    let stdout = '';
    const end = await connection.run({ script, documents }, {
      done: (result, final) => results.push([result, final]),
      debug: (value) => debug.push(value),
      stdout: (text) => void (stdout += text),
    });
    return { results, debug, stdout, end };
  }

  test('delivers results, debug values and prints', async () => {
    const { results, debug, stdout, end } = await run(
      'print("hi")\ndebug([1])\ndone({"n": len(documents)}, final=False)\ndone("é")', [{ a: 1 }, {}]);
    assert.deepEqual(results, [[{ n: 2 }, false], ['é', true]]);
    assert.deepEqual(debug, [[1]]);
    assert.equal(stdout, 'hi\n');
    assert.equal(end.settled_by, 'final_done');
  });

  test('joins a list that came in pieces', async () => {
    const { results } = await run('done([{"i": i, "pad": "x" * 100} for i in range(20000)])');
    const list = results[0]![0] as { i: number }[];
    assert.equal(list.length, 20000);
    assert.equal(list[19999]!.i, 19999);
  });

  test('tells the line of an error and keeps what was delivered before it', async () => {
    const { results, end } = await run('done(1, final=False)\n1 / 0');
    assert.deepEqual(results, [[1, false]]);
    assert.equal(end.error?.type, 'ZeroDivisionError');
    assert.equal(end.error?.line, 2);
  });

  test('carries many runs at once', async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, (_, i) => run(`done(${i})`)));
    assert.deepEqual(runs.map(({ results }) => results[0]![0]), Array.from({ length: 20 }, (_, i) => i));
  });

  test('cancels a run by its signal', async () => {
    const abort = new AbortController();
    const end = connection.run({ script: 'debug(1)\nwhile True: pass' }, { debug: () => abort.abort() }, abort.signal);
    assert.equal((await end).settled_by, 'cancel');
  });

  test('rejects what the server refuses and stays usable', async () => {
    await assert.rejects(connection.run({ script: 'done(1)', limits: { wall_ms: 1e15 } }), RefusedError);
    assert.deepEqual((await run('done(1)')).results, [[1, true]]);
  });

  test('ends a run whose handler throws', async () => {
    await assert.rejects(connection.run({ script: 'done(1)' }, { done: () => { throw new Error('no'); } }), /^Error: no$/);
    assert.deepEqual((await run('done(1)')).results, [[1, true]]);
  });

  test('speaks to a server behind a socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'caisson-'));
    const path = join(directory, 'block.sock');
    const server = spawn(binary, ['block', 'serve', '--socket', path], { stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      for (let attempt = 0; ; ++attempt) {
        const client = new Connection({ socket: path });
        try {
          await client.hello;
          const end = await client.run({ script: 'done(1)' });
          assert.equal(end.results, 1);
          client.close();
          break;
        } catch (error) {
          if (attempt > 200 || !(error instanceof ConnectionError)) throw error;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    } finally {
      server.kill('SIGTERM');
      await new Promise((resolve) => server.on('exit', resolve));
      rmSync(directory, { recursive: true });
    }
  });
});

function fakeServer(script: string): { command: string[]; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'caisson-'));
  const path = join(directory, 'server');
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o700);
  return { command: [path], remove: () => rmSync(directory, { recursive: true }) };
}

test('tells that there is no such program', async () => {
  const connection = new Connection({ command: ['/nonexistent/caisson'] });
  await assert.rejects(connection.run({ script: '' }), /cannot start \/nonexistent\/caisson/);
  await assert.rejects(connection.hello, ConnectionError);
});

test('tells that the server died, with its code', async () => {
  const server = fakeServer('read line; exit 7');
  try {
    const connection = new Connection(server);
    await assert.rejects(connection.run({ script: '' }), (error: ConnectionError) => error.code === 7);
    await assert.rejects(connection.run({ script: '' }), ConnectionError);
  } finally {
    server.remove();
  }
});

test('a standard input that breaks is told by the close, not as an unhandled error', async () => {
  const server = fakeServer('exec <&-; sleep 0.3; exit 3');
  try {
    const connection = new Connection(server);
    await assert.rejects(connection.run({ script: 'x'.repeat(4 << 20) }), (error: ConnectionError) => error.code === 3);
  } finally {
    server.remove();
  }
});

test('refuses another protocol and answers that are no JSON', async () => {
  for (const line of ['{"type":"hello","protocol":99}', 'garbage']) {
    const server = fakeServer(`echo '${line}'; sleep 5`);
    try {
      const connection = new Connection(server);
      await assert.rejects(connection.run({ script: '' }), ConnectionError);
    } finally {
      server.remove();
    }
  }
});
