// SPDX-License-Identifier: Apache-2.0
#include "images/packages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "errors/images.h"
#include "images/files.h"
#include "images/tool.h"

namespace caisson::images {
namespace {

constexpr char kMergedUsr[] = "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr";
// Constant text for mmdebstrap's shell; the place comes by a variable.
constexpr char kKeepArchives[] =
    R"(--extract-hook=cp "$1"/var/cache/apt/archives/*.deb "$CAISSON_ARCHIVES"/)";
// Of a system that is installed the first hook sees the essential packages, this one the others.
constexpr char kKeepInstalledArchives[] =
    R"(--customize-hook=cp "$1"/var/cache/apt/archives/*.deb "$CAISSON_ARCHIVES"/)";

// Of what apt takes as given, essential packages, the locked version, too, where it has a newer
// one.
constexpr char kPins[] = "/etc/apt/preferences.d/caisson-lock";
constexpr char kPutPins[] =
    R"(--setup-hook=cp "$CAISSON_PINS" "$1"/etc/apt/preferences.d/caisson-lock)";
constexpr int kEvenOlder = 1001;  // apt_preferences(5)

template <typename Take>
void EachLine(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    take(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

bool IsOfSuite(std::string_view release, const std::string& suite) {
  return release == suite || release.starts_with(suite + "-") || release.starts_with(suite + "/");
}

// How the host reaches its archives: proxies, time-outs, retries.
Result<std::vector<std::string>> AptOptions(const std::stop_token& stop) {
  CAISSON_ASSIGN(
      const std::string dump,
      RunTool({.arguments = {"apt-config", "dump", "--format", "%F \"%v\";%n"}}, "apt", stop));
  constexpr std::array<std::string_view, 3> kTaken = {"Acquire::http", "Acquire::Retries",
                                                      "Acquire::ForceIPv"};
  std::vector<std::string> options;
  EachLine(dump, [&](std::string_view line) {
    const bool is_set = line.find(" \"\";") == std::string_view::npos;
    if (is_set &&
        std::ranges::any_of(kTaken, [&](auto prefix) { return line.starts_with(prefix); })) {
      options.push_back("--aptopt=" + std::string(line));
    }
  });
  return options;
}

Result<std::vector<std::string>> Command(const PackagesWanted& wanted,
                                         const std::stop_token& stop) {
  const Definition& definition = wanted.definition;
  std::vector<std::string> words = {"mmdebstrap",
                                    "--mode=root",
                                    definition.installed ? "--variant=apt" : "--variant=extract",
                                    "--format=directory",
                                    "--architectures=" + definition.architecture,
                                    definition.installed ? kKeepInstalledArchives : kMergedUsr,
                                    kKeepArchives,
                                    kPutPins};
  CAISSON_ASSIGN(const std::vector<std::string> options, AptOptions(stop));
  words.insert(words.end(), options.begin(), options.end());
  if (wanted.versions == Versions::kAny) {
    for (const std::string& name : definition.packages) words.push_back("--include=" + name);
  } else {
    const bool is_exact = wanted.versions == Versions::kLocked;
    for (const auto& [name, package] : definition.lock) {
      words.push_back("--include=" + name + (is_exact ? "=" + package.version : ""));
    }
  }
  words.push_back(definition.suite);
  words.push_back(wanted.root);
  words.insert(words.end(), wanted.apt_sources.begin(), wanted.apt_sources.end());
  return words;
}

// name_version_arch.deb, colons of the version written %3a.
Result<std::pair<std::string, std::string>> NameAndVersion(const std::string& file) {
  const std::size_t first = file.find('_');
  const std::size_t second = file.rfind('_');
  if (first == std::string::npos || first == second) {
    return Fail(errors::kImagesToolFailed, "apt fetched a file that is no package: " + file);
  }
  std::string version = file.substr(first + 1, second - first - 1);
  for (std::size_t at = 0; (at = version.find("%3a", at)) != std::string::npos;) {
    version.replace(at, 3, ":");
  }
  return std::pair(file.substr(0, first), version);
}

Result<PackageLock> Describe(const std::string& archives) {
  PackageLock found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(archives, error), end; !error && it != end;
       it.increment(error)) {
    CAISSON_ASSIGN(const auto name_and_version, NameAndVersion(it->path().filename().string()));
    CAISSON_ASSIGN(std::string digest, DigestOfFile(it->path().string()));
    found[name_and_version.first] = {name_and_version.second, std::move(digest)};
  }
  if (!error && !found.empty()) return found;
  return Fail(errors::kImagesToolFailed, "mmdebstrap left no packages in " + archives);
}

// What has no lock has no pins.
std::string Pins(const PackageLock& lock) {
  std::string text;
  for (const auto& [name, package] : lock) {
    text += fmt::format("Package: {}\nPin: version {}\nPin-Priority: {}\n\n", name, package.version,
                        kEvenOlder);
  }
  return text;
}

}  // namespace

Result<std::vector<std::string>> ChooseAptSources(const std::string& lines,
                                                  const std::string& suite) {
  std::map<std::string, std::set<std::string>> releases;  // by file
  EachLine(lines, [&](std::string_view line) {
    const std::size_t space = line.rfind(' ');
    const std::size_t colon = line.substr(0, space).rfind(':');
    if (space == std::string_view::npos || colon == std::string_view::npos) return;
    releases[std::string(line.substr(0, colon))].emplace(line.substr(space + 1));
  });
  std::vector<std::string> files;
  for (const auto& [file, offered] : releases) {
    const auto is_of_suite = [&](const std::string& release) { return IsOfSuite(release, suite); };
    if (std::ranges::none_of(offered, is_of_suite)) continue;
    if (!std::ranges::all_of(offered, is_of_suite)) {
      return Fail(errors::kImagesSources,
                  fmt::format("{} offers other releases beside {}; name a file that offers {} only "
                              "with --apt-sources",
                              file, suite, suite));
    }
    files.push_back(file);
  }
  if (!files.empty()) return files;
  return Fail(errors::kImagesSources,
              fmt::format("no apt source of this host offers {}; name a file that does with "
                          "--apt-sources",
                          suite));
}

Result<std::vector<std::string>> FindAptSources(const std::string& suite,
                                                const std::stop_token& stop) {
  CAISSON_ASSIGN(const std::string lines,
                 RunTool({.arguments = {"apt-get", "indextargets", "--format",
                                        "$(SOURCESENTRY) $(RELEASE)", "Created-By: Packages"}},
                         "apt", stop));
  return ChooseAptSources(lines, suite);
}

Result<void> AddGuestSources(const std::vector<std::string>& sources, const std::string& root) {
  for (const std::string& file : sources) {
    CAISSON_ASSIGN(const std::string text, ReadFile(file));
    std::string kept;
    std::string mistake;
    EachLine(text, [&](std::string_view line) {
      if (line.starts_with('#')) return;
      kept += std::string(line) + "\n";
      const std::size_t slashes = line.find("//");
      if (slashes != std::string_view::npos &&
          line.substr(0, line.find('/', slashes + 2)).find('@', slashes) !=
              std::string_view::npos) {
        mistake = "holds a password, which guests would read";
      }
      constexpr std::string_view kKey = "Signed-By: /";
      if (line.starts_with(kKey) &&
          !std::filesystem::exists(root + "/" + std::string(line.substr(kKey.size())))) {
        mistake =
            "names a key that is not in the image:" + std::string(line.substr(kKey.size() - 2));
      }
    });
    if (!mistake.empty()) {
      return Fail(errors::kImagesSources,
                  fmt::format("{} {}; name other sources for guests with --guest-apt-sources", file,
                              mistake));
    }
    CAISSON_TRY(WriteFile(
        root + "/etc/apt/sources.list.d/" + std::filesystem::path(file).filename().string(), kept));
  }
  return {};
}

Result<void> CheckAgainstLock(const PackageLock& lock, const PackageLock& found,
                              Versions versions) {
  for (const auto& [name, package] : found) {
    const auto locked = lock.find(name);
    const bool is_newer = versions == Versions::kLockedOrNewer &&
                          (locked == lock.end() || locked->second.version != package.version);
    if (is_newer) continue;
    if (locked == lock.end()) {
      return Fail(errors::kImagesLock, "apt added " + name + "=" + package.version +
                                           ", which the lock does not name; look at what changed "
                                           "and write the lock anew with --update-lock");
    }
    if (!(locked->second == package)) {
      return Fail(errors::kImagesLock,
                  fmt::format("{} is {} with sha256 {}, but the lock says {} with sha256 {}", name,
                              package.version, package.sha256, locked->second.version,
                              locked->second.sha256));
    }
  }
  for (const auto& [name, package] : lock) {
    if (!found.contains(name)) {
      return Fail(errors::kImagesLock, "apt did not fetch " + name + ", which the lock names");
    }
  }
  return {};
}

Result<PackageLock> ExtractPackages(const PackagesWanted& wanted, const std::stop_token& stop) {
  const std::string archives = wanted.work + "/archives";
  std::error_code error;
  std::filesystem::create_directory(archives, error);
  if (error) return Fail(errors::kImagesStore, "make " + archives + ": " + error.message());
  const std::string pins = wanted.work + "/pins";
  CAISSON_TRY(
      WriteFile(pins, wanted.versions == Versions::kAny ? "" : Pins(wanted.definition.lock)));
  CAISSON_ASSIGN(std::vector<std::string> words, Command(wanted, stop));
  auto output =
      RunTool({.arguments = std::move(words),
               .variables = {{"CAISSON_ARCHIVES", archives},
                             {"CAISSON_PINS", pins},
                             {"TMPDIR", wanted.work},
                             {"LC_ALL", "C.UTF-8"},
                             {"SOURCE_DATE_EPOCH", std::to_string(wanted.definition.epoch)}}},
              "mmdebstrap", stop);
  if (!output) {
    const bool lacks = output.error().details.find("was not found") != std::string::npos;
    if (wanted.versions == Versions::kLocked && lacks) {
      output.error().message +=
          "; the archive no longer has a locked version: --allow-newer takes its newer one, "
          "--update-lock also writes it into the lock";
    }
    return Fail(std::move(output).error());
  }
  std::filesystem::remove(wanted.root + kPins, error);
  if (error) return Fail(errors::kImagesStore, "remove the pins of apt: " + error.message());
  CAISSON_ASSIGN(PackageLock found, Describe(archives));
  if (wanted.versions != Versions::kAny) {
    CAISSON_TRY(CheckAgainstLock(wanted.definition.lock, found, wanted.versions));
  }
  return found;
}

}  // namespace caisson::images
