// SPDX-License-Identifier: Apache-2.0
/**
 * One connection to `caisson block serve`: a process of its own, or a Unix socket of a server that
 * runs already. Carries any number of runs at once. Whoever opened it closes it.
 */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import type { Readable, Writable } from 'node:stream';

import { LineSplitter } from './lines.js';
import { PROTOCOL, type Answer, type End, type ErrorRecord, type Hello, type Job, type Json } from './protocol.js';

/** What a run tells while it goes on. A handler that throws ends its run. */
export interface Handlers {
  done?(result: Json, final: boolean): void;
  debug?(value: Json): void;
  warning?(warning: { code: string; message: string; path?: string }): void;
  stdout?(text: string): void;
  stderr?(text: string): void;
}

/** The server refused a request; nothing ran. */
export class RefusedError extends Error {
  override name = 'RefusedError';
  constructor(readonly record: ErrorRecord) {
    super(record.path ? `${record.message} (${record.path})` : record.message);
  }
}

/** The server or the way to it is gone. `code` is its exit code, where it had one. */
export class ConnectionError extends Error {
  override name = 'ConnectionError';
  constructor(message: string, readonly code: number | null = null) {
    super(message);
  }
}

export interface ServerOptions {
  /** Path of a socket that `caisson block serve --socket` listens on; else a process is started. */
  socket?: string;
  /** The program and its arguments in front of `block serve`. */
  command?: string[];
  /** Further arguments of `block serve`. */
  arguments?: string[];
  /** Where the process's standard error goes line by line; default: this process's. */
  log?(line: string): void;
}

interface PendingRun {
  handlers: Handlers;
  parts: Json[][];
  resolve(end: End): void;
  reject(error: Error): void;
}

interface Channel {
  input: Writable;
  output: Readable;
  close(): void;
  kill(): void;
  /** Called once, when nothing more will come. */
  closed: Promise<ConnectionError>;
}

