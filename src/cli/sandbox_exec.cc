// SPDX-License-Identifier: Apache-2.0
// sandbox exec and sandbox logs: what ran and what it printed, as it is.
#include <fmt/format.h>
#include <unistd.h>

#include "api/text.h"
#include "base/foreign_text.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/sandbox.h"
#include "errors/cli.h"
#include "errors/http.h"
#include "os/write_all.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMostInput = 24u << 20;

// A command's output is for whoever asked for it, so it goes out as it is.
Result<void> WriteTo(int descriptor, std::string_view bytes) {
  if (os::WriteAll(descriptor, bytes) == 0) return {};
  return Fail(errors::kCliFileUnwritable, "the output cannot be written any more");
}

Result<json::Object> RequestOf(const SandboxArguments& arguments) {
  json::Object body{{"cmd", arguments.command.at(0)},
                    {"args", json::Array(arguments.command.begin() + 1, arguments.command.end())},
                    {"stream", true}};
  CAISSON_ASSIGN(json::Object env, ReadPairs(arguments.envs, "--env", true));
  if (!env.empty()) body.Set("env", std::move(env));
  if (arguments.cwd) body.Set("cwd", *arguments.cwd);
  if (arguments.timeout) {
    body.Set("timeout_seconds", static_cast<double>(arguments.timeout->count()) / 1000);
  }
  if (arguments.interactive) {
    CAISSON_ASSIGN(std::string input, ReadFile("-", kMostInput));
    body.Set("stdin", std::move(input));
  }
  return body;
}

}  // namespace

Result<ExitCode> SandboxExec(const SandboxArguments& arguments, ServiceClient& client,
                             Console& console) {
  CAISSON_ASSIGN(json::Object body, RequestOf(arguments));
  const Interrupt interrupt(console);
  CAISSON_ASSIGN(const std::string path, client.PathOf(arguments.names.at(0)));
  std::optional<int> exit_code;
  auto streamed = client.Stream(
      "POST", path + "/exec?stream=true", std::move(body),
      [&](const json::Value& frame) -> Result<bool> {
        CAISSON_TRY(WriteTo(STDOUT_FILENO, TextOf(frame, "stdout")));
        CAISSON_TRY(WriteTo(STDERR_FILENO, TextOf(frame, "stderr")));
        if (const std::string error = TextOf(frame, "error"); !error.empty()) {
          console.Warn(ShowForeignLine(error));
        }
        if (frame.Find("exit_code") != nullptr) {
          exit_code = static_cast<int>(NumberOf(frame, "exit_code"));
        }
        return true;
      },
      interrupt.token());
  if (interrupt.token().stop_requested()) {
    return Fail(errors::kCliCancelled, "interrupted; the command was killed");
  }
  CAISSON_TRY(streamed);
  if (!exit_code) return Fail(errors::kHttpBroken, "how the command ended is not known");
  return static_cast<ExitCode>(*exit_code & 0xFF);
}

namespace {

Result<void> ShowProcess(const json::Value& process, const std::string& path, bool follow,
                         ServiceClient& client, const std::stop_token& stop) {
  const json::Value* output = process.Find("output");
  const std::int64_t newest = output != nullptr ? NumberOf(*output, "newest_seq") : 0;
  if (!follow && newest == 0) return {};
  return client.Stream(
      "GET",
      fmt::format("{}/processes/{}/connect?after=0", path,
                  http::PercentEncode(TextOf(process, "process_id"))),
      {},
      [&](const json::Value& event) -> Result<bool> {
        const auto data = api::FromBase64(TextOf(event, "data_base64"));
        const bool is_error = TextOf(event, "stream") == "stderr";
        if (data) CAISSON_TRY(WriteTo(is_error ? STDERR_FILENO : STDOUT_FILENO, *data));
        return TextOf(event, "type") != "exit" && (follow || NumberOf(event, "seq") < newest);
      },
      stop);
}

}  // namespace

Result<ExitCode> SandboxLogs(const SandboxArguments& arguments, ServiceClient& client,
                             Console& console) {
  const Interrupt interrupt(console);
  CAISSON_ASSIGN(const std::string path, client.PathOf(arguments.names.at(0)));
  CAISSON_ASSIGN(const json::Value answer, client.Call("GET", path + "/processes"));
  const json::Value* processes = answer.Find("processes");
  bool found = false;
  for (const json::Value& process :
       processes != nullptr && processes->is_array() ? processes->as_array() : json::Array()) {
    if (arguments.process && TextOf(process, "process_id") != *arguments.process) continue;
    found = true;
    CAISSON_TRY(ShowProcess(process, path, arguments.follow, client, interrupt.token()));
  }
  if (!found) {
    console.Warn(arguments.process
                     ? "there is no such managed process"
                     : "there are no managed processes; exec shows its output itself");
  }
  return ExitCode::kOk;
}

}  // namespace caisson::cli
