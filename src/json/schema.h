// SPDX-License-Identifier: Apache-2.0
// JSON Schema 2020-12, the part that model libraries write: compiled once, then run against values.
// `format` and unknown keywords are annotations, as the standard says. What would change a verdict
// and is not had ($dynamicRef, unevaluated*, references to other documents, older drafts) is
// refused when the schema is compiled. Numbers are compared exactly, lengths count code points, 1
// and 1.0 are equal. No schema and no value can make a check run away: depth and steps are bounded.
// A Schema is immutable and thread-safe; copies are O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace caisson::json {

struct SchemaLimits {
  std::size_t max_violations = 20;   // further ones are counted, not listed
  std::int64_t max_steps = 2000000;  // keywords run and values compared
  int max_depth = 400;               // of values, references and combinations together
};

// One thing that is wrong with a value.
struct Violation {
  std::string path;     // of the value: "$.items[2].name"
  std::string keyword;  // the rule that it breaks: "minimum"
  std::string message;  // "must be at least 1, not 0"
  bool operator==(const Violation&) const = default;
};

struct Verdict {
  std::vector<Violation> violations;  // in the order of the value's own members
  std::size_t more = 0;               // further violations that are not listed
  bool ok() const { return violations.empty(); }
  // "$.limit: must be at least 1, not 0; $.text: is required", for a model or an author.
  std::string Text() const;
};

class Schema {
 public:
  // Fails with json_schema.invalid, json_schema.unsupported, json_schema.reference or
  // json_schema.too_large; the message begins with the path of the fault within the schema.
  static Result<Schema> Compile(const Value& document);

  // Fails with json_schema.too_costly or json_schema.too_deep when no verdict could be reached; a
  // caller must take that for a refusal.
  Result<Verdict> Check(const Value& instance, const SchemaLimits& limits = {}) const;

 private:
  struct Rules;
  friend class SchemaCompiler;
  friend class SchemaCheck;
  explicit Schema(std::shared_ptr<const Rules> rules) : rules_(std::move(rules)) {}

  std::shared_ptr<const Rules> rules_;
};

}  // namespace caisson::json
