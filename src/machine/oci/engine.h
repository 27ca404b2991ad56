// SPDX-License-Identifier: Apache-2.0
// Docker or Podman by its command: the containers in which it holds our machines, each of an image
// that has nothing but caisson-container-init. What it says is not relied on for any wall
// (machine/oci/engine_launch.h). Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "machine/oci/runtime.h"

namespace caisson::machine::oci {

// Of every container of ours: the machine's name, and the state directory that it is in.
inline constexpr const char* kMachineLabel = "caisson.machine";
inline constexpr const char* kStateLabel = "caisson.state";

// One container that is to hold a machine.
struct EngineContainer {
  std::string name;          // of the machine's slot; see IsContainerName
  std::string handover;      // directory of the host that it sees at boot::kHandoverPlace
  std::string seccomp_file;  // absolute path of SeccompProfile's text
};

class Engine {
 public:
  // Imports the image where the engine has not got it. `init` is a program, `place` a directory
  // for a file meanwhile, `state` the directory that names our containers. Fails with
  // oci.unavailable, oci.engine_silent.
  static Result<Engine> Open(Runtime runtime, const std::string& init, const std::string& place,
                             const std::string& state);
  // To clear away what an engine has that is not the one in use.
  Engine(Runtime runtime, std::string state)
      : runtime_(std::move(runtime)), state_(std::move(state)) {}

  // Fails with oci.failed and the engine's last words, oci.engine_silent.
  Result<void> Start(const EngineContainer& container) const;
  // What the engine says is the pid of its first process. Fails as Start.
  Result<pid_t> FirstProcess(const std::string& name) const;
  // Ends it and takes it away; fine when there is none. Fails as Start.
  Result<void> Remove(const std::string& name) const;
  // Names of all that have our label, whatever state they are in. Fails as Start.
  Result<std::vector<std::string>> List() const;

  const Runtime& runtime() const { return runtime_; }
  std::vector<std::string> StartCommand(const EngineContainer& container) const;

 private:
  // `to_the_end`: even where this process is killed meanwhile.
  Result<std::string> Run(std::vector<std::string> words, std::chrono::milliseconds patience,
                          bool to_the_end = false) const;
  std::vector<std::string> Command() const;
  Result<void> ImportImage(const std::string& init, const std::string& place);

  Runtime runtime_;
  std::string state_;
  std::string image_;  // its id
};

// The image's only layer, as tar(5) has it, of the program's bytes. Pure.
std::string InitImage(const std::string& program);

}  // namespace caisson::machine::oci
