// SPDX-License-Identifier: Apache-2.0
/** Finds the real program; tests that need it say so and are skipped where it cannot run blocks. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../../../build/release/bin/caisson', import.meta.url));

export const binary = process.env['CAISSON_BIN'] ?? BUILT;
process.env['CAISSON_BIN'] = binary;

function whyNot(): string | false {
  if (!existsSync(binary)) return `there is no ${binary}; build it, or set CAISSON_BIN`;
  const hello = spawnSync(binary, ['block', 'serve'], { input: '', encoding: 'utf8', timeout: 600_000 });
  const line = hello.stdout.split('\n')[0] ?? '';
  if (hello.status !== 0 || line === '') return `${binary} block serve does not run: ${hello.stderr}`;
  const runtimes = (JSON.parse(line) as { runtimes: { name: string; available: boolean; reason?: string }[] }).runtimes;
  const cpython = runtimes.find((runtime) => runtime.name === 'cpython');
  return cpython?.available ? false : `the runtime cpython is not there: ${cpython?.reason ?? 'unknown'}`;
}

/** False, or the reason to skip. */
export const skip = whyNot();