function openProcess(options: ServerOptions): Channel {
  const [program, ...before] = options.command ?? [process.env['CAISSON_BIN'] ?? 'caisson'];
  if (program === undefined) throw new TypeError('the command is empty; name the caisson program');
  const child = spawn(program, [...before, 'block', 'serve', ...(options.arguments ?? [])], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const log = new LineSplitter(options.log ?? ((line) => process.stderr.write(`${line}\n`)), 1 << 20);
  child.stderr.on('data', (chunk: Buffer) => log.push(chunk));
  const closed = new Promise<ConnectionError>((resolve) => {
    child.on('error', (error) => resolve(new ConnectionError(`cannot start ${program}: ${error.message}`)));
    child.on('close', (code, signal) => {
      log.end();
      resolve(new ConnectionError(`${program} block serve ended (${signal ?? `exit code ${code}`})`, code));
    });
  });
  return {
    input: child.stdin,
    output: child.stdout,
    close: () => child.stdin.end(),
    kill: () => child.kill('SIGKILL'),
    closed,
  };
}

function openSocket(path: string): Channel {
  const socket = connect(path);
  const closed = new Promise<ConnectionError>((resolve) => {
    let reason = 'the server closed the connection';
    socket.on('error', (error) => (reason = error.message));
    socket.on('close', () => resolve(new ConnectionError(`${path}: ${reason}`)));
  });
  return { input: socket, output: socket, close: () => socket.end(), kill: () => socket.destroy(), closed };
}

export class Connection {
  readonly hello: Promise<Hello>;
  private readonly channel: Channel;
  private readonly runs = new Map<string, PendingRun>();
  private number = 0;
  private failure: ConnectionError | undefined;
  private greet!: (hello: Hello) => void;
  private refuse!: (error: Error) => void;

  constructor(options: ServerOptions = {}) {
    const socket = options.socket ?? process.env['CAISSON_BLOCK_SOCKET'];
    this.channel = socket ? openSocket(socket) : openProcess(options);
    this.hello = new Promise((resolve, reject) => {
      this.greet = resolve;
      this.refuse = reject;
    });
    this.hello.catch(() => undefined);  // told to every run as well
    const lines = new LineSplitter((line) => this.take(line));
    this.channel.output.on('data', (chunk: Buffer) => {
      try {
        lines.push(chunk);
      } catch (error) {
        this.fail(new ConnectionError(`the server's answer cannot be read: ${(error as Error).message}`));
        this.channel.kill();
      }
    });
    // A broken pipe shows here first; the reason comes with the close.
    this.channel.input.on('error', () => undefined);
    void this.channel.closed.then((error) => this.fail(error));
  }

  /** Runs a block. Rejects with RefusedError or ConnectionError; how a script ended is an End. */
  run(job: Job, handlers: Handlers = {}, signal?: AbortSignal): Promise<End> {
    const id = `r${++this.number}`;
    return new Promise((resolve, reject) => {
      if (this.failure) return reject(this.failure);
      this.runs.set(id, { handlers, parts: [], resolve, reject });
      this.send({ ...job, op: 'run', id });
      if (signal?.aborted) this.cancel(id);
      else signal?.addEventListener('abort', () => this.cancel(id), { once: true });
    });
  }

  /** Accepted runs go on to their end; then the server goes. */
  close(): void {
    this.channel.close();
  }

  /** Ends everything now. */
  kill(): void {
    this.channel.kill();
  }

  private cancel(id: string): void {
    if (this.runs.has(id)) this.send({ op: 'cancel', id });
  }

  private send(request: object): void {
    if (this.channel.input.writable) this.channel.input.write(`${JSON.stringify(request)}\n`);
  }

  private take(line: string): void {
    const answer = JSON.parse(line) as Answer;
    if (answer.type === 'hello') return this.takeHello(answer);
    const run = answer.id === undefined ? undefined : this.runs.get(answer.id);
    if (run === undefined || answer.id === undefined) return;
    try {
      this.deliver(answer.id, run, answer);
    } catch (error) {
      this.runs.delete(answer.id);
      this.send({ op: 'cancel', id: answer.id });
      run.reject(error as Error);
    }
  }

  private takeHello(hello: Hello): void {
    if (hello.protocol === PROTOCOL) return this.greet(hello);
    this.fail(new ConnectionError(`the server speaks protocol ${hello.protocol}, this client ${PROTOCOL}`));
    this.channel.kill();
  }

  private deliver(id: string, run: PendingRun, answer: Exclude<Answer, Hello>): void {
    switch (answer.type) {
      case 'part':
        run.parts.push(answer.items);
        return;
      case 'done':
        return run.handlers.done?.(joined(run, answer.result, answer.parts), answer.final);
      case 'debug':
        return run.handlers.debug?.(answer.result);
      case 'warning': {
        const { code, message, path } = answer;
        return run.handlers.warning?.({ code, message, ...(path === undefined ? {} : { path }) });
      }
      case 'stdout':
        return run.handlers.stdout?.(answer.text);
      case 'stderr':
        return run.handlers.stderr?.(answer.text);
      case 'error':
        // A cancel that came too late is answered so; the run itself is not touched by it.
        if (answer.op !== 'run') return;
        this.runs.delete(id);
        return run.reject(new RefusedError(answer.error));
      case 'end':
        this.runs.delete(id);
        return run.resolve(answer);
      default:
        return;
    }
  }

  private fail(error: ConnectionError): void {
    this.failure ??= error;
    this.refuse(this.failure);
    for (const run of this.runs.values()) run.reject(this.failure);
    this.runs.clear();
  }
}

function joined(run: PendingRun, last: Json, parts: number): Json {
  const pieces = run.parts;
  run.parts = [];
  if (parts === 0) return last;
  if (parts !== pieces.length || !Array.isArray(last)) {
    throw new ConnectionError('the server sent a list whose pieces do not fit together');
  }
  return [...pieces, last].flat(1);
}
