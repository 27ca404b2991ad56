// SPDX-License-Identifier: Apache-2.0
#include "images/build.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <span>
#include <utility>

#include "errors/images.h"
#include "images/files.h"
#include "images/libraries.h"
#include "images/packages.h"
#include "images/tool.h"
#include "images/tree.h"

namespace caisson::images {
namespace {

using Clock = std::chrono::steady_clock;

// What apt, dpkg and mmdebstrap leave behind, the host's name and mirrors among it.
constexpr std::array kTraces = {"dev",         "etc/apt",        "etc/hostname", "etc/resolv.conf",
                                "etc/fstab",   "etc/machine-id", "tmp",          "var/cache",
                                "var/lib/apt", "var/lib/dpkg",   "var/log"};
// The same where apt and dpkg stay: what they know of the image is kept.
constexpr std::array kTracesBesideApt = {"dev",
                                         "etc/apt/sources.list",
                                         "etc/hostname",
                                         "etc/apt/sources.list.d",
                                         "etc/fstab",
                                         "etc/resolv.conf",
                                         "tmp",
                                         "etc/machine-id",
                                         "var/cache",
                                         "var/lib/apt/lists",
                                         "var/log",
                                         "var/lib/apt/mirrors",
                                         "var/lib/dpkg/lock",
                                         "var/lib/dpkg/lock-frontend"};
constexpr std::array kAptDirectories = {"etc/apt/sources.list.d", "var/cache/apt/archives",
                                        "var/lib/apt/lists", "var/log/apt"};
constexpr std::array kMountPoints = {"dev", "proc", "sys", "tmp", "run"};

struct Draft {
  Manifest manifest;
  PackageLock packages;
};

// One tree being made, step by step.
class Assembly {
 public:
  Assembly(const Definition& definition, const BuildOptions& options, std::string directory)
      : definition_(definition),
        options_(options),
        directory_(std::move(directory)),
        root_(directory_ + "/root"),
        work_(directory_ + "/work") {}

  Result<Draft> Run() {
    Draft draft;
    CAISSON_TRY(MakeDirectory(directory_));
    CAISSON_TRY(MakeDirectory(work_));
    CAISSON_TRY(Step("extract Debian packages", [&]() -> Result<void> {
      CAISSON_ASSIGN(draft.packages, Extract());
      return RemoveTraces();
    }));
    if (definition_.python && !definition_.python->requirements.empty()) CAISSON_TRY(AddPython());
    CAISSON_TRY(Step("remove what is not needed and add own files", [&]() -> Result<void> {
      CAISSON_TRY(RemoveMatches(root_, definition_.remove));
      return AddExtras();
    }));
    if (definition_.python) {
      CAISSON_TRY(Step("compile bytecode", [&] {
        return CompileBytecode(*definition_.python, root_, work_, options_.stop);
      }));
    }
    CAISSON_TRY(Step("bring everything into one form, make the manifest", [&]() -> Result<void> {
      CAISSON_TRY(NormaliseTree(root_, definition_.epoch));
      CAISSON_ASSIGN(draft.manifest, MakeManifest(root_, definition_.epoch));
      return {};
    }));
    if (options_.erofs) {
      CAISSON_TRY(Step("pack as EROFS", [&] { return Pack(draft.manifest.id); }));
    }
    CAISSON_TRY(RemoveTree(work_));
    return draft;
  }

 private:
  template <typename Work>
  Result<void> Step(std::string_view what, Work work) {
    if (options_.stop.stop_requested()) {
      return Fail(errors::kImagesInterrupted, "stopped before: " + std::string(what));
    }
    if (options_.progress) options_.progress(what);
    return work();
  }

  static Result<void> MakeDirectory(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) == 0) return {};
    return FileError("make the directory", path);
  }

  Result<PackageLock> Extract() {
    PackagesWanted wanted{.definition = definition_,
                          .apt_sources = options_.apt_sources,
                          .root = root_,
                          .work = work_,
                          .versions = options_.update_lock   ? Versions::kAny
                                      : options_.allow_newer ? Versions::kLockedOrNewer
                                                             : Versions::kLocked};
    CAISSON_ASSIGN(PackageLock found, ExtractPackages(wanted, options_.stop));
    if (options_.allow_newer && options_.progress) TellNewer(found);
    return found;
  }

