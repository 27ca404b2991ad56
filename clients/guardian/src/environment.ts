// SPDX-License-Identifier: Apache-2.0
/** The variables by which Guardian configures its sandbox, and the error texts that it matches. */
import type { Job, Limits } from './protocol.js';

export const TIMED_OUT = 'Python sandbox execution timed out';

const DEFAULT_TIMEOUT_MS = 120_000;
const MEBI = 1 << 20;
const UNITS: { [unit: string]: number } = { '': 1, b: 1, k: 1 << 10, m: MEBI, g: 1 << 30 };

type Environment = { [name: string]: string | undefined };

function wholeNumber(text: string, message: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text.trim()) || !Number.isSafeInteger(value) || value <= 0) throw new Error(message);
  return value;
}

/** Memory as Docker writes it: 512m, 1g, 1073741824. */
function memoryBytes(text: string): number {
  const match = /^(\d+)([bkmg]?)$/i.exec(text.trim());
  const unit = match ? UNITS[match[2]!.toLowerCase()] : undefined;
  const value = match && unit !== undefined ? Number(match[1]) * unit : 0;
  if (!Number.isSafeInteger(value) || value <= 0) throw new Error(`Invalid PYTHON_SANDBOX_MEMORY value: ${text}`);
  return value;
}

export function runtimeFrom(environment: Environment): Job['runtime'] {
  const mode = environment['PYTHON_SANDBOX_MODE'];
  switch (mode) {
    case undefined:
    case '':
    case 'pyodide':
    case 'cpython':
      return 'cpython';
    case 'docker':
    case 'oci':
      return 'oci';
    case 'native':
    case 'auto':
      return mode;
    default:
      throw new Error(
        `Invalid PYTHON_SANDBOX_MODE value: ${mode}; use pyodide, docker, cpython, native, oci or auto`);
  }
}

/** Throws an Error with Guardian's own text for what is malformed. */
export function limitsFrom(environment: Environment, runtime: Job['runtime']): Limits {
  const limits: Limits = { wall_ms: DEFAULT_TIMEOUT_MS };
  const timeout = environment['PYTHON_SANDBOX_TIMEOUT_MS'];
  if (timeout !== undefined) {
    limits.wall_ms = wholeNumber(timeout,
      'PYTHON_SANDBOX_TIMEOUT_MS is not configured (must be a positive integer)');
  }
  const heap = environment['PYTHON_SANDBOX_HEAP_MB'];
  if (heap !== undefined && runtime === 'cpython') {
    limits.memory_bytes = wholeNumber(heap,
      `Invalid PYTHON_SANDBOX_HEAP_MB value: ${heap}`) * MEBI;
  }
  const memory = environment['PYTHON_SANDBOX_MEMORY'];
  if (memory !== undefined && runtime !== 'cpython') limits.memory_bytes = memoryBytes(memory);
  const pids = environment['PYTHON_SANDBOX_PIDS'];
  if (pids !== undefined && runtime !== 'cpython') {
    limits.pids = wholeNumber(pids, `Invalid PYTHON_SANDBOX_PIDS value: ${pids}`);
  }
  return limits;
}
