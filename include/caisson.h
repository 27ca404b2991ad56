/* SPDX-License-Identifier: Apache-2.0
 *
 * Caisson as a library (libcaisson.so): compiles restricted workflows to a frozen IR without running
 * a line of them, runs an IR with the author's code in isolates, and calls one body of such code.
 * caisson.hpp is the same for C++, docs/library.md the guide. C99.
 *
 * Text. What goes in is UTF-8 with its length, so it may hold any byte; options are NUL-terminated
 * JSON objects, NULL for none, and a member that is not named here is refused. What comes out is
 * NUL-terminated JSON, one object without spaces whose first member is `ok`, so that a program
 * without a JSON reader can tell by the beginning {"ok":true :
 *
 *   {"ok": true, ...}                                   what each function says below
 *   {"ok": false, "error": {"code", "message", "hint"}} we failed, or refused what came in; `hint`
 *                                                       may be absent, `code` is one of api/errors.yaml
 *
 * A run that ends in an error of the workflow, or a body that raises, is no such failure: `ok` is
 * true then, and the answer says what happened.
 *
 * Ownership. Every `char *` that a function returns is the caller's and is given back with
 * caisson_free, exactly once. It is NULL only when there was no memory for it. Everything that is
 * passed in stays the caller's and is not used after the function has returned. A handle belongs to
 * whoever created it and is given back with its own destroy function, exactly once; NULL is ignored.
 *
 * Threads. An engine and a cancel handle may be used by any number of threads at once; the functions
 * that take an engine block until they are done. A handle must not be destroyed while another thread
 * is in a function that was given it. Nothing here throws, exits, or installs a signal handler.
 *
 * Processes. An engine owns worker processes, which end with it. It is of no use in a child that
 * fork() made: create it after forking, or let the child exec.
 */
#ifndef CAISSON_H
#define CAISSON_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function, a member or an ownership rule of this header changes for its users; what
 * is only added leaves it as it is. */
#define CAISSON_API_VERSION 1

#define CAISSON_EXPORT __attribute__((visibility("default")))

typedef struct caisson_engine caisson_engine;
typedef struct caisson_cancel caisson_cancel;

/* Of the library that was loaded: "0.1.0". Static; not to be freed. */
CAISSON_EXPORT const char *caisson_version(void);
/* Its CAISSON_API_VERSION. */
CAISSON_EXPORT int caisson_api_version(void);

/* Gives back what a function returned. NULL is ignored. */
CAISSON_EXPORT void caisson_free(char *text);

/* --- Compiling: needs no engine, starts no process, reads no file. --------------------------- */

/* Compiles the text of a workflow.py. Options:
 *   strict               bool, false: warnings count as errors
 *   enforce_node_policy  bool, true: off only for sources of your own
 *   runtime              "micropython" (default) or "cpython": what bodies are checked for
 * Answers {"ok": true, "ir", "content_id", "index", "diagnostics": [...]}, or, when the source is
 * refused, {"ok": false, "error", "diagnostics": [...]}; the error is that of the first diagnostic of
 * severity "error". A diagnostic has
 *   code, severity ("error", "warning"), message, hint, path ("" where none),
 *   line, column, end_line, end_column (lines from 1, columns in bytes from 0; 0 lines: no place),
 *   peer_line (the line that Orcheo reports, 0: none), peer_accepts (an error of ours only). */
CAISSON_EXPORT char *caisson_compile(const char *source, size_t source_size, const char *options);

/* Checks an IR that came from anywhere as if it were hostile. The same options; answers as
 * caisson_compile does, without `index`, `ir` in canonical form. */
CAISSON_EXPORT char *caisson_check_ir(const char *ir, size_t ir_size, const char *options);

/* --- The engine ------------------------------------------------------------------------------ */

/* Makes an engine; starts no process yet. Options:
 *   isolate        path of the program caisson-isolate; default: beside libcaisson.so, else in
 *                  ../bin of its folder
 *   data_dir       folder with micropython/derived.wasm; default: CAISSON_DATA_DIR, else beside
 *                  libcaisson.so, ../share/caisson, or where the library was built
 *   cache_dir      of compiled modules; default: CAISSON_CACHE_DIR, else ~/.cache/caisson
 *   workers        isolate workers at most; 0 (default): one per core
 *   limits         the largest that a call may have, and the default of each (see below)
 *   allow_unjailed bool, false: run isolates although a wall of the jail cannot be built here
 *   store          path of the database in which runs are recorded; default: none are
 *   durability     "normal" (default) or "full", see docs/runs.md; needs `store`
 * limits: {"memory_bytes", "heap_bytes", "fuel", "wall_clock_ms", "output_bytes", "stdout_bytes"},
 * integers from 0; `fuel` 0 is not counted.
 * On success *engine is set and the answer is {"ok": true}; else *engine is NULL. */
