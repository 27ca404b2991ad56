// SPDX-License-Identifier: Apache-2.0
// A double of Firecracker, for tests: its command line, its API over a Unix socket with all of its
// rules (api_model.h), its files; in place of a virtual machine it has a process (guest.h). Wishes
// for what goes wrong are in control.h: "version", "trial" (ends with that text), "refuse",
// "stall" and "end" (a path of the API each), "full" (the disk), "silent_guest", "dead_streams".
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/digest/sha256.h"
#include "http/server.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/firecracker/fake/api_model.h"
#include "machine/firecracker/fake/control.h"
#include "machine/firecracker/fake/guest.h"
#include "os/fd.h"

namespace {

namespace fake = caisson::machine::firecracker::fake;
namespace http = caisson::http;
namespace json = caisson::json;
using caisson::Result;

constexpr const char* kVersion = "v1.12.1";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string TextOf(const json::Value& value, std::string_view key) {
  const json::Value* found = value.Find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
}

// A saved machine: its memory at the front of a file of the memory's size, and in the other its
// devices with a sum of both.
class Machine final : public fake::Effects {
 public:
  explicit Machine(fake::Guest guest) : guest_(std::move(guest)) {}

  std::string Boot(const json::Object& resources) override { return Begin(resources, ""); }
  std::string Load(const json::Value& parameters, json::Object& resources) override {
    const json::Value* backend = parameters.Find("mem_backend");
    const std::string memory = ReadMemory(backend != nullptr ? TextOf(*backend, "backend_path")
                                                             : TextOf(parameters, "mem_file_path"));
    const auto state = json::Read(ReadFile(TextOf(parameters, "snapshot_path")));
    if (!state || !state->is_object() ||
        TextOf(*state, "sum") != SumOf(*state->Find("resources"))) {
      return "Load snapshot error: Failed to restore from snapshot: Failed to get snapshot state "
             "from file: CRC64 validation failed";
    }
    resources = state->Find("resources")->as_object();
    std::string why = Begin(resources, memory);
    if (why.empty()) guest_.Pause();
    return why;
  }
  std::string Save(const json::Value& parameters, const json::Object& resources) override {
    if (fake::ReadControl("full")) {
      return "Create snapshot error: Cannot write memory file: Error writing to file: No space "
             "left on device (os error 28)";
    }
    const json::Value devices(resources);
    const std::string state =
        json::Write(json::Object{{"resources", devices}, {"sum", SumOf(devices)}}).value_or("");
    const auto bytes = resources.Find("/machine-config")->Find("mem_size_mib")->as_int() << 20;
    guest_.ResetTransport();
    if (!WriteFile(TextOf(parameters, "mem_file_path"), guest_.Memory(), bytes) ||
        !WriteFile(TextOf(parameters, "snapshot_path"), state, 0)) {
      return "Create snapshot error: Cannot perform open on the memory backing file: Permission "
             "denied (os error 13)";
    }
    return "";
  }
  void Pause() override { guest_.Pause(); }
  void Resume() override { guest_.Resume(); }

