#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/**
 * The program of Guardian's container: one JSON object on standard input up to its end, one JSON
 * object a line on standard output. Exit code 0: the script came to its end; 1: it failed, and a
 * line of type "error" says how; another one: the script's own, by sys.exit.
 */
import { Connection } from './connection.js';
import { failureOf, jobFrom, type StartData } from './job.js';
import { LineSplitter } from './lines.js';
import type { Json } from './protocol.js';

type Line =
  | { type: 'done'; result: Json; final: boolean }
  | { type: 'debug'; result: Json }
  | { type: 'error'; error: string }
  | { type: 'stdout' | 'stderr'; message: string };

/** ASCII only, so that a host which decodes chunk by chunk damages nothing. */
function emit(line: Line): void {
  const text = JSON.stringify(line).replace(/[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  process.stdout.write(`${text}\n`);
}

async function readInput(): Promise<StartData> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  let data: unknown;
  try {
    data = JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (error) {
    throw new Error(`Failed to parse input: ${(error as Error).message}`);
  }
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw new Error('Failed to parse input: the text is no JSON object');
  }
  return data as StartData;
}

function printer(type: 'stdout' | 'stderr'): { push(text: string): void; end(): void } {
  const lines = new LineSplitter((message) => emit({ type, message }));
  return { push: (text) => lines.push(Buffer.from(text)), end: () => lines.end() };
}

async function run(): Promise<number> {
  const job = jobFrom(await readInput());
  const connection = new Connection();
  const stdout = printer('stdout');
  const stderr = printer('stderr');
  try {
    const end = await connection.run(job, {
      done: (result, final) => emit({ type: 'done', result, final }),
      debug: (result) => emit({ type: 'debug', result }),
      stdout: (text) => stdout.push(text),
      stderr: (text) => stderr.push(text),
    });
    stdout.end();
    stderr.end();
    const failure = failureOf(end);
    if (failure?.exitCode !== undefined) return failure.exitCode;
    if (failure) emit({ type: 'error', error: failure.short });
    return failure ? 1 : 0;
  } finally {
    connection.close();
  }
}

// A reader that has gone: nothing is left to say to it.
process.stdout.on('error', () => process.exit(1));
try {
  process.exitCode = await run();
} catch (error) {
  emit({ type: 'error', error: (error as Error).message });
  process.exitCode = 1;
}
