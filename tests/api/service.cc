// SPDX-License-Identifier: Apache-2.0
// api-service DIRECTORY: the whole API on a free port of 127.0.0.1 over a HostDriver, for tests
// that need a service and no real machines. Prints one JSON object: the URL and the keys of two
// tenants, the first of an administrator. Ends when standard input does.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "api/api.h"
#include "api/text.h"
#include "control/identity.h"
#include "host_driver.h"
#include "store/sqlite/store.h"

namespace caisson::tests {
namespace {

Result<void> Serve(const std::string& directory) {
  CAISSON_ASSIGN(const auto store, store::sqlite::Open(directory + "/store.db"));
  CAISSON_ASSIGN(const auto admin,
                 control::CreateKey(*store, "alice", "first", true, api::NowMilliseconds()));
  CAISSON_ASSIGN(const auto other,
                 control::CreateKey(*store, "bob", "first", false, api::NowMilliseconds()));
  HostDriver driver(directory);
  control::SandboxesOptions options;
  options.catalogue = [] {
    return std::vector<control::RootImage>{
        {.name = "devbox:1", .description = "this host", .image = "0"}};
  };
  options.host_now = [] { return control::HostNow{1 << 14, 1 << 16}; };
  options.now = api::NowMilliseconds;
  options.answers = [](machine::Driver& of, const std::string& id) {
    auto fd = of.Connect(id);
    return fd && agent::Ping(*std::move(fd));
  };
  control::Sandboxes sandboxes(options, *store, driver);
  CAISSON_TRY(sandboxes.Adopt());
  control::Templates templates(sandboxes);
  control::Pools pools(sandboxes);
  api::Log log(STDERR_FILENO);
  api::Context context(
      {.version = "test", .public_url = "http://127.0.0.1", .ingress_domain = "test"}, sandboxes,
      templates, pools, log);
  CAISSON_ASSIGN(const auto server, http::Server::Start({.listeners = {{.address = "127.0.0.1:0"}},
                                                         .error_answer = api::MakeErrorAnswer(),
                                                         .served = api::MakeServedHook(context)},
                                                        api::MakeRouter(context)));
  const std::jthread tending([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      sandboxes.Tend();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  fmt::print("{{\"url\":\"http://127.0.0.1:{}\",\"key\":\"{}\",\"other_key\":\"{}\"}}\n",
             server->port(), admin.secret, other.secret);
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
  sandboxes.Drain();
  server->Drain(std::chrono::seconds(5));
  return {};
}

}  // namespace
}  // namespace caisson::tests

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  if (argc != 2) return 2;
  if (auto served = caisson::tests::Serve(argv[1]); !served) {
    std::fprintf(stderr, "%s: %s\n", std::string(served.error().code.name).c_str(),
                 served.error().message.c_str());
    return 1;
  }
}
