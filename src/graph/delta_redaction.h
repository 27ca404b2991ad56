// SPDX-License-Identifier: Apache-2.0
// The deltas of one visit on their way out, without the secrets that it resolved. A secret may come
// in pieces, so the end of a text that might be the beginning of one waits for the next piece, or
// for the end. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "graph/redaction.h"
#include "nodes/node.h"

namespace caisson::graph {

class DeltaRedaction {
 public:
  using Give = std::function<void(nodes::DeltaKind kind, const json::Value& data)>;
  // `secrets` outlives it. `give` is called for one delta at a time, on the caller's thread.
  DeltaRedaction(const SecretKeeper& secrets, Give give)
      : secrets_(secrets), give_(std::move(give)) {}

  // Progress of a tool ends what is held: the message before it is complete.
  void Take(nodes::DeltaKind kind, json::Value data);
  // Gives what is still held.
  void Finish();

 private:
  // The text of one member, over many deltas.
  struct Text {
    std::string outer;   // "tool_call", or empty
    json::Value index;   // of that call
    std::string member;  // "content", "arguments"
    std::string held;
  };
  Text& TextOf(const std::string& outer, const json::Value& index, const std::string& member);
  json::Object Hold(const std::string& outer, const json::Object& piece);
  void GiveHeld();

  const SecretKeeper& secrets_;
  const Give give_;
  std::mutex mutex_;
  std::vector<Text> texts_;
};

}  // namespace caisson::graph
