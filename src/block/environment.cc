// SPDX-License-Identifier: Apache-2.0
#include "block/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "errors/block.h"
#include "machine/oci/names.h"

namespace caisson::block {
namespace {

// As `--memory` has them.
constexpr std::uint64_t kLeastMemory = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 40;
// 1 ms of each 100.
constexpr double kLeastCpus = 0.01;
constexpr std::uint64_t kMaxTimeoutMs = std::uint64_t{1000} * 3600 * 1000;

std::unexpected<Status> Malformed(std::string message) {
  return Fail(errors::kBlockEnvironment, std::move(message));
}

// Digits and nothing else, from 1.
std::optional<std::uint64_t> Positive(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

Result<void> ReadMode(std::string_view text, Environment& environment) {
  if (text == "auto") {
    environment.auto_runtime = true;
    return {};
  }
  // Upstream's names stand beside ours.
  environment.runtime = text == "pyodide"  ? RuntimeId::kCpython
                        : text == "docker" ? RuntimeId::kOci
                                           : FindRuntimeId(text);
  if (environment.runtime) return {};
  return Malformed("Invalid PYTHON_SANDBOX_MODE value: " + std::string(text) +
                   " (pyodide or cpython, native, docker or oci, auto)");
}

Result<void> ReadTimeout(std::string_view text, Environment& environment) {
  const auto value = Positive(text);
  if (!value || *value > kMaxTimeoutMs) {
    return Malformed("PYTHON_SANDBOX_TIMEOUT_MS is not configured (must be a positive integer)");
  }
  environment.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*value));
  return {};
}

Result<void> ReadImage(std::string_view text, Environment& environment) {
  const auto image = machine::oci::ParseImageReference(text);
  // As upstream, which names no image without saying which.
  if (!image || (image->tag.empty() && image->digest.empty())) {
    return Malformed("Invalid sandbox image name: " + std::string(text));
  }
  environment.image = text;
  return {};
}

// As the container tools write sizes: digits and b, k, m or g.
std::optional<std::uint64_t> Bytes(std::string_view text) {
  int shift = 0;
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) == 0) {
    const std::size_t unit = std::string_view("bkmg").find(
        static_cast<char>(std::tolower(static_cast<unsigned char>(text.back()))));
    if (unit == std::string_view::npos) return std::nullopt;
    shift = static_cast<int>(unit) * 10;
    text.remove_suffix(1);
  }
  const auto value = Positive(text);
  if (!value || *value > (std::uint64_t{1} << 62) >> shift) return std::nullopt;
  return *value << shift;
}

Result<void> ReadMemory(std::string_view text, Environment& environment) {
  environment.container_memory = Bytes(text);
  const std::string refusal = "Invalid PYTHON_SANDBOX_MEMORY value: " + std::string(text);
  if (!environment.container_memory) return Malformed(refusal);
  if (*environment.container_memory >= kLeastMemory &&
      *environment.container_memory <= kMostMemory) {
    return {};
  }
  return Malformed(refusal + " (from 16m to 1024g)");
}

Result<void> ReadCpus(std::string_view text, Environment& environment) {
  double value = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const bool whole = error == std::errc{} && stop == text.data() + text.size();
  const bool plain = text.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!whole || !plain || value <= 0 || value > 1024) {
    return Malformed("Invalid PYTHON_SANDBOX_CPUS value: " + std::string(text));
  }
  if (value < kLeastCpus) {
    return Malformed("Invalid PYTHON_SANDBOX_CPUS value: " + std::string(text) +
                     " (the kernel shares out no less than 0.01)");
  }
  environment.cpus = value;
  return {};
}

Result<void> ReadPids(std::string_view text, Environment& environment) {
  const auto value = Positive(text);
  if (!value || *value > std::numeric_limits<std::int32_t>::max()) {
    return Malformed("Invalid PYTHON_SANDBOX_PIDS value: " + std::string(text));
  }
  environment.pids = static_cast<std::uint32_t>(*value);
  return {};
}

Result<void> ReadHeap(std::string_view text, Environment& environment) {
  const auto value = Positive(text);
  const std::string refusal = "Invalid PYTHON_SANDBOX_HEAP_MB value: " + std::string(text);
  if (!value) return Malformed(refusal);
  if (*value < kLeastMemory >> 20 || *value > kMostMemory >> 20) {
    return Malformed(refusal + " (from 16 to 1048576)");
  }
  environment.heap_bytes = *value << 20;
  return {};
}

}  // namespace

Result<Environment> ReadEnvironment(const GetVariable& get) {
  struct Variable {
    const char* name;
    Result<void> (*read)(std::string_view, Environment&);
  };
  constexpr std::array<Variable, 7> kVariables = {{{"PYTHON_SANDBOX_MODE", ReadMode},
                                                   {"PYTHON_SANDBOX_TIMEOUT_MS", ReadTimeout},
                                                   {"PYTHON_SANDBOX_IMAGE", ReadImage},
                                                   {"PYTHON_SANDBOX_MEMORY", ReadMemory},
                                                   {"PYTHON_SANDBOX_CPUS", ReadCpus},
                                                   {"PYTHON_SANDBOX_PIDS", ReadPids},
                                                   {"PYTHON_SANDBOX_HEAP_MB", ReadHeap}}};
  Environment environment;
  for (const Variable& variable : kVariables) {
    const char* text = get(variable.name);
    if (text == nullptr) continue;
    if (*text == '\0' && variable.read != ReadTimeout) continue;  // templates leave them empty
    CAISSON_TRY(variable.read(text, environment));
  }
  return environment;
}

}  // namespace caisson::block
