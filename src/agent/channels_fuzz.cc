// SPDX-License-Identifier: Apache-2.0
// Both sides of a stream of channels, fed with anything: neither crashes, each tells nothing that
// its own rules forbid, and cutting the stream into pieces changes nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "agent/channels.h"

namespace caisson::agent {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Watcher final : ChannelEvents {
  void OnGreeting(std::uint64_t number) override {
    channels.clear();
    log += "greeting " + std::to_string(number) + "\n";
  }
  void OnOpen(std::uint32_t channel) override {
    Require(channels.emplace(channel, 0).second && channels.size() <= kMaxChannels);
  }
  void OnData(std::uint32_t channel, std::string_view bytes) override {
    Require(channels.contains(channel) || is_host);
    Require((channels[channel] += bytes.size()) <= kChannelWindow);
    total += bytes.size();
  }
  void OnRoom(std::uint32_t) override {}
  void OnEnd(std::uint32_t channel) override { log += "end " + std::to_string(channel) + "\n"; }
  void OnClose(std::uint32_t channel) override { log += "close " + std::to_string(channel) + "\n"; }
  bool is_host = false;
  std::map<std::uint32_t, std::size_t> channels;
  std::size_t total = 0;
  std::string log;
};

std::string Run(Channels::Side side, std::string_view bytes, std::size_t piece) {
  Watcher watcher;
  watcher.is_host = side == Channels::Side::kHost;
  Channels channels(side, watcher);
  if (watcher.is_host) {
    channels.Greet(1);
    Require(channels.Receive(channels.out()));
    for (int i = 0; i < 3; ++i) channels.Open();
  } else {
    Watcher nobody;
    Channels host(Channels::Side::kHost, nobody);
    host.Greet(1);
    Require(channels.Receive(host.out()));
  }
  bool fine = true;
  while (!bytes.empty()) {
    fine = channels.Receive(bytes.substr(0, piece)) && fine;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return watcher.log + std::to_string(watcher.total) + (fine ? " fine" : " broken");
}

}  // namespace
}  // namespace caisson::agent

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::agent;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto side : {Channels::Side::kHost, Channels::Side::kAgent}) {
    const std::string whole = Run(side, bytes, bytes.size() + 1);
    const std::string pieces = Run(side, bytes, 1 + data[0] % 64);
    // Whether it was broken for a while, before a greeting, is told piece by piece.
    Require(whole.substr(0, whole.rfind(' ')) == pieces.substr(0, pieces.rfind(' ')));
  }
  return 0;
}