 private:
  std::string Begin(const json::Object& resources, const std::string& memory) {
    const json::Value* card = resources.Find("/network-interfaces/eth0");
    if (card != nullptr && !OpenTap(TextOf(*card, "host_dev_name"))) {
      return std::string("Network config error: Open tap device failed: ") + std::strerror(errno);
    }
    return guest_.Begin(resources, memory);
  }
  // With the rights that it has, in the network namespace that it is in.
  bool OpenTap(const std::string& name) {
    tap_.Reset(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    ifreq request{};
    std::strncpy(request.ifr_name, name.c_str(), sizeof request.ifr_name - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    return tap_.valid() && ::ioctl(tap_.get(), TUNSETIFF, &request) == 0;
  }
  static std::string SumOf(const json::Value& value) {
    return caisson::digest::Sha256Hex(json::WriteCanonical(value).value_or(""));
  }
  static std::string ReadMemory(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text;
    std::getline(file, text, '\0');
    return text;
  }
  // As Firecracker opens it: made when it is missing, emptied when it is there.
  static bool WriteFile(const std::string& path, const std::string& text, std::int64_t size) {
    const caisson::os::UniqueFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    return file.valid() && (size == 0 || ::ftruncate(file.get(), size) == 0) &&
           ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  fake::Guest guest_;
  caisson::os::UniqueFd tap_;
};

// The wish has a path a line.
bool IsWished(const char* wish, const std::string& path) {
  std::istringstream lines(fake::ReadControl(wish).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line == path) return true;
  }
  return false;
}

class Server {
 public:
  explicit Server(fake::Guest guest) : machine_(std::move(guest)), model_(machine_) {}

  Result<void> Serve(const std::string& socket) {
    http::Router router;
    router.Add("* /{rest...}",
               {true, [this](http::Exchange& exchange) { return Answer(exchange); }});
    http::Options options;
    options.listeners = {{"unix:" + socket, {}}};
    CAISSON_ASSIGN(server_, http::Server::Start(std::move(options), std::move(router)));
    return {};
  }

 private:
  Result<void> Answer(http::Exchange& exchange) {
    const http::Request& request = exchange.request();
    CAISSON_ASSIGN(const std::string body, exchange.ReadBody(1 << 20));
    fake::Record(request.method + " " + request.raw_path + " " + body);
    if (IsWished("stall", request.raw_path)) std::this_thread::sleep_for(std::chrono::hours(1));
    if (IsWished("end", request.raw_path)) ::_exit(1);
    fake::Answer answer;
    {
      const std::lock_guard lock(mutex_);
      if (request.headers.Find("Content-Type") == nullptr ||
          *request.headers.Find("Content-Type") != "application/json") {
        answer = {.status = 400, .body = R"({"fault_message":"Unsupported media type"})"};
      } else if (IsWished("refuse", request.raw_path)) {
        answer = {.status = 400, .body = R"({"fault_message":"as it was wished"})"};
      } else {
        answer = model_.Handle(request.method, request.raw_path, body);
      }
    }
    if (answer.status != 204) fake::Record(" -> " + answer.body);
    auto responded = exchange.Respond(
        answer.status, {{"Server", "Firecracker API"}, {"Content-Type", "application/json"}},
        answer.body);
    if (answer.ends) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ::_exit(153);
    }
    return responded;
  }

  std::mutex mutex_;
  Machine machine_;
  fake::ApiModel model_;
  std::unique_ptr<http::Server> server_;
};

// A configuration file in place of the API: the same rules, and then the guest's first words.
int RunTrial(const std::string& file) {
  const auto config = json::Read(ReadFile(file));
  if (!config || config->Find("drives") == nullptr) {
    std::fputs("Configuration for VMM from one single json failed: missing field `drives`\n",
               stderr);
    return 152;
  }
  class Nothing final : public fake::Effects {
    std::string Boot(const json::Object&) override { return ""; }
    std::string Load(const json::Value&, json::Object&) override { return "no"; }
    std::string Save(const json::Value&, const json::Object&) override { return "no"; }
    void Pause() override {}
    void Resume() override {}
  } nothing;
  fake::ApiModel model(nothing);
  for (const char* part : {"boot-source", "machine-config"}) {
    const json::Value* value = config->Find(part);
    const auto answer = model.Handle("PUT", std::string("/") + part,
                                     value == nullptr ? "" : json::Write(*value).value_or(""));
    if (answer.status != 204) {
      std::fprintf(stderr, "%s\n", answer.body.c_str());
      return 152;
    }
  }
  if (const auto wish = fake::ReadControl("trial")) {
    std::fprintf(stderr, "%s\n", wish->c_str());
    return 148;
  }
  const json::Value* arguments = config->Find("boot-source")->Find("boot_args");
  if (arguments->as_string().find("caisson.trial") == std::string::npos) return 1;
  std::puts("caisson-guest-init: trial");
  return 0;
}

int Main(const std::vector<std::string>& words) {
  std::string socket, config;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_value = i + 1 < words.size();
    if (word == "--version") {
      std::printf("Firecracker %s\n\n", fake::ReadControl("version").value_or(kVersion).c_str());
      return 0;
    }
    if (word == "--no-api") continue;
    if (has_value && word == "--api-sock") {
      socket = words[++i];
    } else if (has_value && word == "--config-file") {
      config = words[++i];
    } else if (has_value && (word == "--id" || word == "--start-time-us" ||
                             word == "--start-time-cpu-us" || word == "--parent-cpu-time-us")) {
      ++i;
    } else {
      std::fprintf(stderr, "Arguments parsing error: Found argument '%s' which wasn't expected\n",
                   word.c_str());
      return 153;
    }
  }
  if (!config.empty()) return RunTrial(config);
  fake::Guest guest = fake::Guest::Make();
  Server server(std::move(guest));
  if (const auto served = server.Serve(socket); !served) {
    std::fprintf(stderr, "Failed to open the API socket: %s\n", served.error().message.c_str());
    return 1;
  }
  for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) { return Main({argv, argv + argc}); }