CAISSON_EXPORT char *caisson_engine_create(const char *options, caisson_engine **engine);

/* {"ok": true, "runtime": {...}}: which artifact answers, its digests, limits, and the walls around
 * it. Starts a worker when there is none. */
CAISSON_EXPORT char *caisson_engine_describe(caisson_engine *engine);

/* Ends the workers and gives the engine back. */
CAISSON_EXPORT void caisson_engine_destroy(caisson_engine *engine);

/* --- Cancelling ------------------------------------------------------------------------------ */

/* May be given to any number of runs and calls, of any engines, at once. NULL: no memory. */
CAISSON_EXPORT caisson_cancel *caisson_cancel_create(void);
/* Asks all of them to stop, and later ones not to begin; from any thread, any number of times. A call
 * that is in an isolate is given up; its worker ends it within its wall clock limit. */
CAISSON_EXPORT void caisson_cancel_request(caisson_cancel *cancel);
CAISSON_EXPORT void caisson_cancel_destroy(caisson_cancel *cancel);

/* --- Running --------------------------------------------------------------------------------- */

/* Is told of one event, a JSON object without a line end (docs/events.md), on whatever thread made it,
 * one at a time per run. `line` is NUL-terminated and good during the call only. It may call the
 * functions of this header, but not destroy what its run was given. Anything but 0 cancels the run. */
typedef int (*caisson_on_event)(void *user, const char *line, size_t line_size);

/* Runs an IR, which is checked again, bodies and all. `inputs` is a JSON object. Options:
 *   config       the run's configuration, as docs/runs.md has it
 *   policy       "drop" (default) or "raise": what is no JSON on its way into a code node
 *   limits       of each call of a code node, at most the engine's
 *   timeout_ms   of the whole run
 *   state_bytes  of all that the run holds at once
 *   runtime      "micropython" (default) or "cpython"; node_runtimes: {node id: runtime}
 *   credentials  {name: secret} behind the [[placeholders]]
 *   allow_endpoints  ["127.0.0.1:8080", ...]: targets of this host that nodes may send requests to
 *   enforce_node_policy  bool, true: as of caisson_compile
 *   run_id       default: a new UUID
 *   name         of the workflow, in the record
 * `cancel`, `on_event` and `user` may be NULL. Answers {"ok": true, "result": {...}} with
 *   status     "succeeded", "failed", "cancelled", "timed_out" or "interrupted"
 *   state, error (as docs/events.md has it, or null), questions [{"node_path", "value"}]
 *   run_id, steps, node_visits, duration_ms, runtimes
 *   log        [{"level", "message"}], what nodes and engine said; at most 1000 entries */
CAISSON_EXPORT char *caisson_run(caisson_engine *engine, const char *ir, size_t ir_size,
                                 const char *inputs, size_t inputs_size, const char *options,
                                 caisson_cancel *cancel, caisson_on_event on_event, void *user);

/* Goes on with a recorded run (the engine has a `store`), under the settings with which it began.
 * `run_id` may be the beginning of an id. `answers` is a JSON object: the path of the node that asked
 * -> its answer. Options: config (in place of the one before), credentials, allow_endpoints,
 * enforce_node_policy. Answers as caisson_run does. */
CAISSON_EXPORT char *caisson_resume(caisson_engine *engine, const char *run_id, const char *answers,
                                    size_t answers_size, const char *options,
                                    caisson_cancel *cancel, caisson_on_event on_event, void *user);

/* Calls one body of a code node: the statements of a function. It is checked as bodies of an IR are, but
 * that it may read any field of `self`, and need not return anything (which gives null); one that breaks a rule is refused ("diagnostics" beside the
 * error). `inputs` is {"state": {}, "config": {}, "configurable": {}}, the last of which becomes
 * `self`. Options: node_id (for messages), limits (at most the engine's). Answers
 * {"ok": true, "outcome": {...}} with
 *   kind    "value", "raised", "syntax", "fuel", "cpu", "memory", "wall_clock", "output", "messages",
 *           "protocol" (no JSON came back), "exited", "artifact" or "killed"
 *   value   what it returned, any JSON; only of "value"
 *   error_type, message, traceback [{"line" (of the body, 0: unknown), "function"}]
 *   stdout, stdout_dropped (bytes), usage {"wall_ms", "fuel", "memory_bytes", "output_bytes"} */
CAISSON_EXPORT char *caisson_call(caisson_engine *engine, const char *body, size_t body_size,
                                  const char *inputs, size_t inputs_size, const char *options,
                                  caisson_cancel *cancel);

#ifdef __cplusplus
}
#endif

#endif /* CAISSON_H */
