// SPDX-License-Identifier: Apache-2.0
#include "images/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <initializer_list>

#include "base/digest/sha256.h"
#include "errors/images.h"
#include "images/files.h"
#include "json/reader.h"

namespace caisson::images {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Debian policy 5.6.7, and what apt takes as a version.
bool IsPackageName(std::string_view text) {
  return text.size() >= 2 && IsAlphanumeric(text[0]) &&
         text.find_first_not_of(std::string(kLower) + std::string(kDigits) + "+-.") ==
             std::string_view::npos;
}
bool IsVersion(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || std::string_view("+-.:~").find(c) != std::string_view::npos;
  });
}
bool IsWord(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text[0]) && std::ranges::all_of(text, [](char c) {
    return IsAlphanumeric(c) || std::string_view("._-").find(c) != std::string_view::npos;
  });
}
bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
// "**" may stand for any number of components once, before the last one.
bool IsPattern(std::string_view text) {
  const std::size_t stars = text.find("**");
  if (stars == std::string_view::npos) return IsInsidePath(text);
  const std::string_view last = text.substr(stars).substr(2);
  return (stars == 0 || (text[stars - 1] == '/' && IsInsidePath(text.substr(0, stars - 1)))) &&
         last.starts_with('/') && last.find('/', 1) == std::string_view::npos &&
         last.find("**") == std::string_view::npos && IsInsidePath(last.substr(1));
}
bool IsAnything(std::string_view) { return true; }

using Check = bool (*)(std::string_view);

// Reads the members of one object; the first mistake is kept.
class Fields {
 public:
  Fields(const json::Value& value, std::string path, std::initializer_list<std::string_view> known)
      : value_(value), path_(std::move(path)) {
    if (!value.is_object()) {
      Mistake("", "must be an object");
      return;
    }
    for (const auto& [key, unused] : value.as_object()) {
      if (std::ranges::find(known, key) == known.end()) Mistake("." + key, "is no known member");
    }
  }

  std::string Text(std::string_view key, Check check, std::string_view what, bool required = true) {
    const json::Value* found = value_.Find(key);
    if (found == nullptr) return required ? Missing(key) : "";
    if (found->is_string() && check(found->as_string())) return found->as_string();
    Mistake(Member(key), "must be " + std::string(what));
    return "";
  }
  std::vector<std::string> Texts(std::string_view key, Check check, std::string_view what) {
    std::vector<std::string> texts;
    Each(key, [&](const json::Value& item, const std::string& path) {
      if (!item.is_string() || !check(item.as_string())) {
        return Mistake(path, "must be " + std::string(what));
      }
      texts.push_back(item.as_string());
    });
    return texts;
  }
  std::int64_t Integer(std::string_view key, std::int64_t least, std::int64_t most) {
    const json::Value* found = value_.Find(key);
    if (found == nullptr) return Missing(key), 0;
    if (found->is_int() && found->as_int() >= least && found->as_int() <= most) {
      return found->as_int();
    }
    Mistake(Member(key), fmt::format("must be an integer from {} to {}", least, most));
    return 0;
  }
  bool Flag(std::string_view key) {
    const json::Value* found = value_.Find(key);
    if (found == nullptr) return false;
    if (!found->is_bool()) Mistake(Member(key), "must be true or false");
    return found->is_bool() && found->as_bool();
  }
  // `path` starts at this object.
  void Each(std::string_view key,
            const std::function<void(const json::Value&, const std::string& path)>& take) {
    const json::Value* found = value_.Find(key);
    if (found == nullptr) return;
    if (!found->is_array()) return Mistake(Member(key), "must be an array");
    for (std::size_t i = 0; i < found->as_array().size(); ++i) {
      take(found->as_array()[i], fmt::format("{}[{}]", Member(key), i));
    }
  }
  const std::string& path() const { return path_; }
  const std::string& mistake() const { return mistake_; }
  void Adopt(const Fields& inner) {
    if (mistake_.empty()) mistake_ = inner.mistake_;
  }
  void Mistake(const std::string& member, const std::string& what) {
    if (mistake_.empty()) mistake_ = path_ + member + " " + what;
  }

 private:
  static std::string Member(std::string_view key) { return "." + std::string(key); }
  std::string Missing(std::string_view key) {
    Mistake(Member(key), "is missing");
    return "";
  }

  const json::Value& value_;
  std::string path_;
  std::string mistake_;
};

constexpr std::string_view kInsidePath = "a path inside the image: relative, without . or ..";
constexpr std::string_view kFileName = "a file name relative to the definition";

std::optional<PythonLibraries> ReadPython(const json::Value& value, Fields& fields) {
  const json::Value* found = value.Find("python");
  if (found == nullptr) return std::nullopt;
  Fields inner(*found, fields.path() + ".python",
               {"program", "version", "directory", "requirements", "wheel_platforms"});
  PythonLibraries python;
  python.program = inner.Text("program", IsInsidePath, kInsidePath);
  python.version = inner.Text("version", IsVersion, "a version, as 3.11");
  python.directory = inner.Text("directory", IsInsidePath, kInsidePath);
  python.requirements = inner.Text("requirements", IsAnything, kFileName, false);
  python.wheel_platforms = inner.Texts("wheel_platforms", IsWord, "a platform tag of wheels");
  fields.Adopt(inner);
  return python;
}

