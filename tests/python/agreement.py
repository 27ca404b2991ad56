# SPDX-License-Identifier: Apache-2.0
"""Does our parser make of one source what CPython's `ast` makes of it?"""

import ast
import collections
import dataclasses
import io
import tokenize
import warnings

import ast_text

# What CPython gives up on for its own sake, not the language's.
_EXHAUSTED = (RecursionError, MemoryError)
# Its tree of `f'{x:{y=}}'` is invalid in some releases.
_DEFECT = "field 'value' is required for Constant"


@dataclasses.dataclass
class Tally:
    """Counts of what was compared, and the disagreements."""

    accepted: int = 0
    rejected: int = 0
    same_error: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)  # (name, what, source or path)
    other_errors: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    examples: dict = dataclasses.field(default_factory=dict)  # of other_errors

    def add(self, other):
        self.accepted += other.accepted
        self.rejected += other.rejected
        self.same_error += other.same_error
        self.skipped += other.skipped
        self.failures += other.failures
        self.other_errors.update(other.other_errors)
        self.examples = other.examples | self.examples

    @property
    def compared(self):
        return self.accepted + self.rejected + len(self.failures)


def parse(source):
    """(tree, None), or (None, the exception)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source), None
        except (SyntaxError, ValueError, *_EXHAUSTED) as error:
            return None, error


def _decode(data, errors):
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        encoding = "utf-8"
    return data.decode(encoding, errors)


def _is_undecodable(source):
    """CPython lets bytes that are not UTF-8 pass in the comments of a source that it gets as bytes."""
    try:
        return isinstance(source, bytes) and _decode(source, "strict") is None
    except UnicodeDecodeError:
        return True


def _lines(source):
    text = source if isinstance(source, str) else _decode(source, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _error_of_ours(answer, source):
    kind, span, message = answer.split("\n", 2)
    line, column = map(int, span.split("-")[0].split(":"))
    lines = _lines(source)
    if 0 < line <= len(lines):
        column = len(lines[line - 1].encode()[:column].decode("utf-8", "ignore"))
    return kind, message, line, column + 1


def _error_of_theirs(error):
    return type(error).__name__, error.msg, error.lineno or 0, error.offset or 0


def first_difference(theirs, ours):
    for number, (left, right) in enumerate(zip(theirs.split("\n"), ours.split("\n")), 1):
        if left != right:
            return f"node {number}: CPython has\n      {left}\n    we have\n      {right}"
    return "one tree is longer than the other"


def compare(source, answer):
    """(outcome, what): 'accepted', 'rejected', 'skipped' or 'failed'; what is for people."""
    status, text = answer
    if status == "differs":
        return "failed", "does not survive printing: " + text
    tree, error = parse(source)
    if isinstance(error, _EXHAUSTED) or str(error) == _DEFECT:
        return "skipped", None
    if error is None and status == "error":
        if _is_undecodable(source):
            return "skipped", None
        return "failed", "CPython accepts it, we say: " + text.replace("\n", " ")
    if error is not None and status == "ok":
        return "failed", f"we accept it, CPython says: {error}"
    if error is not None:
        return "rejected", _compare_errors(error, text, source)
    expected = ast_text.dump(tree)
    if expected == text:
        return "accepted", None
    return "failed", first_difference(expected, text)


def _compare_errors(error, text, source):
    """None when the errors are the same in type, message, line and column."""
    if not isinstance(error, SyntaxError):
        return None
    theirs, ours = _error_of_theirs(error), _error_of_ours(text, source)
    return None if theirs == ours else (theirs, ours)


def _label(theirs, ours):
    """What differs, for counting: the message if that does, otherwise the place."""
    if theirs[:2] != ours[:2]:
        return f"{theirs[0]}: {theirs[1]}  /  {ours[0]}: {ours[1]}"
    return f"{theirs[0]}: {theirs[1]}  (the place differs)"


def _record_rejection(tally, source, errors):
    tally.rejected += 1
    if errors is None:
        tally.same_error += 1
        return
    theirs, ours = errors
    label = _label(theirs, ours)
    tally.other_errors[label] += 1
    tally.examples.setdefault(label, (source, theirs[2:], ours[2:]))


def record(tally, name, source, answer, keep=None):
    """Counts one comparison; `keep` is remembered in place of the source if it fails."""
    outcome, what = compare(source, answer)
    if outcome == "accepted":
        tally.accepted += 1
    elif outcome == "skipped":
        tally.skipped += 1
    elif outcome == "failed":
        tally.failures.append((name, what, source if keep is None else keep))
    else:
        _record_rejection(tally, source, what)
    return outcome
