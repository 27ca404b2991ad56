# SPDX-License-Identifier: Apache-2.0
"""Runs in an interpreter that has orcheo: compiles one source per line of standard input,
{"source": text}, and answers each with the peer's IR and index or its error and line. With --time N
it compiles each N times and adds "seconds", the least processor time."""

import json
import sys
import time

from orcheo.graph.ingestion.ast_extraction import extract_graph_index
from orcheo.graph.ir.exceptions import IRError, WorkflowValidationError
from orcheo.graph.ir.interpreter import compile_workflow_to_ir


def answer(source):
    try:
        ir = compile_workflow_to_ir(source)
        return {"ok": True, "ir": ir.model_dump(mode="json"), "index": extract_graph_index(source)}
    except WorkflowValidationError as error:
        return {"ok": False, "error": error.raw_message, "line": error.lineno or 0}
    except IRError as error:
        return {"ok": False, "error": str(error), "line": 0}
    except Exception as error:  # the peer itself fails: no answer to compare with
        return {"ok": None, "error": f"{type(error).__name__}: {error}"}


def best_seconds(source, repetitions):
    best = float("inf")
    for _ in range(repetitions):
        start = time.process_time()
        compile_workflow_to_ir(source)
        best = min(best, time.process_time() - start)
    return best


def main():
    repetitions = int(sys.argv[2]) if sys.argv[1:2] == ["--time"] else 0
    answers = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        source = json.loads(line)["source"]
        result = answer(source)
        if repetitions:
            result["seconds"] = best_seconds(source, repetitions)
        try:
            text = json.dumps(result)
        except (TypeError, ValueError) as error:
            text = json.dumps({"ok": None, "error": f"{type(error).__name__}: {error}"})
        print(text, file=answers, flush=True)


if __name__ == "__main__":
    main()
