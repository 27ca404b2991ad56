// SPDX-License-Identifier: Apache-2.0
#include "cli/answers.h"

#include <string>
#include <utility>

#include "errors/body.h"
#include "json/reader.h"

namespace caisson::cli {

using workflow::DiagnosticFormat;

Result<void> Answers::Add(const std::vector<workflow::Diagnostic>& diagnostics,
                          std::string_view file, std::string_view source) {
  const std::string text = workflow::Render(diagnostics, file, source, format_);
  CAISSON_ASSIGN(json::Value document, json::Read(text));
  if (format_ == DiagnosticFormat::kSarif && log_.is_object()) {
    const json::Value* runs = document.Find("runs");
    json::Value* all = log_.mutable_object().FindMutable("runs");
    if (runs != nullptr && all != nullptr) {
      for (const json::Value& run : runs->as_array()) all->mutable_array().push_back(run);
    }
    return {};
  }
  if (format_ == DiagnosticFormat::kSarif) {
    log_ = std::move(document);
  } else {
    files_.push_back(std::move(document));
  }
  return {};
}

json::Value Answers::Finish() {
  return format_ == DiagnosticFormat::kSarif ? std::move(log_) : json::Value(std::move(files_));
}

void Tally::Count(const std::vector<workflow::Diagnostic>& diagnostics) {
  ++files_;
  for (const workflow::Diagnostic& diagnostic : diagnostics) {
    ++(diagnostic.severity == workflow::Severity::kError ? errors_ : warnings_);
    of_micropython_ += diagnostic.code == errors::kBodyUnsupportedSyntax ||
                       diagnostic.code == errors::kBodyMissingMethod ||
                       diagnostic.code == errors::kBodyDiffers;
  }
}

std::string Tally::ToText() const {
  const auto count = [](std::size_t number, const char* noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
  };
  std::string text = count(files_, "file") + " checked: " + count(errors_, "error") + ", " +
                     count(warnings_, "warning") + "\n";
  if (of_micropython_ > 0) {
    text += std::to_string(of_micropython_) +
            " of them come from MicroPython; code nodes that run in CPython do without: --runtime "
            "cpython, after `caisson runtimes install cpython`\n";
  }
  return text;
}

}  // namespace caisson::cli
