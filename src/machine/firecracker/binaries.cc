// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/binaries.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "errors/machine.h"
#include "os/run_program.h"

namespace caisson::machine::firecracker {
namespace {

std::unexpected<Status> Unavailable(const std::string& what) {
  return Fail(errors::kMachineUnavailable, what);
}

std::string Range() {
  return fmt::format("{} to below {}", ToText(kLeastVersion), ToText(kBelowVersion));
}

// One number, and what has to come after it; 0 stands for the end.
bool TakeNumber(std::string_view& text, unsigned& number, char end) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  if (end == 0) return text.empty();
  if (!text.starts_with(end)) return false;
  text.remove_prefix(1);
  return true;
}

Result<std::string> Find(const std::string& name) {
  const std::string found = os::FindProgram(name);
  if (found.empty()) {
    return Unavailable("there is no program " + name + " here; the driver firecracker needs " +
                       "firecracker and its jailer, " + Range() +
                       ", of one release (they are not packages of Debian)");
  }
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(found, error);
  if (error) return Unavailable("find " + found + ": " + error.message());
  return path.string();
}

Result<Version> Ask(const std::string& program, std::string_view name) {
  os::Program ask;
  ask.arguments = {program, "--version"};
  CAISSON_ASSIGN(const os::ProgramEnd end, os::RunProgram(ask));
  if (!end.succeeded()) {
    return Unavailable(program + " --version " + os::ToText(end.status) +
                       "; it is not what the driver firecracker needs");
  }
  return ParseVersion(name, end.output);
}

}  // namespace

std::string ToText(const Version& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Result<Version> ParseVersion(std::string_view program, std::string_view output) {
  std::string_view line = output.substr(0, output.find('\n'));
  const std::string said(line.substr(0, 80));
  const std::string begin = std::string(program) + " v";
  Version version;
  if (line.starts_with(begin)) {
    line.remove_prefix(begin.size());
    if (TakeNumber(line, version.major, '.') && TakeNumber(line, version.minor, '.') &&
        TakeNumber(line, version.patch, 0)) {
      return version;
    }
  }
  return Unavailable("\"" + said + "\" is no version of a release of " + std::string(program) +
                     "; take one from " + Range());
}

Result<Binaries> FindBinaries(const std::string& firecracker, const std::string& jailer) {
  Binaries found;
  CAISSON_ASSIGN(found.firecracker, Find(firecracker.empty() ? "firecracker" : firecracker));
  CAISSON_ASSIGN(found.jailer, Find(jailer.empty() ? "jailer" : jailer));
  CAISSON_ASSIGN(found.version, Ask(found.firecracker, "Firecracker"));
  CAISSON_ASSIGN(const Version of_jailer, Ask(found.jailer, "Jailer"));
  if (found.version < kLeastVersion || found.version >= kBelowVersion) {
    return Unavailable(fmt::format("{} is of version {}; the driver knows {}", found.firecracker,
                                   ToText(found.version), Range()));
  }
  if (of_jailer != found.version) {
    return Unavailable(fmt::format("{} is of version {} and {} of {}; take both of one release",
                                   found.firecracker, ToText(found.version), found.jailer,
                                   ToText(of_jailer)));
  }
  // The jailer refuses others.
  const std::string name = std::filesystem::path(found.firecracker).filename();
  if (name.find("firecracker") == std::string::npos) {
    return Unavailable("the file " + found.firecracker + " must have firecracker in its name");
  }
  return found;
}

}  // namespace caisson::machine::firecracker
