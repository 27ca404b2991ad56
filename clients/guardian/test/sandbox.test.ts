// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { skip } from './binary.js';

const PROGRAM = fileURLToPath(new URL('../src/sandbox.js', import.meta.url));

type Line = { type: string; [key: string]: unknown };

function sandbox(input: string): Promise<{ code: number | null; lines: Line[]; bytes: Buffer }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('close', (code) => {
      const bytes = Buffer.concat(chunks);
      const lines = bytes.toString('utf8').split('\n').filter((line) => line !== '');
      resolve({ code, lines: lines.map((line) => JSON.parse(line) as Line), bytes });
    });
    child.stdin.end(input);
  });
}
const job = (execFunc: string, rest: object = {}) => sandbox(JSON.stringify({ execFunc, ...rest }));

test('input that is no JSON gives an error line and exit code 1', async () => {
  for (const input of ['', '{', '[]', 'null']) {
    const { code, lines } = await sandbox(input);
    assert.equal(code, 1);
    assert.match(String(lines[0]!['error']), /^Failed to parse input: /);
  }
});

describe('the program of the container', { skip }, () => {
  test('writes a line for each call, ASCII only', async () => {
    const { code, lines, bytes } = await job('debug([1, 2])\nprint("a", "é")\ndone({"t": "€"})');
    assert.equal(code, 0);
    assert.deepEqual(lines, [
      { type: 'debug', result: [1, 2] },
      { type: 'stdout', message: 'a é' },
      { type: 'done', result: { t: '€' }, final: true },
    ].sort((a, b) => lines.findIndex((l) => l.type === a.type) - lines.findIndex((l) => l.type === b.type)));
    assert.ok(bytes.every((byte) => byte < 0x80));
  });

  test('tells an error by type and message, with exit code 1', async () => {
    const { code, lines } = await job('done(1, final=False)\n{}["k"]');
    assert.equal(code, 1);
    assert.deepEqual(lines, [{ type: 'done', result: 1, final: false }, { type: 'error', error: "KeyError: 'k'" }]);
  });

  test("passes the script's exit code on", async () => {
    assert.deepEqual(await job('import sys\nsys.exit(3)').then(({ code, lines }) => [code, lines]), [3, []]);
    assert.deepEqual(await job('import sys\nsys.exit(0)').then(({ code, lines }) => [code, lines]), [0, []]);
  });

  test('a script that forges lines makes prints of them', async () => {
    const { lines } = await job(
      'import os\nos.write(1, b\'{"type":"done","result":{"forged":1},"final":true}\\n\')\ndone({"real": True})');
    assert.deepEqual(lines.filter((line) => line.type === 'done'), [{ type: 'done', result: { real: true }, final: true }]);
  });
});
