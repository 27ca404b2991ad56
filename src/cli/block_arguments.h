// SPDX-License-Identifier: Apache-2.0
// The command line of `caisson block …` as plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "workflow/diagnostic.h"

namespace CLI {
class App;
}

namespace caisson::cli {

// What is not set comes from the environment (PYTHON_SANDBOX_...), else is the default.
struct BlockLimitArguments {
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<std::chrono::milliseconds> cpu_time;
  std::optional<std::uint64_t> memory;
  std::optional<std::uint64_t> output;
  std::optional<std::uint64_t> messages;
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> disk;
  std::optional<std::uint64_t> pids;
};

inline constexpr const char* kDefaultImage = "python-science";

struct BlockRuntimeArguments {
  std::optional<std::string> runtime;            // cpython, native, oci or auto
  std::optional<std::string> root;               // root file system of `native` and `oci`
  std::optional<std::string> image;              // kDefaultImage, or PYTHON_SANDBOX_IMAGE for `oci`
  std::optional<std::string> container_runtime;  // runc, runsc, docker or podman
  bool allow_unjailed = false;
  int workers = 0;  // 0: one per core
};

struct BlockRunArguments {
  enum class Format { kResults, kReport, kFrames };
  std::string script;  // "-": standard input
  // Each JSON, a file name, or "-".
  std::optional<std::string> documents;
  std::optional<std::string> sources;
  std::optional<std::string> artifacts;
  std::optional<std::string> user;
  std::optional<std::string> tables;
  std::optional<std::string> options;
  bool debug = false;
  Format format = Format::kResults;
  BlockLimitArguments limits;
  BlockRuntimeArguments runtime;
};

struct BlockServeArguments {
  std::optional<std::string> socket;
  bool allow_auto = false;
  std::size_t max_line_bytes = 64u << 20;
  std::size_t runs = 0;  // 0: one per core
  std::size_t waiting = 256;
  std::optional<std::chrono::milliseconds> max_timeout;
  std::optional<std::uint64_t> max_memory;
  std::optional<std::uint64_t> max_output;
  BlockLimitArguments limits;
  BlockRuntimeArguments runtime;
};

struct BlockCheckArguments {
  std::vector<std::string> files;
  std::optional<std::string> runtime;
  workflow::DiagnosticFormat format = workflow::DiagnosticFormat::kText;
  bool strict = false;
};

struct BlockLibrariesArguments {
  bool json = false;
};

using BlockArguments = std::variant<BlockRunArguments, BlockServeArguments, BlockCheckArguments,
                                    BlockLibrariesArguments>;

// Adds the actions to `block`. Once the command line has been read, `take` gets the chosen one.
void AddBlockActions(CLI::App* block, std::function<void(BlockArguments)> take);

}  // namespace caisson::cli
