// SPDX-License-Identifier: Apache-2.0
// The builtins allowlist as constants (see body_check.h): sorted, looked up by binary search.
#pragma once

#include <algorithm>
#include <string_view>

#include "isolate/micropython/builtins.h"

namespace caisson::workflow::internal {

// The names that the pinned artifact keeps, in the order of the search.
inline constexpr auto kAllowed = [] {
  auto names = isolate::kAllowedBuiltins;
  std::ranges::sort(names);
  return names;
}();

inline constexpr std::string_view kRejected[] = {
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "ExceptionGroup",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "IOError",
    "ImportWarning",
    "InterruptedError",
    "IsADirectoryError",
    "ModuleNotFoundError",
    "NotADirectoryError",
    "NotImplemented",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeWarning",
    "SyntaxWarning",
    "SystemError",
    "TabError",
    "TimeoutError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "Warning",
    "aiter",
    "anext",
    "ascii",
    "breakpoint",
    "compile",
    "copyright",
    "credits",
    "delattr",
    "dir",
    "eval",
    "exec",
    "exit",
    "format",
    "getattr",
    "globals",
    "help",
    "input",
    "license",
    "locals",
    "open",
    "print",
    "quit",
    "setattr",
    "vars",
};

}  // namespace caisson::workflow::internal
