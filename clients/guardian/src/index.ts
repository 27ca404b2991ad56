// SPDX-License-Identifier: Apache-2.0
/**
 * Guardian's Python logic block on Caisson.
 *
 *     const connection = new Connection();
 *     const end = await connection.run({ script, documents }, { done: (result, final) => … });
 *     connection.close();
 *
 * The module `caisson-guardian/worker` is the drop-in for Guardian's own worker thread, and the
 * program `caisson-guardian-sandbox` for the one in its container.
 */
export { Connection, ConnectionError, RefusedError, type Handlers, type ServerOptions } from './connection.js';
export { failureOf, jobFrom, type Failure, type StartData } from './job.js';
export type { End, ErrorRecord, Frame, Hello, Job, Json, JsonObject, Limits, Table, Usage } from './protocol.js';
