// SPDX-License-Identifier: Apache-2.0
// The images of this host, each kept once under its id (the sha256 of its manifest) and found by
// name. Only its owner writes it, others may use what is in it: root builds, a service that is not
// root runs. There are no secrets in images.
//
//   names/<name>       the id that a name stands for
//   <id>/root/         the root file system, read-only by convention
//   <id>/manifest.jsonl, <id>/image.json, <id>/root.erofs (when asked for)
//   .building-*/       what a build works in; stale ones go at the start of the next build
//
// Processes may share a store. A Store holds no state of its own and may be used by many threads.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/manifest.h"
#include "json/value.h"
#include "os/fd.h"

namespace caisson::images {

struct Image {
  std::string id;
  std::vector<std::string> names;  // empty: a later build took the name over
  std::string root;                // directory, absolute
  std::string manifest;            // file, absolute
  std::string erofs;               // file, absolute; empty when there is none
  json::Value info;                // image.json: what it was built from, see ImageInfo in build.cc
};

// An image that cannot be removed as long as this lives. Whoever maps, mounts or bundles a root
// holds it.
struct HeldImage {
  Image image;
  os::UniqueFd hold;
};

// The right to build, and a place to build in; one at a time per store. Destroying it removes the
// place.
class Building {
 public:
  Building(std::string path, os::UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  Building(Building&&) noexcept = default;
  Building& operator=(Building&&) = delete;
  ~Building();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  os::UniqueFd lock_;
};

// What a build hands over: the directory `draft` with root/ and perhaps root.erofs in it.
struct Finished {
  std::string draft;
  std::string name;
  Manifest manifest;
  json::Value info;
};

class Store {
 public:
  // $CAISSON_IMAGES_DIR, else $CAISSON_CACHE_DIR/images, else $XDG_CACHE_HOME/caisson/images, else
  // ~/.cache/caisson/images; empty when none of them is set.
  static std::string DefaultDirectory();

  // A directory that is missing is an empty store; the first build makes it. Fails with
  // images.store when it does not belong to this user or root, or others can write it.
  static Result<Store> Open(const std::string& directory);

  // All images, those with a name first, by name. An entry that cannot be read is an error.
  Result<std::vector<Image>> List() const;

  // By name, by id, or by the first 12 digits or more of an id. Fails with images.unknown.
  Result<Image> Find(const std::string& name_or_id) const;
  Result<HeldImage> Hold(const std::string& name_or_id) const;

  // Takes away a name, or an id with all of its names; then every image that has no name and is not
  // held. Returns the ids whose data went. Fails with images.unknown, and with images.in_use, when
  // an image that would lose its last name is held; nothing is changed then.
  Result<std::vector<std::string>> Remove(const std::string& name_or_id) const;

  // Waits for the build that is under way, if any (`waiting` is called once then), and removes what
  // interrupted builds left. Fails with images.interrupted when asked to stop.
  template <typename Waiting>
  Result<Building> Begin(const std::stop_token& stop, Waiting waiting) const {
    CAISSON_ASSIGN(std::optional<os::UniqueFd> lock, TryBuildLock());
    if (!lock) {
      waiting();
      CAISSON_ASSIGN(lock, AwaitBuildLock(stop));
    }
    return MakeBuilding(*std::move(lock));
  }

  // Moves a finished draft to its place in one step and gives it the name. When the same content is
  // there already, the draft is left to its Building. Fails with images.store.
  Result<Image> Publish(const Finished& finished) const;

  const std::string& directory() const { return directory_; }

 private:
  explicit Store(std::string directory) : directory_(std::move(directory)) {}
  Result<void> Make() const;
  Result<os::UniqueFd> Lock() const;
  Result<std::optional<os::UniqueFd>> TryBuildLock() const;
  Result<os::UniqueFd> AwaitBuildLock(const std::stop_token& stop) const;
  Result<Building> MakeBuilding(os::UniqueFd lock) const;
  Result<Image> Read(const std::string& id) const;
  Result<std::vector<std::string>> Collect() const;

  std::string directory_;
};

}  // namespace caisson::images
