// SPDX-License-Identifier: Apache-2.0
#include "images/libraries.h"

#include <sys/stat.h>

#include <array>
#include <thread>
#include <vector>

#include "errors/images.h"
#include "images/files.h"
#include "images/tool.h"
#include "images/tree.h"

namespace caisson::images {
namespace {

// How many interpreters compile at once. Fixed: what one has compiled before can show in its
// bytecode (shared constants), so the division must be the same on every machine.
constexpr std::size_t kCompilers = 2;

std::string WithoutDots(std::string text) {
  std::erase(text, '.');
  return text;
}

std::vector<std::string> InstallCommand(const PythonLibraries& python, const std::string& pip,
                                        const std::string& target) {
  std::vector<std::string> words = {pip,
                                    "-m",
                                    "pip",
                                    "install",
                                    "--quiet",
                                    "--disable-pip-version-check",
                                    "--no-input",
                                    "--no-deps",
                                    "--require-hashes",
                                    "--only-binary=:all:",
                                    "--no-compile",
                                    "--implementation=cp",
                                    "--python-version=" + python.version,
                                    "--abi=cp" + WithoutDots(python.version),
                                    "--target=" + target,
                                    "--requirement=" + python.requirements};
  for (const std::string& platform : python.wheel_platforms) {
    words.push_back("--platform=" + platform);
  }
  return words;
}

// Commands and records hold paths of the machine that builds, and nothing reads them here.
Result<void> RemoveTraces(const std::string& target) {
  CAISSON_TRY(RemoveTree(target + "/bin"));
  CAISSON_ASSIGN(const std::vector<TreeEntry> entries, WalkTree(target));
  for (const TreeEntry& entry : entries) {
    const std::size_t slash = entry.relative.rfind('/');
    if (slash == std::string::npos || !entry.relative.substr(0, slash).ends_with(".dist-info")) {
      continue;
    }
    for (const char* name : {"RECORD", "REQUESTED", "INSTALLER", "direct_url.json"}) {
      if (entry.relative.substr(slash + 1) == name) CAISSON_TRY(RemoveTree(entry.path));
    }
  }
  return {};
}

Result<void> CompilePart(const PythonLibraries& python, const std::string& root,
                         const std::string& list, const std::stop_token& stop) {
  // -S -s -P: neither site packages nor the working directory. Empty variables count as unset.
  auto done = RunTool(
      {.arguments = {"chroot", root, "/" + python.program, "-S", "-s", "-P", "-m", "compileall",
                     "-q", "-f", "--invalidation-mode", "unchecked-hash", "-i", "-"},
       .variables = {{"PYTHONHASHSEED", "0"},
                     {"PYTHONHOME", ""},
                     {"PYTHONPATH", ""},
                     {"PYTHONOPTIMIZE", ""},
                     {"PYTHONDONTWRITEBYTECODE", ""},
                     {"PYTHONPYCACHEPREFIX", ""},
                     {"LC_ALL", "C.UTF-8"}},
       .input = list},
      "coreutils", stop);
  if (!done) return Fail(std::move(done).error());
  return {};
}

}  // namespace

Result<void> InstallLibraries(const PythonLibraries& python, const std::string& root,
                              const std::string& work, const std::stop_token& stop) {
  const std::string environment = work + "/pip";
  CAISSON_TRY(RunTool({.arguments = {"python3", "-m", "venv", environment}}, "python3-venv", stop));
  const std::string target = root + "/" + python.directory;
  CAISSON_TRY(RunTool({.arguments = InstallCommand(python, environment + "/bin/python", target),
                       .variables = {{"TMPDIR", work}, {"LC_ALL", "C.UTF-8"}}},
                      "python3-venv", stop));
  CAISSON_TRY(RemoveTree(environment));
  return RemoveTraces(target);
}

Result<void> CompileBytecode(const PythonLibraries& python, const std::string& root,
                             const std::string& work, const std::stop_token& stop) {
  CAISSON_ASSIGN(const std::vector<TreeEntry> entries, WalkTree(root));
  std::array<std::string, kCompilers> lists;
  std::size_t count = 0;
  for (const TreeEntry& entry : entries) {
    if (!S_ISREG(entry.info.st_mode) || !entry.relative.ends_with(".py")) continue;
    lists[count++ % kCompilers] += "/" + entry.relative + "\n";
  }
  std::array<Result<void>, kCompilers> results;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kCompilers; ++i) {
      const std::string list = work + "/compile" + std::to_string(i);
      CAISSON_TRY(WriteFile(list, lists[i]));
      threads.emplace_back([&, i, list] { results[i] = CompilePart(python, root, list, stop); });
    }
  }
  for (Result<void>& result : results) {
    if (!result) return Fail(std::move(result).error());
  }
  return {};
}

std::map<std::string, std::string> PinnedVersions(std::string_view requirements) {
  std::map<std::string, std::string> versions;
  while (!requirements.empty()) {
    const std::size_t end = requirements.find('\n');
    const std::string_view line = requirements.substr(0, end);
    requirements.remove_prefix(end == std::string_view::npos ? requirements.size() : end + 1);
    const std::size_t equals = line.find("==");
    if (line.empty() || line[0] == '#' || line[0] == ' ' || equals == std::string_view::npos) {
      continue;
    }
    const std::string_view rest = line.substr(equals + 2);
    versions[std::string(line.substr(0, equals))] = rest.substr(0, rest.find_first_of(" ;\\"));
  }
  return versions;
}

}  // namespace caisson::images
