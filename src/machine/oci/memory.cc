// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "errors/machine.h"
#include "images/files.h"
#include "json/reader.h"
#include "json/writer.h"
#include "machine/disk.h"
#include "machine/fields.h"
#include "os/fd.h"

namespace caisson::machine::oci {
namespace {

constexpr const char* kSeal = "/machine.json";
constexpr std::array<const char*, 4> kFiles = {"/checkpoint.img", "/pages.img", "/pages_meta.img",
                                               kSeal};

}  // namespace

bool HasMemory(const std::string& directory) {
  for (const char* file : kFiles) {
    if (::access((directory + file).c_str(), R_OK) != 0) return false;
  }
  return true;
}

Result<void> SealMemory(const std::string& directory, const MachineSpec& spec,
                        const std::string& version, bool network) {
  CAISSON_ASSIGN(const std::string text, json::Write(json::Object{
                                             {"memory_bytes", spec.memory_bytes},
                                             {"cpus", spec.cpus},
                                             {"version", version},
                                             {"network", network},
                                         }));
  return images::WriteFile(directory + kSeal, text);
}

Result<void> CheckMemory(const std::string& directory, const MachineSpec& spec,
                         const std::string& version, bool network) {
  if (!HasMemory(directory)) {
    return Fail(errors::kMachineDamaged,
                "not all of the machine's memory is in " + directory + " any more");
  }
  CAISSON_ASSIGN(const std::string text, os::ReadSmallFile(directory + kSeal));
  CAISSON_ASSIGN(const json::Value value, json::Read(text));
  Fields fields(value);
  const std::uint64_t memory_bytes = fields.Number("memory_bytes");
  const double cpus = fields.Real("cpus");
  const std::string writer = fields.Text("version");
  const bool had_network = fields.Bool("network");
  if (!fields.missed().empty()) {
    return Fail(errors::kMachineDamaged, directory + kSeal + " has no valid " + fields.missed());
  }
  if (writer != version || had_network != network) {
    return Fail(errors::kMachineUnsupported,
                "the machine's memory was written by another runsc (" + writer +
                    ") or with another network than this host gives now (" + version +
                    "); its files are there all the same");
  }
  if (memory_bytes == spec.memory_bytes && cpus == spec.cpus) return {};
  return Fail(errors::kMachineInvalid,
              fmt::format("memory_bytes and cpus of a copy that goes on are its parent's: {} and "
                          "{}",
                          memory_bytes, cpus));
}

Result<void> ShareMemory(const std::string& from, const std::string& to) {
  for (const char* file : kFiles) {
    if (::link((from + file).c_str(), (to + file).c_str()) == 0) continue;
    CAISSON_TRY(CopyDisk(from + file, to + file));
  }
  return {};
}

}  // namespace caisson::machine::oci
