// SPDX-License-Identifier: Apache-2.0
#include "images/manifest.h"

#include <fmt/format.h>

#include <unistd.h>
#include <climits>
#include <map>
#include <string_view>

#include "base/digest/sha256.h"
#include "errors/images.h"
#include "images/files.h"
#include "images/tree.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::images {
namespace {

Result<std::string> LinkTarget(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return FileError("read the link", path);
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Result<json::Object> Describe(const TreeEntry& entry) {
  const mode_t mode = entry.info.st_mode;
  json::Object line{{"path", entry.relative}};
  if (S_ISLNK(mode)) {
    CAISSON_ASSIGN(const std::string target, LinkTarget(entry.path));
    line.Set("type", "link");
    line.Set("target", target);
    return line;
  }
  line.Set("mode", fmt::format("{:04o}", mode & 07777));
  if (S_ISDIR(mode)) {
    line.Set("type", "directory");
    return line;
  }
  if (!S_ISREG(mode)) {
    return Fail(errors::kImagesTree, "/" + entry.relative + " is neither file, directory nor link");
  }
  CAISSON_ASSIGN(const std::string digest, DigestOfFile(entry.path));
  line.Set("type", "file");
  line.Set("size", static_cast<std::uint64_t>(entry.info.st_size));
  line.Set("sha256", digest);
  return line;
}

using Lines = std::map<std::string, json::Value>;

Result<Lines> ReadLines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    CAISSON_ASSIGN(json::Value line, json::Read(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const json::Value* path = line.Find("path");
    if (path != nullptr && !path->is_string()) {
      return Fail(errors::kImagesStore, "a manifest has a path that is no text");
    }
    std::string key = path == nullptr ? "" : path->as_string();
    lines.emplace(std::move(key), std::move(line));
  }
  return lines;
}

std::string Disagreement(const json::Value& first, const json::Value& second) {
  for (const char* key : {"type", "mode", "size", "target", "sha256"}) {
    const json::Value* a = first.Find(key);
    const json::Value* b = second.Find(key);
    if ((a == nullptr) != (b == nullptr) || (a != nullptr && !(*a == *b))) {
      return std::string("differs in ") + key;
    }
  }
  return first == second ? "" : "differs";
}

}  // namespace

Result<Manifest> MakeManifest(const std::string& root, std::int64_t epoch) {
  CAISSON_ASSIGN(const std::vector<TreeEntry> entries, WalkTree(root));
  Manifest manifest;
  manifest.text = fmt::format("{{\"epoch\":{},\"format\":1}}\n", epoch);
  for (const TreeEntry& entry : entries) {
    CAISSON_ASSIGN(json::Object line, Describe(entry));
    auto text = json::WriteCanonical(std::move(line));
    if (!text) {
      return Fail(errors::kImagesTree, "the name of " + json::Quote(entry.relative) +
                                           ", or what it links to, is no UTF-8");
    }
    manifest.text += *text + "\n";
    if (!S_ISREG(entry.info.st_mode)) continue;
    manifest.bytes += static_cast<std::uint64_t>(entry.info.st_size);
    ++manifest.files;
  }
  manifest.id = digest::Sha256Hex(manifest.text);
  return manifest;
}

Result<std::vector<Difference>> CompareManifests(const std::string& first,
                                                 const std::string& second) {
  CAISSON_ASSIGN(const Lines a, ReadLines(first));
  CAISSON_ASSIGN(Lines b, ReadLines(second));
  std::map<std::string, std::string> found;
  for (const auto& [path, line] : a) {
    const auto other = b.find(path);
    if (other == b.end()) {
      found[path] = "only in the first";
      continue;
    }
    if (std::string what = Disagreement(line, other->second); !what.empty()) found[path] = what;
    b.erase(other);
  }
  for (const auto& [path, line] : b) found[path] = "only in the second";
  std::vector<Difference> differences;
  differences.reserve(found.size());
  for (const auto& [path, what] : found) differences.push_back({path, what});
  return differences;
}

}  // namespace caisson::images
