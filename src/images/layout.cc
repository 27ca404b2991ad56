// SPDX-License-Identifier: Apache-2.0
#include "images/layout.h"

#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/digest/sha256.h"
#include "errors/images.h"
#include "images/files.h"
#include "images/tool.h"
#include "images/tree.h"
#include "json/writer.h"

namespace caisson::images {
namespace {

constexpr const char* kManifestType = "application/vnd.oci.image.manifest.v1+json";
constexpr const char* kConfigType = "application/vnd.oci.image.config.v1+json";
constexpr const char* kLayerType = "application/vnd.oci.image.layer.v1.tar";

std::string TextOf(const json::Value& info, std::string_view key) {
  const json::Value* value = info.Find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}

json::Array Texts(std::initializer_list<std::string> texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

json::Value Descriptor(const char* type, const std::string& digest, std::uint64_t size) {
  return json::Object{{"mediaType", type}, {"digest", digest}, {"size", json::Value(size)}};
}

// The directory that a layout is written in, removed unless it is kept.
class Draft {
 public:
  static Result<Draft> Make(const std::string& path) {
    for (const std::string& folder : {path, path + "/blobs", path + "/blobs/sha256"}) {
      if (::mkdir(folder.c_str(), 0755) != 0) return FileError("make the directory", folder);
    }
    return Draft(path);
  }
  Draft(Draft&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft() {
    if (!path_.empty()) (void)RemoveTree(path_);
  }
  std::string Blob(const std::string& digest) const {
    return path_ + "/blobs/sha256/" + digest.substr(digest.find(':') + 1);
  }
  const std::string& path() const { return path_; }
  void Keep() { path_.clear(); }

 private:
  explicit Draft(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<std::string> AddText(const Draft& draft, const std::string& text) {
  std::string digest = "sha256:" + digest::Sha256Hex(text);
  CAISSON_TRY(WriteFile(draft.Blob(digest), text));
  return digest;
}

Result<void> Tar(const std::string& file, const std::string& directory,
                 std::vector<std::string> names, const std::stop_token& stop) {
  std::vector<std::string> words = {
      "tar",
      "--create",
      "--file=" + file,
      "--sort=name",
      "--format=posix",
      "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
      "--numeric-owner",
      "--owner=0",
      "--group=0",
      "--directory=" + directory};
  words.insert(words.end(), names.begin(), names.end());
  CAISSON_TRY(RunTool({.arguments = std::move(words)}, "tar", stop));
  return {};
}

Result<Layout> AddLayer(const Draft& draft, const Image& image, const std::stop_token& stop) {
  const std::string unnamed = draft.path() + "/layer";
  CAISSON_TRY(Tar(unnamed, image.root, {"."}, stop));
  CAISSON_ASSIGN(const std::string hex, DigestOfFile(unnamed));
  Layout layout;
  layout.layer_digest = "sha256:" + hex;
  std::error_code error;
  layout.bytes = std::filesystem::file_size(unnamed, error);
  std::filesystem::rename(unnamed, draft.Blob(layout.layer_digest), error);
  if (error) {
    errno = error.value();
    return FileError("rename", unnamed);
  }
  return layout;
}

// Three files: what the layout is, what is in it, and the same as older versions of Docker read it.
Result<void> AddIndex(const Draft& draft, const LayoutOptions& options, const Layout& layout,
                      std::uint64_t config_bytes) {
  const json::Value manifest = json::Object{
      {"schemaVersion", 2},
      {"mediaType", kManifestType},
      {"config", Descriptor(kConfigType, layout.image_digest, config_bytes)},
      {"layers", json::Array{Descriptor(kLayerType, layout.layer_digest, layout.bytes)}}};
  CAISSON_ASSIGN(const std::string text, json::Write(manifest));
  CAISSON_ASSIGN(const std::string digest, AddText(draft, text));
  json::Value entry = Descriptor(kManifestType, digest, text.size());
  const std::size_t colon = options.name.find(':');
  const std::string tag = colon == std::string::npos ? "latest" : options.name.substr(colon + 1);
  const std::string tagged = options.name.substr(0, colon) + ":" + tag;
  entry.mutable_object().Set(
      "annotations", json::Object{{"org.opencontainers.image.ref.name", tag},
                                  {"io.containerd.image.name", "docker.io/library/" + tagged}});
  CAISSON_ASSIGN(const std::string index,
                 json::Write(json::Object{{"schemaVersion", 2},
                                          {"manifests", json::Array{std::move(entry)}}}));
  const auto blob = [](const std::string& of) {
    return "blobs/sha256/" + of.substr(of.find(':') + 1);
  };
  CAISSON_ASSIGN(
      const std::string older,
      json::Write(json::Array{json::Object{{"Config", blob(layout.image_digest)},
                                           {"RepoTags", Texts({tagged})},
                                           {"Layers", Texts({blob(layout.layer_digest)})}}}));
  CAISSON_TRY(WriteFile(draft.path() + "/index.json", index));
  CAISSON_TRY(WriteFile(draft.path() + "/manifest.json", older));
  return WriteFile(draft.path() + "/oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
}

}  // namespace

Result<std::string> LayoutConfig(const Image& image, const std::string& layer_digest) {
  json::Object config{{"User", "1001:1001"},
                      {"Env", Texts({"HOME=/tmp", "PATH=/usr/bin"})},
                      {"WorkingDir", "/"},
                      {"Labels", json::Object{{"caisson.image", image.id}}}};
  if (const std::string python = TextOf(image.info, "python"); !python.empty()) {
    config.Set("Entrypoint", Texts({python, "-I"}));
  }
  return json::Write(json::Object{
      {"architecture", TextOf(image.info, "architecture")},
      {"os", "linux"},
      {"config", std::move(config)},
      {"rootfs", json::Object{{"type", "layers"}, {"diff_ids", Texts({layer_digest})}}}});
}

Result<Layout> WriteLayout(const Image& image, const LayoutOptions& options) {
  const bool is_archive = options.destination.ends_with(".tar");
  const std::string folder = options.destination + (is_archive ? ".draft" : "");
  CAISSON_ASSIGN(Draft draft, Draft::Make(folder));
  if (options.progress) options.progress("write the layer");
  CAISSON_ASSIGN(Layout layout, AddLayer(draft, image, options.stop));
  CAISSON_ASSIGN(const std::string config, LayoutConfig(image, layout.layer_digest));
  CAISSON_ASSIGN(layout.image_digest, AddText(draft, config));
  CAISSON_TRY(AddIndex(draft, options, layout, config.size()));
  if (!is_archive) {
    draft.Keep();
    return layout;
  }
  if (options.progress) options.progress("write the archive");
  CAISSON_TRY(Tar(options.destination, folder,
                  {"--mtime=@0", "oci-layout", "index.json", "manifest.json", "blobs"},
                  options.stop));
  return layout;
}

}  // namespace caisson::images
