// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "cli/commands.h"
#include "cli/mode.h"
#include "cli/source.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::cli {
namespace {

using workflow::DiagnosticFormat;

// Collects the machine-readable answers of several files into one document: an array of one
// document per file, or one SARIF log with all runs.
class Answers {
 public:
  explicit Answers(DiagnosticFormat format) : format_(format) {}

  Result<void> Add(const LoadedSource& source) {
    const std::string text =
        workflow::Render(source.diagnostics, source.name, source.text, format_);
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

  json::Value Finish() {
    return format_ == DiagnosticFormat::kSarif ? std::move(log_) : json::Value(std::move(files_));
  }

 private:
  DiagnosticFormat format_;
  json::Array files_;
  json::Value log_;
};

struct Tally {
  std::size_t files = 0;
  std::size_t errors = 0;
  std::size_t warnings = 0;

  void Count(const LoadedSource& source) {
    ++files;
    for (const workflow::Diagnostic& diagnostic : source.diagnostics) {
      ++(diagnostic.severity == workflow::Severity::kError ? errors : warnings);
    }
  }
  std::string ToText() const {
    const auto count = [](std::size_t number, const char* noun) {
      return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
    };
    return count(files, "file") + " checked: " + count(errors, "error") + ", " +
           count(warnings, "warning") + "\n";
  }
};

}  // namespace

ExitCode Check(const CheckArguments& arguments, Console& console) {
  auto mode = ChooseMode(arguments.source.mode, [](const char* name) { return std::getenv(name); });
  if (!mode) return console.Complain(mode.error());
  const DiagnosticFormat format = arguments.source.format;
  Answers answers(format);
  Tally tally;
  ExitCode worst = ExitCode::kOk;
  const auto note = [&](ExitCode code) {
    if (worst == ExitCode::kOk) worst = code;
  };
  for (const std::string& file : arguments.files) {
    auto source = LoadSource(file, arguments.source);
    if (!source) {
      note(console.Complain(source.error()));
      continue;
    }
    tally.Count(*source);
    if (format == DiagnosticFormat::kText) {
      note(ReportDiagnostics(*source, format, console));
      continue;
    }
    note(Verdict(*source));
    if (auto added = answers.Add(*source); !added) note(console.Complain(added.error()));
  }
  if (format == DiagnosticFormat::kText) {
    console.Say(tally.ToText());
  } else {
    note(PrintJson(answers.Finish(), console));
  }
  return worst;
}

}  // namespace caisson::cli
