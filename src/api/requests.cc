// SPDX-License-Identifier: Apache-2.0
#include "api/requests.h"

#include <fmt/format.h>

#include <charconv>

#include "control/request_check.h"
#include "control/warm_process.h"
#include "errors/api.h"

namespace caisson::api {
namespace {

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace

Result<agent::Command> ReadCommand(const Fields& fields, const store::Sandbox& sandbox,
                                   const std::string& standard) {
  agent::Command command;
  CAISSON_ASSIGN(auto cmd, fields.Text("cmd"));
  CAISSON_ASSIGN(auto args, fields.TextList("args"));
  CAISSON_ASSIGN(auto env, fields.TextMap("env"));
  CAISSON_ASSIGN(auto cwd, fields.Text("cwd"));
  if (!cmd || cmd->empty()) {
    if (standard.empty()) return control::FailAt("cmd", errors::kApiField, "$.cmd is required");
    cmd = standard;
  }
  command.argv.push_back(*std::move(cmd));
  if (args) command.argv.insert(command.argv.end(), args->begin(), args->end());
  for (const std::string& argument : command.argv) {
    if (HasNul(argument)) {
      return control::FailAt("args", errors::kApiField, "a command and its arguments have no NUL");
    }
  }
  if (cwd && !cwd->empty() && (cwd->front() != '/' || HasNul(*cwd))) {
    return control::FailAt("cwd", errors::kApiField, "$.cwd must be an absolute path");
  }
  command.cwd = cwd && !cwd->empty() ? *std::move(cwd) : control::CommandDirectory(sandbox);
  command.env = control::CommandEnvironment(sandbox);
  if (env) {
    CAISSON_TRY(control::CheckOverrides(*env, sandbox.envs));
    for (const auto& [name, value] : *env) command.env[name] = value;
  }
  return command;
}

Result<std::string> ReadPath(const http::Request& request) {
  const std::string* path = request.Query("path");
  if (path == nullptr || path->empty() || path->front() != '/' || HasNul(*path)) {
    return control::FailAt("path", errors::kApiField, "must be an absolute path in ?path=");
  }
  return *path;
}

Result<std::int64_t> ReadQueryNumber(const http::Request& request, const std::string& name,
                                     std::int64_t standard, std::int64_t most) {
  const std::string* text = request.Query(name);
  if (text == nullptr || text->empty()) return standard;
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (problem != std::errc() || end != text->data() + text->size() || value < 0 || value > most) {
    return control::FailAt(name, errors::kApiField,
                           fmt::format("must be a number from 0 to {}", most));
  }
  return value;
}

Result<std::uint16_t> ParsePort(std::string_view text) {
  unsigned port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || port < 1 || port > 65535) {
    return control::FailAt("port", errors::kApiField, "must be a number from 1 to 65535");
  }
  return static_cast<std::uint16_t>(port);
}

}  // namespace caisson::api
