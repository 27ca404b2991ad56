// SPDX-License-Identifier: Apache-2.0
// Reads one line of the block protocol (docs/block-protocol.md) into a request. The documents of a
// run are checked and copied as text, never made into values: what the script receives is what was
// sent, and a line takes no more memory than itself and its copy.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "block/limits.h"
#include "isolate/script.h"
#include "json/scanner.h"
#include "json/value.h"

namespace caisson::block {

inline constexpr std::size_t kMaxIdBytes = 128;
inline constexpr std::size_t kMaxRequestDepth = 512;

struct RunRequest {
  std::string id;
  isolate::ScriptJob job;  // without imports
  std::string runtime;     // "": the default
  bool debug = true;
  std::optional<std::uint64_t> credit;  // none: no window
};

struct CancelRequest {
  std::string id;
};

struct CreditRequest {
  std::string id;
  std::uint64_t bytes = 0;
};

using Request = std::variant<RunRequest, CancelRequest, CreditRequest>;

struct RequestError {
  Status status;     // block.line_syntax, block.request, block.limit_too_high
  std::string path;  // "$.documents[0]"; "" where there is none
  std::string id;    // where the line has a usable one
  std::string op;    // the same
};

// `line` without its line end.
std::expected<Request, RequestError> ReadRequest(std::string_view line, const LimitPolicy& policy);

// An input as JSON text, and what a scan of a text that holds it has found, so that it need not be
// read again.
struct InputText {
  template <std::convertible_to<std::string_view> T>
  InputText(const T& json) : text(json) {}
  InputText(const json::ScannedChild& child) : text(child.text), scanned(child) {}

  std::string_view text;
  std::optional<json::ScannedChild> scanned;
};

// The inputs of a script; what is not given is empty.
struct InputTexts {
  std::optional<InputText> user;
  std::optional<InputText> documents;
  std::optional<InputText> artifacts;
  std::optional<InputText> sources;
  std::optional<InputText> tables;
};

// What is wrong with inputs; `path` begins with the name of the input ("$.documents[0]").
struct InputError {
  Status status;
  std::string path;
};

// The JSON object that ScriptJob::inputs wants. Fails with json.syntax and its like, or
// block.request.
std::expected<std::string, InputError> MakeInputs(const InputTexts& texts);

// The JSON object that ScriptJob::options wants. Fails with block.request.
std::expected<std::string, InputError> MakeOptions(const json::Value& options);

}  // namespace caisson::block
