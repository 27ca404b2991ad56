// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LineSplitter } from '../src/lines.js';

function split(chunks: Buffer[], end = true): string[] {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  for (const chunk of chunks) splitter.push(chunk);
  if (end) splitter.end();
  return lines;
}

test('keeps a character that arrives in two pieces', () => {
  const bytes = Buffer.from('"é€"\n');
  for (let cut = 1; cut < bytes.length; ++cut) {
    assert.deepEqual(split([bytes.subarray(0, cut), bytes.subarray(cut)]), ['"é€"']);
  }
});

test('skips blank lines and takes a last line without an end', () => {
  assert.deepEqual(split([Buffer.from('a\n\n  \nb')]), ['a', 'b']);
  assert.deepEqual(split([Buffer.from('a\nb')], false), ['a']);
});

test('refuses a line beyond the cap', () => {
  const splitter = new LineSplitter(() => assert.fail('no line may come'), 4);
  assert.throws(() => splitter.push(Buffer.from('12345')), RangeError);
});
