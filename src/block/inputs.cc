// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "block/request.h"
#include "errors/block.h"
#include "json/path.h"
#include "json/scanner.h"

namespace caisson::block {
namespace {

using Kind = json::Value::Kind;

constexpr json::ReadOptions kOptions = {.max_depth = kMaxRequestDepth};

InputError Wrong(const json::PathBuilder& path, std::string message) {
  return {{.code = errors::kBlockRequest, .message = std::move(message)}, path.Finish()};
}

std::string Unquoted(std::string_view key) {
  auto value = json::Read(key);
  return value ? value->as_string() : std::string(key);
}

class Checker {
 public:
  explicit Checker(std::string_view name) : name_(name) {}

  // The text without space around it.
  std::expected<std::string_view, InputError> Check(const InputText& input, Kind kind,
                                                    const char* what) {
    if (input.scanned && IsGood(*input.scanned, kind)) return input.text;
    return Check(input.text, kind, what);
  }

 private:
  // False where only a look at the children can tell.
  bool IsGood(const json::ScannedChild& scanned, Kind kind) const {
    const bool any_children = name_ == "user" || name_ == "artifacts";
    return scanned.kind == kind && (any_children || (has_documents() && scanned.only_objects));
  }

  bool has_documents() const { return name_ == "documents" || name_ == "sources"; }

  std::expected<std::string_view, InputError> Check(std::string_view text, Kind kind,
                                                    const char* what) {
    auto report = json::Scan(text, kOptions, [this](const json::ScannedChild& child) {
      CheckChild(child);
      ++index_;
      return !problem_;
    });
    if (!report) return std::unexpected(InputError{std::move(report).error(), Path({}).Finish()});
    if (report->kind != kind) {
      return std::unexpected(Wrong(Path({}), std::string(name_) + " must be " + what));
    }
    if (problem_) return std::unexpected(*std::move(problem_));
    return report->text;
  }

  json::PathBuilder Path(json::PathBuilder path) const {
    path.PrependKey(name_);
    return path;
  }

  void CheckChild(const json::ScannedChild& child) {
    if (has_documents()) {
      if (child.kind == Kind::kObject) return;
      json::PathBuilder path;
      path.PrependIndex(index_);
      problem_ = Wrong(Path(std::move(path)),
                       "each item of " + std::string(name_) + " must be an object (a document)");
    } else if (name_ == "tables") {
      CheckTable(child);
    }
  }

  void CheckTable(const json::ScannedChild& table) {
    if (table.kind != Kind::kObject) return WrongTable(table, "", "a table must be an object");
    (void)json::Scan(table.text, kOptions, [&](const json::ScannedChild& member) {
      const std::string key = Unquoted(member.key);
      if (key != "rows" && key != "columnKeys") {
        WrongTable(table, key, "a table has rows and columnKeys, nothing else");
      } else if (member.kind != Kind::kArray) {
        WrongTable(table, key, key + " must be an array");
      }
      return !problem_;
    });
  }

  void WrongTable(const json::ScannedChild& table, const std::string& key, std::string message) {
    json::PathBuilder path;
    if (!key.empty()) path.PrependKey(key);
    path.PrependKey(Unquoted(table.key));
    problem_ = Wrong(Path(std::move(path)), std::move(message));
  }

  std::string_view name_;
  std::size_t index_ = 0;
  std::optional<InputError> problem_;
};

struct Input {
  std::string_view name;
  Kind kind;
  const char* what;
  std::optional<InputText> InputTexts::* text;
};

constexpr std::array kInputs = {
    Input{"user", Kind::kObject, "an object", &InputTexts::user},
    Input{"documents", Kind::kArray, "an array of documents", &InputTexts::documents},
    Input{"artifacts", Kind::kArray, "an array", &InputTexts::artifacts},
    Input{"sources", Kind::kArray, "an array of documents", &InputTexts::sources},
    Input{"tables", Kind::kObject, "an object of tables by file id", &InputTexts::tables},
};

}  // namespace

std::expected<std::string, InputError> MakeInputs(const InputTexts& texts) {
  std::size_t size = 128;
  for (const Input& input : kInputs) size += (texts.*input.text).value_or("").text.size();
  std::string out = "{";
  out.reserve(size);
  for (const Input& input : kInputs) {
    const std::string_view none = input.kind == Kind::kArray ? "[]" : "{}";
    const InputText text = (texts.*input.text).value_or(none);
    auto checked = Checker(input.name).Check(text, input.kind, input.what);
    if (!checked) return std::unexpected(std::move(checked).error());
    out.append(out.size() > 1 ? ",\"" : "\"").append(input.name).append("\":").append(*checked);
  }
  return std::move(out) + "}";
}

}  // namespace caisson::block
