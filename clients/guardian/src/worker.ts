// SPDX-License-Identifier: Apache-2.0
/**
 * A worker thread with the messages of Guardian's Python worker: started with the start data, it
 * posts {type:"done",result,final} and {type:"debug",result} as the script calls them, then either
 * {type:"complete"} or {error,final:true}. What the script prints goes to the thread's own streams.
 */
import { parentPort, workerData } from 'node:worker_threads';

import { Connection } from './connection.js';
import { failureOf, jobFrom, type StartData } from './job.js';

async function main(): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('this module runs in a worker thread; use new Worker(…)');
  let connection: Connection | undefined;
  try {
    const job = jobFrom(workerData as StartData);
    connection = new Connection();
    const end = await connection.run(job, {
      done: (result, final) => port.postMessage({ type: 'done', result, final }),
      debug: (result) => port.postMessage({ type: 'debug', result }),
      warning: ({ message, path }) => console.warn(path ? `${message} (${path})` : message),
      stdout: (text) => process.stdout.write(text),
      stderr: (text) => process.stderr.write(text),
    });
    const failure = failureOf(end);
    port.postMessage(failure ? { error: failure.long, final: true } : { type: 'complete' });
  } catch (error) {
    port.postMessage({ error: (error as Error).message, final: true });
  } finally {
    connection?.close();
  }
}

await main();