void ReadExtras(Fields& fields, Definition& definition) {
  fields.Each("files", [&](const json::Value& item, const std::string& path) {
    Fields inner(item, fields.path() + path, {"path", "text", "executable"});
    definition.files.push_back({inner.Text("path", IsInsidePath, kInsidePath),
                                inner.Text("text", IsAnything, "text"), inner.Flag("executable")});
    fields.Adopt(inner);
  });
  fields.Each("programs", [&](const json::Value& item, const std::string& path) {
    Fields inner(item, fields.path() + path, {"path", "program"});
    definition.programs.push_back({inner.Text("path", IsInsidePath, kInsidePath),
                                   inner.Text("program", IsWord, "the name of a program")});
    fields.Adopt(inner);
  });
  fields.Each("links", [&](const json::Value& item, const std::string& path) {
    Fields inner(item, fields.path() + path, {"path", "target"});
    definition.links.push_back(
        {inner.Text("path", IsInsidePath, kInsidePath), inner.Text("target", IsAnything, "text")});
    fields.Adopt(inner);
  });
}

Result<Definition> Interpret(const json::Value& value, const std::string& path) {
  Fields fields(value, "$",
                {"format", "name", "description", "suite", "architecture", "epoch", "packages",
                 "packages_lock", "installed", "python", "remove", "directories", "files", "links",
                 "programs"});
  Definition definition;
  fields.Integer("format", 1, 1);
  definition.name =
      fields.Text("name", IsImageName, "a name of letters, digits, -, _ and ., perhaps with :tag");
  definition.description = fields.Text("description", IsAnything, "text", false);
  definition.suite = fields.Text("suite", IsWord, "the code name of a Debian release");
  definition.architecture = fields.Text("architecture", IsWord, "a Debian architecture");
  definition.epoch = fields.Integer("epoch", 0, 0xffffffff);
  definition.packages = fields.Texts("packages", IsPackageName, "the name of a Debian package");
  definition.lock_path = fields.Text("packages_lock", IsAnything, kFileName);
  definition.installed = fields.Flag("installed");
  definition.python = ReadPython(value, fields);
  definition.remove = fields.Texts("remove", IsPattern, "a pattern of paths inside the image");
  definition.directories = fields.Texts("directories", IsInsidePath, kInsidePath);
  ReadExtras(fields, definition);
  if (definition.packages.empty()) fields.Mistake(".packages", "must name a package at least");
  if (fields.mistake().empty()) return definition;
  return Fail(errors::kImagesDefinition, path + ": " + fields.mistake());
}

std::string Beside(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).lexically_normal().string();
}

Result<void> ReadLocks(Definition& definition, std::string& texts) {
  std::error_code error;
  if (std::filesystem::exists(definition.lock_path, error)) {
    CAISSON_ASSIGN(const std::string text, ReadFile(definition.lock_path));
    CAISSON_ASSIGN(definition.lock, ParsePackageLock(text, definition.lock_path));
    texts += text;
  }
  if (!definition.python || definition.python->requirements.empty()) return {};
  CAISSON_ASSIGN(const std::string text, ReadFile(definition.python->requirements));
  texts += text;
  return {};
}

}  // namespace

bool IsImageName(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view stem = name.substr(0, colon);
  return name.size() <= 64 && IsWord(stem) && kDigits.find(stem[0]) == std::string_view::npos &&
         (colon == std::string_view::npos || IsWord(name.substr(colon + 1)));
}

bool IsInsidePath(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Result<PackageLock> ParsePackageLock(std::string_view text, const std::string& path) {
  PackageLock lock;
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    const std::size_t equals = std::min(line.find('='), line.size());
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, equals);
    const std::string_view version =
        space > equals ? line.substr(equals + 1, space - equals - 1) : std::string_view();
    const std::string_view sha256 = line.substr(std::min(space + 1, line.size()));
    if (!IsPackageName(name) || !IsVersion(version) || !IsSha256(sha256)) {
      return Fail(errors::kImagesDefinition,
                  fmt::format("{}:{}: a line of a lock reads name=version sha256", path, number));
    }
    if (!lock.try_emplace(std::string(name), std::string(version), std::string(sha256)).second) {
      return Fail(errors::kImagesDefinition,
                  fmt::format("{}:{}: {} is locked twice", path, number, name));
    }
  }
  return lock;
}

std::string FormatPackageLock(const PackageLock& lock) {
  std::string text;
  for (const auto& [name, package] : lock) {
    text += name + "=" + package.version + " " + package.sha256 + "\n";
  }
  return text;
}

std::vector<std::string> DefinitionNames(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error)) {
    if (it->path().extension() != ".json") continue;
    std::string name = it->path().stem().string();
    std::ranges::replace(name, '@', ':');
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

Result<Definition> LoadDefinition(const std::string& directory, const std::string& name) {
  const std::vector<std::string> names = DefinitionNames(directory);
  if (!IsImageName(name) || std::ranges::find(names, name) == names.end()) {
    std::string known;
    for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
    return Fail(errors::kImagesUnknown,
                fmt::format("there is no definition of an image '{}' in {}; there {}", name,
                            directory, known.empty() ? "is none" : "are: " + known));
  }
  std::string file = name + ".json";
  std::ranges::replace(file, ':', '@');
  const std::string path = (std::filesystem::path(directory) / file).string();
  CAISSON_ASSIGN(std::string text, ReadFile(path));
  auto value = json::Read(text, {.reject_duplicate_keys = true});
  if (!value) return Fail(errors::kImagesDefinition, path + ": " + value.error().message);
  CAISSON_ASSIGN(Definition definition, Interpret(*value, path));
  if (definition.name != name) {
    return Fail(errors::kImagesDefinition,
                fmt::format("{}: $.name is '{}'; it must be the file's own, '{}'", path,
                            definition.name, name));
  }
  definition.lock_path = Beside(path, definition.lock_path);
  if (definition.python && !definition.python->requirements.empty()) {
    definition.python->requirements = Beside(path, definition.python->requirements);
  }
  CAISSON_TRY(ReadLocks(definition, text));
  definition.digest = digest::Sha256Hex(text);
  return definition;
}

}  // namespace caisson::images
