// SPDX-License-Identifier: Apache-2.0
// A regular expression that is searched for in text that nobody has reviewed: PCRE2 with bounds on
// the steps, the depth and the memory of a search, so that no pattern can run away. The syntax is
// the common ground of ECMAScript's and Python's: Unicode classes (\d, \w), `$` only at the very
// end, \uXXXX, no \C. Immutable, thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"

namespace caisson::json {

class Pattern {
 public:
  // Fails with json_schema.invalid, naming the offset, or json_schema.too_large.
  static Result<Pattern> Compile(std::string_view text);

  // Whether it matches somewhere in `subject` (UTF-8). Fails with json_schema.too_costly.
  Result<bool> Matches(std::string_view subject) const;

 private:
  struct Code;
  explicit Pattern(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  std::shared_ptr<const Code> code_;
};

}  // namespace caisson::json