  void TellNewer(const PackageLock& found) {
    for (const auto& [name, package] : found) {
      const auto locked = definition_.lock.find(name);
      if (locked != definition_.lock.end() && locked->second == package) continue;
      options_.progress(
          fmt::format("{} is {}; the lock says {}", name, package.version,
                      locked == definition_.lock.end() ? "nothing of it" : locked->second.version));
    }
  }

  Result<void> RemoveTraces() {
    const std::span<const char* const> traces =
        definition_.installed ? std::span<const char* const>(kTracesBesideApt) : kTraces;
    for (const char* trace : traces) CAISSON_TRY(RemoveTree(root_ + "/" + trace));
    if (!definition_.installed) return {};
    for (const char* path : kAptDirectories) CAISSON_TRY(AddDirectory(path));
    return AddGuestSources(
        options_.guest_apt_sources.empty() ? options_.apt_sources : options_.guest_apt_sources,
        root_);
  }

  Result<void> AddPython() {
    return Step("install Python libraries",
                [&] { return InstallLibraries(*definition_.python, root_, work_, options_.stop); });
  }

  Result<void> AddExtras() {
    for (const char* path : kMountPoints) CAISSON_TRY(AddDirectory(path));
    for (const std::string& path : definition_.directories) CAISSON_TRY(AddDirectory(path));
    for (const ExtraFile& file : definition_.files) {
      CAISSON_TRY(AddDirectory(std::filesystem::path(file.path).parent_path().string()));
      CAISSON_TRY(WriteFile(root_ + "/" + file.path, file.text, file.executable ? 0755 : 0644));
    }
    for (const OwnProgram& own : definition_.programs) {
      CAISSON_TRY(AddDirectory(std::filesystem::path(own.path).parent_path().string()));
      CAISSON_ASSIGN(const std::string program,
                     ReadFile(options_.programs_directory + "/" + own.program));
      CAISSON_TRY(WriteFile(root_ + "/" + own.path, program, 0755));
    }
    for (const ExtraLink& link : definition_.links) {
      CAISSON_TRY(AddDirectory(std::filesystem::path(link.path).parent_path().string()));
      const std::string path = root_ + "/" + link.path;
      CAISSON_TRY(RemoveTree(path));
      if (::symlink(link.target.c_str(), path.c_str()) != 0) return FileError("link", path);
    }
    return {};
  }

  // With its parents. Refuses to pass a link, which could lead out of the image.
  Result<void> AddDirectory(const std::string& relative) {
    std::string path = root_;
    for (const std::filesystem::path& part : std::filesystem::path(relative)) {
      path += "/" + part.string();
      if (::mkdir(path.c_str(), 0755) == 0) continue;
      struct stat info{};
      if (errno != EEXIST || ::lstat(path.c_str(), &info) != 0) {
        return FileError("make the directory", path);
      }
      if (!S_ISDIR(info.st_mode)) {
        return Fail(errors::kImagesDefinition, "/" + relative +
                                                   " cannot be made in the image: a part of it is "
                                                   "no directory there");
      }
    }
    return {};
  }

  Result<void> Pack(const std::string& id) {
    // The id's first digits in the form of a UUID: the same content gives the same file.
    const std::string uuid = id.substr(0, 8) + "-" + id.substr(8, 4) + "-" + id.substr(12, 4) +
                             "-" + id.substr(16, 4) + "-" + id.substr(20, 12);
    auto done =
        RunTool({.arguments = {"mkfs.erofs", "-zlz4", "-T" + std::to_string(definition_.epoch),
                               "-U" + uuid, "--all-root", directory_ + "/root.erofs", root_}},
                "erofs-utils", options_.stop);
    if (!done) return Fail(std::move(done).error());
    return {};
  }

  const Definition& definition_;
  const BuildOptions& options_;
  std::string directory_;
  std::string root_;
  std::string work_;
};

std::string Now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

