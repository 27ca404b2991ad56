// SPDX-License-Identifier: Apache-2.0
/** The lines of `caisson block serve`, version 1 (docs/block-protocol.md). */

export const PROTOCOL = 1;

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface Table {
  rows: JsonObject[];
  columnKeys?: string[];
}

export interface Limits {
  wall_ms?: number;
  cpu_ms?: number;
  memory_bytes?: number;
  output_bytes?: number;
  messages?: number;
  stream_bytes?: number;
  disk_bytes?: number;
  pids?: number;
}

export interface Job {
  /** The whole source text. */
  script: string;
  user?: JsonObject;
  documents?: JsonObject[];
  artifacts?: Json[];
  sources?: JsonObject[];
  tables?: { [fileId: string]: Table };
  options?: { geometry?: 'geojson' | 'wkt'; surrogates?: 'error' | 'replace' };
  limits?: Limits;
  runtime?: 'cpython' | 'native' | 'oci' | 'auto';
  debug?: boolean;
}

export interface Frame {
  line: number;
  function: string;
}

export interface ErrorRecord {
  code: string;
  message: string;
  path?: string;
  type?: string;
  line?: number;
  column?: number;
  frames?: Frame[];
  traceback?: string;
  limit?: keyof Limits;
  exit_code?: number;
}

export interface Usage {
  wall_ms: number;
  cpu_ms: number;
  peak_memory_bytes: number;
  output_bytes: number;
  messages: number;
}

export interface End {
  ok: boolean;
  settled_by: 'final_done' | 'end' | 'error' | 'limit' | 'cancel';
  no_result: boolean;
  results: number;
  error: ErrorRecord | null;
  late_error?: ErrorRecord;
  dropped: { [what: string]: number };
  usage: Usage;
}

export interface Hello {
  type: 'hello';
  protocol: number;
  server: string;
  version: string;
  default_runtime: string;
  runtimes: { name: string; available: boolean; reason?: string }[];
}

export type Answer =
  | Hello
  | { type: 'accepted'; id: string; runtime: string }
  | { type: 'done'; id: string; result: Json; final: boolean; parts: number }
  | { type: 'part'; id: string; items: Json[] }
  | { type: 'debug'; id: string; result: Json }
  | { type: 'warning'; id: string; code: string; message: string; path?: string }
  | { type: 'stdout' | 'stderr'; id: string; text: string }
  | { type: 'error'; id?: string; op?: string; line?: number; error: ErrorRecord }
  | ({ type: 'end'; id: string } & End);
