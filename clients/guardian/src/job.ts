// SPDX-License-Identifier: Apache-2.0
/** Guardian's start data as a job of ours, and our ends as Guardian's errors. */
import { TIMED_OUT, limitsFrom, runtimeFrom } from './environment.js';
import type { End, ErrorRecord, Job, Json, JsonObject, Table } from './protocol.js';

/** What a Guardian host hands to its worker thread or writes to its container. */
export interface StartData {
  execFunc?: string;
  user?: JsonObject;
  documents?: JsonObject[];
  artifacts?: Json[];
  sources?: JsonObject[];
  tablesPack?: { [fileId: string]: Table };
}

export function jobFrom(data: StartData, environment: NodeJS.ProcessEnv = process.env): Job {
  const runtime = runtimeFrom(environment);
  return {
    script: data.execFunc ?? '',
    user: data.user ?? {},
    documents: data.documents ?? [],
    artifacts: data.artifacts ?? [],
    sources: data.sources ?? [],
    tables: data.tablesPack ?? {},
    limits: limitsFrom(environment, runtime),
    ...(runtime === undefined ? {} : { runtime }),
  };
}

/** How a run failed, in Guardian's words; undefined when it did not. */
export interface Failure {
  /** `TypeName: message`, as the container says it. */
  short: string;
  /** The traceback where there is one, as the worker thread says it. */
  long: string;
  /** The script ended its interpreter with this code: Guardian learns it from the exit code. */
  exitCode?: number;
}

export function failureOf(end: End): Failure | undefined {
  const error = end.error;
  if (end.ok || error === null) return undefined;
  if (error.code === 'block.exited') {
    const code = error.exit_code ?? 1;
    if (code === 0) return undefined;
    const text = `Python worker exited with code ${code}`;
    return { short: text, long: text, exitCode: code };
  }
  if (error.limit === 'wall_ms') return { short: TIMED_OUT, long: TIMED_OUT };
  return { short: shortText(error), long: error.traceback ?? shortText(error) };
}

function shortText(error: ErrorRecord): string {
  return error.type === undefined ? error.message : `${error.type}: ${error.message}`;
}
