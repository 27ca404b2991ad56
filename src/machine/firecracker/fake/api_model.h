// SPDX-License-Identifier: Apache-2.0
// The rules of Firecracker's API as its description and its sources have them, for a double that
// refuses what Firecracker would: unknown fields, wrong kinds, calls in a state that they do not
// fit. What the calls then do is somebody else's (Effects). No system calls but looking for files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "json/value.h"

namespace caisson::machine::firecracker::fake {

// Each returns why it failed; empty when it did not.
class Effects {
 public:
  virtual ~Effects() = default;
  virtual std::string Boot(const json::Object& resources) = 0;  // by their paths
  // Firecracker ends when this fails. `resources`: what the saved machine was configured with.
  virtual std::string Load(const json::Value& parameters, json::Object& resources) = 0;
  virtual std::string Save(const json::Value& parameters, const json::Object& resources) = 0;
  virtual void Pause() = 0;
  virtual void Resume() = 0;
};

struct Answer {
  int status = 204;
  std::string body;
  bool ends = false;  // the process, once this is said
};

class ApiModel {
 public:
  enum class State : std::uint8_t { kFresh, kConfigured, kRunning, kPaused };
  explicit ApiModel(Effects& effects) : effects_(effects) {}

  Answer Handle(std::string_view method, const std::string& path, std::string_view body);
  State state() const { return state_; }
  const json::Object& resources() const { return resources_; }

 private:
  Answer Act(const json::Value& body);
  Answer SetState(const json::Value& body);
  Answer Create(const json::Value& body);
  Answer Load(const json::Value& body);
  bool has_booted() const { return state_ == State::kRunning || state_ == State::kPaused; }

  Effects& effects_;
  State state_ = State::kFresh;
  json::Object resources_;
};

}  // namespace caisson::machine::firecracker::fake
