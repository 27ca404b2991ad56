// SPDX-License-Identifier: Apache-2.0
// Status says that *we* failed or that an input was refused; what a guest did is an
// isolate::Outcome and never a Status. Result<T> is std::expected<T, Status>. No exception leaves
// our code.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace caisson {

// A code of api/errors.yaml, "area.reason". Constants are generated into errors/<area>.h; `name`
// points at static storage.
struct ErrorCode {
  std::string_view name;
  constexpr bool operator==(const ErrorCode&) const = default;
};

// A stretch of a source text, as CPython's AST counts it: lines from 1, columns in UTF-8 bytes
// from 0, the end exclusive. line == 0 means that no place is known.
struct SourceSpan {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t end_line = 0;
  std::uint32_t end_column = 0;
  constexpr bool known() const { return line != 0; }
  constexpr bool operator==(const SourceSpan&) const = default;
};

struct Status {
  ErrorCode code;
  std::string message;  // what was wrong, where, and what to do; without the code
  SourceSpan span = {};
  std::string details;  // further lines (a traceback, a cause), may be empty
};

template <typename T>
using Result = std::expected<T, Status>;

inline std::unexpected<Status> Fail(ErrorCode code, std::string message, SourceSpan span = {}) {
  return std::unexpected(Status{code, std::move(message), span, {}});
}
inline std::unexpected<Status> Fail(Status status) { return std::unexpected(std::move(status)); }

// Evaluates `expr` (a Result<T>), returns its Status from the enclosing function when it failed,
// else binds its value to `declaration`.
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes no parentheses
#define CAISSON_CONCAT_(a, b) a##b
#define CAISSON_CONCAT(a, b) CAISSON_CONCAT_(a, b)
#define CAISSON_ASSIGN(declaration, expr)                                         \
  auto CAISSON_CONCAT(result_, __LINE__) = (expr);                                \
  if (!CAISSON_CONCAT(result_, __LINE__))                                         \
    return ::caisson::Fail(std::move(CAISSON_CONCAT(result_, __LINE__)).error()); \
  declaration = *std::move(CAISSON_CONCAT(result_, __LINE__))
#define CAISSON_TRY(expr)                                                                  \
  if (auto CAISSON_CONCAT(result_, __LINE__) = (expr); !CAISSON_CONCAT(result_, __LINE__)) \
  return ::caisson::Fail(std::move(CAISSON_CONCAT(result_, __LINE__)).error())
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace caisson
