// SPDX-License-Identifier: Apache-2.0
// What an image is made of, as data: runtimes/images/<name>.json; for a name with a tag, as
// "devbox:1", <name>@<tag>.json. Reading one decides nothing about
// the host and fetches nothing; locks are read in the same go, so that a Definition is whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::images {

// One locked Debian package: the sha256 is that of the .deb.
struct LockedPackage {
  std::string version;
  std::string sha256;
  bool operator==(const LockedPackage&) const = default;
};
using PackageLock = std::map<std::string, LockedPackage>;  // by name

struct ExtraFile {
  std::string path;  // in the image, no leading slash
  std::string text;
  bool executable = false;
};
struct ExtraLink {
  std::string path;
  std::string target;
};

// A program of ours that is put into the image: the file `program` beside the command.
struct OwnProgram {
  std::string path;  // in the image
  std::string program;
};

// CPython, whose sources are compiled, and libraries that are put beside the distribution's own.
struct PythonLibraries {
  std::string program;       // "usr/bin/python3.11"
  std::string version;       // "3.11"
  std::string directory;     // "usr/lib/python3/dist-packages"
  std::string requirements;  // path of a pip lock with hashes, on the host; empty: no libraries
  std::vector<std::string> wheel_platforms;
};

struct Definition {
  std::string name;
  std::string description;
  std::string suite;
  std::string architecture;
  std::int64_t epoch = 0;             // the time of every file, in seconds
  std::vector<std::string> packages;  // wanted by name; the lock holds what they need, too
  // The packages' scripts run (in a chroot), and the package manager stays, ready to be used.
  // Else packages are extracted and nothing is left of it.
  bool installed = false;
  std::string lock_path;
  PackageLock lock;  // empty when there is no lock file yet
  std::optional<PythonLibraries> python;
  std::vector<std::string> remove;  // patterns, see RemoveMatches in images/tree.h
  std::vector<std::string> directories;
  std::vector<ExtraFile> files;
  std::vector<ExtraLink> links;
  std::vector<OwnProgram> programs;
  std::string digest;  // sha256 of the definition and its locks
};

// Reads `directory`/`name`.json and its locks. Fails with images.unknown (there is no such
// definition; the message lists those that exist) or images.definition (the message names file and
// JSON path).
Result<Definition> LoadDefinition(const std::string& directory, const std::string& name);

// The names of all definitions in `directory`, sorted.
std::vector<std::string> DefinitionNames(const std::string& directory);

// Lines "name=version sha256", sorted by name; lines that begin with # are comments. Fails with
// images.definition; `path` opens the message.
Result<PackageLock> ParsePackageLock(std::string_view text, const std::string& path);
std::string FormatPackageLock(const PackageLock& lock);

// Letters, digits, '-', '_' and '.', starting with a letter; perhaps a ':' and a tag of the same,
// which may start with a digit. At most 64 bytes.
bool IsImageName(std::string_view name);
// Relative, without empty, "." or ".." components: stays inside the image.
bool IsInsidePath(std::string_view path);

}  // namespace caisson::images
