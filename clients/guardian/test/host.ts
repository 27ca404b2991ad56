// SPDX-License-Identifier: Apache-2.0
/**
 * A host that keeps Guardian's settling rules: it starts a worker thread per run, starts a done call
 * for each done message without waiting for the one before, settles once (the first final done, an
 * error, the worker's end, or its timer), and tells what happened afterwards as events.
 */
import { Worker } from 'node:worker_threads';

import { TIMED_OUT } from '../src/environment.js';
import type { StartData } from '../src/job.js';
import type { Json } from '../src/protocol.js';

type Message = { type?: 'done' | 'debug' | 'complete'; result?: Json; final?: boolean; error?: string };

export interface HostRun {
  /** What the run settled with: the documents of the first final done, or null. */
  settled: Promise<Json>;
  /** done calls that came to their end, in that order. */
  events: Json[];
  debug: Json[];
  worker: Worker;
  exited: Promise<number>;
}

export interface HostOptions {
  timeoutMs?: number;
  environment?: NodeJS.ProcessEnv;
  /** Stands for signing and validation; may be slow, may fail. */
  sign?(result: Json): Promise<Json>;
}

const WORKER = new URL('../src/worker.js', import.meta.url);

export function startRun(data: StartData, options: HostOptions = {}): HostRun {
  const worker = new Worker(WORKER, {
    workerData: data,
    env: { ...process.env, ...options.environment },
    stdout: true,
    stderr: true,
  });
  const sign = options.sign ?? (async (result: Json) => result);
  const events: Json[] = [];
  const debug: Json[] = [];
  const calls: Promise<void>[] = [];
  const exited = new Promise<number>((resolve) => worker.on('exit', resolve));
  const settled = new Promise<Json>((resolve, reject) => {
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(() => {
      reject(new Error(TIMED_OUT));
      void worker.terminate();
    }, options.timeoutMs);
    const call = async (message: Message): Promise<void> => {
      const documents = await sign(message.result ?? null);
      events.push(documents);
      if (message.final) resolve(documents);
    };
    worker.on('message', (message: Message) => {
      if (message.type === 'done') calls.push(call(message).catch(reject));
      else if (message.type === 'debug') debug.push(message.result ?? null);
      else if (message.type === 'complete') void Promise.all(calls).then(() => resolve(null));
      else if (message.error !== undefined) reject(new Error(message.error));
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      clearTimeout(timer);
      if (code !== 0) reject(new Error(`Python worker exited with code ${code}`));
      else void Promise.all(calls).then(() => resolve(null));
    });
  });
  return { settled, events, debug, worker, exited };
}