Result<json::Value> ImageInfo(const Definition& definition, const Draft& draft,
                              Clock::duration took) {
  json::Object packages;
  for (const auto& [name, package] : draft.packages) packages.Set(name, package.version);
  json::Object libraries;
  if (definition.python && !definition.python->requirements.empty()) {
    CAISSON_ASSIGN(const std::string requirements, ReadFile(definition.python->requirements));
    for (const auto& [name, version] : PinnedVersions(requirements)) libraries.Set(name, version);
  }
  return json::Object{
      {"format", 1},
      {"id", draft.manifest.id},
      {"name", definition.name},
      {"description", definition.description},
      {"suite", definition.suite},
      {"architecture", definition.architecture},
      {"python", definition.python ? json::Value("/" + definition.python->program) : json::Value()},
      {"built_at", Now()},
      {"build_seconds", std::chrono::duration_cast<std::chrono::seconds>(took).count()},
      {"definition_sha256", definition.digest},
      {"files", draft.manifest.files},
      {"bytes", draft.manifest.bytes},
      {"packages", std::move(packages)},
      {"libraries", std::move(libraries)}};
}

// What can be known to fail is said before anything is fetched.
Result<BuildOptions> Prepare(const Definition& definition, const BuildOptions& options) {
  if (::geteuid() != 0) {
    return Fail(errors::kImagesPrivilege,
                "building an image needs root (its files belong to root, and its own interpreter "
                "compiles them in a chroot); run it with sudo");
  }
  if (definition.lock.empty() && !options.update_lock) {
    return Fail(errors::kImagesLock, definition.lock_path +
                                         " is missing or empty; --update-lock writes it with the "
                                         "versions that apt has now");
  }
  for (const OwnProgram& own : definition.programs) {
    const std::string path = options.programs_directory + "/" + own.program;
    if (::access(path.c_str(), X_OK) == 0) continue;
    return Fail(errors::kImagesDefinition,
                "the program " + own.program + ", which goes into the image, is not at " + path);
  }
  for (const std::string& name : definition.packages) {
    if (!options.update_lock && !definition.lock.contains(name)) {
      return Fail(errors::kImagesLock, definition.lock_path + " does not name " + name +
                                           ", which the definition wants; write it anew with "
                                           "--update-lock");
    }
  }
  BuildOptions prepared = options;
  if (prepared.apt_sources.empty()) {
    CAISSON_ASSIGN(prepared.apt_sources, FindAptSources(definition.suite, options.stop));
  }
  return prepared;
}

Result<Image> Finish(const Store& store, const Definition& definition, const BuildOptions& options,
                     const std::string& directory, Draft draft, Clock::duration took) {
  if (options.update_lock) {
    CAISSON_TRY(WriteFile(definition.lock_path, FormatPackageLock(draft.packages)));
  }
  CAISSON_ASSIGN(json::Value info, ImageInfo(definition, draft, took));
  return store.Publish({.draft = directory,
                        .name = definition.name,
                        .manifest = std::move(draft.manifest),
                        .info = std::move(info)});
}

Result<Building> BeginBuilding(const Store& store, const BuildOptions& options) {
  return store.Begin(options.stop, [&] {
    if (options.progress) options.progress("wait for another build to end");
  });
}

}  // namespace

Result<Image> Build(const Store& store, const Definition& definition, const BuildOptions& options) {
  CAISSON_ASSIGN(const BuildOptions prepared, Prepare(definition, options));
  CAISSON_ASSIGN(const Building building, BeginBuilding(store, options));
  const auto start = Clock::now();
  const std::string directory = building.path() + "/1";
  CAISSON_ASSIGN(Draft draft, Assembly(definition, prepared, directory).Run());
  return Finish(store, definition, prepared, directory, std::move(draft), Clock::now() - start);
}

Result<Verified> BuildTwice(const Store& store, const Definition& definition,
                            const BuildOptions& options) {
  CAISSON_ASSIGN(const BuildOptions prepared, Prepare(definition, options));
  CAISSON_ASSIGN(const Building building, BeginBuilding(store, options));
  const auto start = Clock::now();
  const std::string directory = building.path() + "/1";
  CAISSON_ASSIGN(Draft first, Assembly(definition, prepared, directory).Run());
  const auto took = Clock::now() - start;
  CAISSON_ASSIGN(Draft second, Assembly(definition, prepared, building.path() + "/second").Run());
  Verified verified;
  CAISSON_ASSIGN(verified.differences, CompareManifests(first.manifest.text, second.manifest.text));
  CAISSON_ASSIGN(verified.image,
                 Finish(store, definition, prepared, directory, std::move(first), took));
  return verified;
}

}  // namespace caisson::images
