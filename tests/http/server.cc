// SPDX-License-Identifier: Apache-2.0
// The test server of src/http as a program, for peers: prints its ports (plain, TLS when a
// certificate is given) and serves until its standard input ends.
// usage: http_test_server [--unix PATH] [CERTIFICATE KEY]
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "http/test_server.h"

int main(int count, char** arguments) {
  std::vector<std::string> rest(arguments + 1, arguments + count);
  std::vector<caisson::http::Listener> listeners{{"127.0.0.1:0", {}}};
  if (rest.size() >= 2 && rest[0] == "--unix") {
    listeners.push_back({"unix:" + rest[1], {}});
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  if (rest.size() == 2) {
    listeners.push_back({"127.0.0.1:0", caisson::http::TlsFiles{rest[0], rest[1]}});
  }
  caisson::http::Limits limits;
  limits.connections = 12'000;
  caisson::http::TestServer test(limits, listeners);
  std::printf("%u %u\n", test.port(0), test.port(listeners.size() - 1));
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return test.server->Drain(caisson::http::milliseconds(2000)) ? 0 : 1;
}
