// SPDX-License-Identifier: Apache-2.0
#include "cli/sandbox.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "base/foreign_text.h"
#include "cli/commands.h"
#include "cli/service.h"
#include "errors/cli.h"

namespace caisson::cli {
namespace {

std::int64_t Seconds(std::chrono::milliseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// What create and fork have in common.
Result<json::Object> ReadMaking(const SandboxArguments& arguments) {
  json::Object body;
  if (arguments.name) body.Set("name", *arguments.name);
  CAISSON_ASSIGN(json::Object labels, ReadPairs(arguments.labels, "--label", false));
  CAISSON_ASSIGN(json::Object envs, ReadPairs(arguments.envs, "--env", true));
  if (!labels.empty()) body.Set("labels", std::move(labels));
  if (!envs.empty()) body.Set("envs", std::move(envs));
  if (!arguments.egress.empty()) {
    body.Set("egress", json::Array(arguments.egress.begin(), arguments.egress.end()));
  }
  if (arguments.ingress) body.Set("ingress_enabled", true);
  return body;
}

Result<std::string> LabelQuery(const SandboxArguments& arguments) {
  CAISSON_TRY(ReadPairs(arguments.labels, "--label", false));
  std::string query;
  for (const std::string& label : arguments.labels) {
    query += (query.empty() ? "?label=" : "&label=") + http::PercentEncode(label);
  }
  return query;
}

std::string ToTable(const json::Array& all) {
  std::string text = fmt::format("{:<30} {:<23} {:<11} {:<15} {:<14} {}\n", "ID", "NAME", "STATUS",
                                 "SHAPE", "ROOTFS", "CREATED");
  for (const json::Value& one : all) {
    text +=
        fmt::format("{:<30} {:<23} {:<11} {:<15} {:<14} {}\n", ShowForeignLine(TextOf(one, "id")),
                    ShowForeignLine(TextOf(one, "name")), ShowForeignLine(TextOf(one, "status")),
                    ShowForeignLine(TextOf(one, "shape")), ShowForeignLine(TextOf(one, "rootfs")),
                    ShowForeignLine(TextOf(one, "created_at")));
  }
  return text;
}

// Of "2026-01-31T12:00:00.123Z"; 0 when it is none.
std::time_t TimeOf(const std::string& text) {
  std::tm parts{};
  return strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr ? 0 : timegm(&parts);
}

Result<ExitCode> Print(const json::Value& value, Console& console) {
  return PrintJson(value, console);
}

// One call for each sandbox that is named; goes on after one that fails.
Result<ExitCode> ForEach(const SandboxArguments& arguments, ServiceClient& client, Console& console,
                         const std::string& method, const std::string& suffix) {
  ExitCode code = ExitCode::kOk;
  json::Array done;
  for (const std::string& name : arguments.names) {
    auto path = client.PathOf(name);
    auto answer =
        path ? client.Call(method, *path + suffix) : Result<json::Value>(Fail(path.error()));
    if (answer) {
      done.push_back(*answer);
    } else {
      code = console.Complain(answer.error());
    }
  }
  const ExitCode printed = PrintJson(json::Object{{"sandboxes", std::move(done)}}, console);
  return code == ExitCode::kOk ? printed : code;
}

Result<ExitCode> Act(const SandboxArguments& arguments, ServiceClient& client, Console& console) {
  using enum SandboxArguments::Action;
  switch (arguments.action) {
    case kCreate:
      return SandboxCreate(arguments, client, console);
    case kList:
      return SandboxList(arguments, client, console);
    case kExec:
      return SandboxExec(arguments, client, console);
    case kCopy:
      return SandboxCopy(arguments, client, console);
    case kLogs:
      return SandboxLogs(arguments, client, console);
    case kPause:
      return ForEach(arguments, client, console, "POST", "/pause");
    case kResume:
      return ForEach(arguments, client, console, "POST", "/resume");
    case kFork:
      return SandboxFork(arguments, client, console);
    case kRemove:
      return ForEach(arguments, client, console, "DELETE", "");
    case kReap:
      return SandboxReap(arguments, client, console);
    case kShell:
      return SandboxShell(arguments, client, console);
    case kEgress:
      return SandboxEgress(arguments, client, console);
    case kNetworks:
      return SandboxNetworks(arguments, client, console);
    case kJoin:
    case kLeave:
      return SandboxJoin(arguments, client, console);
  }
  std::abort();
}

}  // namespace

Result<json::Object> ReadPairs(const std::vector<std::string>& pairs, const char* option,
                               bool from_environment) {
  json::Object out;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    const std::string key = pair.substr(0, equals);
    const char* here = from_environment ? std::getenv(key.c_str()) : nullptr;
    if (key.empty() || (equals == std::string::npos && here == nullptr)) {
      return Fail(
          errors::kCliUsage,
          fmt::format("{} must be KEY=VALUE{}, not '{}'", option,
                      from_environment ? ", or the name of a variable that is set here" : "",
                      ShowForeignLine(pair)));
    }
    out.Set(key, equals == std::string::npos ? std::string(here) : pair.substr(equals + 1));
  }
  return out;
}

Result<ExitCode> SandboxCreate(const SandboxArguments& arguments, ServiceClient& client,
                               Console& console) {
  CAISSON_ASSIGN(json::Object body, ReadMaking(arguments));
  body.Set("shape", arguments.shape);
  if (arguments.rootfs) body.Set("rootfs", *arguments.rootfs);
  if (arguments.driver) body.Set("driver", *arguments.driver);
  if (arguments.auto_pause) body.Set("auto_pause_after_seconds", Seconds(*arguments.auto_pause));
  if (arguments.delete_after) body.Set("delete_after_seconds", Seconds(*arguments.delete_after));
  CAISSON_ASSIGN(const json::Value view, client.Call("POST", "/v1/sandboxes", std::move(body)));
  return Print(view, console);
}

Result<ExitCode> SandboxFork(const SandboxArguments& arguments, ServiceClient& client,
                             Console& console) {
  CAISSON_ASSIGN(json::Object body, ReadMaking(arguments));
  if (arguments.start_paused) body.Set("start_paused", true);
  if (!arguments.extent.empty()) body.Set("extent", arguments.extent);
  CAISSON_ASSIGN(const std::string path, client.PathOf(arguments.names.at(0)));
  CAISSON_ASSIGN(const json::Value view, client.Call("POST", path + "/fork", std::move(body)));
  return Print(view, console);
}

Result<ExitCode> SandboxList(const SandboxArguments& arguments, ServiceClient& client,
                             Console& console) {
  CAISSON_ASSIGN(const std::string query, LabelQuery(arguments));
  CAISSON_ASSIGN(json::Array all, client.List("/v1/sandboxes" + query));
  if (arguments.all) {
    CAISSON_ASSIGN(const json::Array gone,
                   client.List("/v1/sandboxes" + query + (query.empty() ? "?" : "&") +
                               "status=destroying,destroyed"));
    all.insert(all.end(), gone.begin(), gone.end());
  }
  if (!arguments.json) return PrintText(ToTable(all), console);
  return Print(json::Object{{"sandboxes", std::move(all)}}, console);
}

Result<ExitCode> SandboxReap(const SandboxArguments& arguments, ServiceClient& client,
                             Console& console) {
  if (arguments.labels.empty() && !arguments.idle && !arguments.all) {
    return Fail(errors::kCliUsage, "say which: --label, --idle, or --all for every sandbox");
  }
  CAISSON_ASSIGN(const std::string query, LabelQuery(arguments));
  CAISSON_ASSIGN(const json::Array all, client.List("/v1/sandboxes" + query));
  json::Array reaped;
  ExitCode code = ExitCode::kOk;
  for (const json::Value& one : all) {
    const std::time_t used =
        std::max(TimeOf(TextOf(one, "created_at")), TimeOf(TextOf(one, "last_resumed_at")));
    if (arguments.idle && std::time(nullptr) - used < Seconds(*arguments.idle)) continue;
    const std::string id = TextOf(one, "id");
    if (!arguments.dry_run) {
      auto gone = client.Call("DELETE", "/v1/sandboxes/" + http::PercentEncode(id));
      if (!gone) {
        code = console.Complain(gone.error());
        continue;
      }
    }
    reaped.emplace_back(id);
  }
  const ExitCode printed = PrintJson(json::Object{{"reaped", std::move(reaped)}}, console);
  return code == ExitCode::kOk ? printed : code;
}

ExitCode Sandbox(const SandboxArguments& arguments, Console& console) {
  auto client = ServiceClient::Make(arguments.connection);
  if (!client) return console.Complain(client.error());
  auto code = Act(arguments, *client, console);
  return code ? *code : console.Complain(code.error());
}

}  // namespace caisson::cli
