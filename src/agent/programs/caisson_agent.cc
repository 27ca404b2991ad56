// SPDX-License-Identifier: Apache-2.0
// caisson-agent [--listen-fd N | --listen-path PATH | --port PATH | --vsock PORT | --stream-fd N]
//               [--cgroup-procs FD[,FD…]] [--command-processes N] [--self-port PORT]
//
// The agent that runs inside a machine, as pid 1 of a jail or as a service of a virtual machine.
// Descriptor 3, or N, is a listening stream socket, or it makes one at PATH. In a virtual machine
// the host comes through a virtual serial port, or connects by vsock (or to the socket that listens
// as N). As `timeout` it is timeout(1).
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "agent/guest/agent.h"
#include "agent/guest/timeout.h"

namespace {

using caisson::agent::guest::Options;

constexpr char kUsage[] =
    "usage: caisson-agent [--listen-fd N | --listen-path PATH | --port PATH |\n"
    "                      --vsock PORT | --stream-fd N] [--cgroup-procs FD[,FD...]]\n"
    "                     [--command-processes N] [--self-port PORT]\n";

std::optional<int> ReadNumber(std::string_view text, int most) {
  int number = 0;
  if (text.empty()) return std::nullopt;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + (digit - '0');
    if (number > most) return std::nullopt;
  }
  return number;
}

bool ReadOption(std::string_view name, std::string_view value, Options& options) {
  if (name == "--cgroup-procs") {
    for (std::size_t begin = 0; begin <= value.size();) {
      const std::size_t end = std::min(value.find(',', begin), value.size());
      const auto fd = ReadNumber(value.substr(begin, end - begin), 1 << 20);
      if (!fd) return false;
      options.cgroup_procs.push_back(*fd);
      begin = end + 1;
    }
    return true;
  }
  if (name == "--port") {
    options.port = value;
    return value.starts_with('/');
  }
  if (name == "--listen-path") {
    options.listen_path = value;
    return value.starts_with('/');
  }
  const auto number = ReadNumber(value, name == "--self-port" ? 65'535 : 1 << 20);
  if (!number) return false;
  if (name == "--listen-fd") {
    options.listener = *number;
  } else if (name == "--stream-fd") {
    options.stream_listener = *number;
  } else if (name == "--vsock") {
    options.vsock_port = static_cast<std::uint32_t>(*number);
  } else if (name == "--command-processes") {
    options.command_processes = static_cast<std::uint64_t>(*number);
  } else if (name == "--self-port") {
    options.self_port = static_cast<std::uint16_t>(*number);
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view program = argc > 0 ? argv[0] : "";
  if (program.substr(program.rfind('/') + 1) == "timeout") {
    return caisson::agent::guest::TimeoutMain(argc, argv);
  }
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && ReadOption(argv[i], argv[i + 1], options)) continue;
    std::fprintf(stderr, "caisson-agent: %s is no option with a valid value\n%s", argv[i], kUsage);
    return 2;
  }
  const std::string problem = caisson::agent::guest::RunAgent(options);
  std::fprintf(stderr, "caisson-agent: %s\n", problem.c_str());
  return 1;
}
