// SPDX-License-Identifier: Apache-2.0
#include "images/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <tuple>

#include "errors/images.h"
#include "images/definition.h"
#include "images/files.h"
#include "images/tree.h"
#include "json/reader.h"
#include "json/writer.h"

namespace caisson::images {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBuildingPrefix = ".building-";
constexpr std::string_view kDoomedPrefix = ".doomed-";
constexpr std::size_t kIdSize = 64;
constexpr std::size_t kShortestPrefix = 12;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool IsId(std::string_view text) { return text.size() == kIdSize && IsHex(text); }
bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }
bool IsMissing(const std::string& path) { return !Exists(path) && errno == ENOENT; }

Result<void> MakeDirectory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return {};
    return FileError("make the directory", path);
  }
  // Not by mkdir: the umask of whoever builds must not decide who can use an image.
  if (::chmod(path.c_str(), mode) == 0) return {};
  return FileError("change the permissions of", path);
}

Result<void> MakeParents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    CAISSON_TRY(MakeDirectory(path.substr(0, slash), 0700));
  }
  return MakeDirectory(path, 0755);
}

Result<void> CheckOwnership(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return FileError("stat", path);
  const bool trusted = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (S_ISDIR(info.st_mode) && trusted && (info.st_mode & 022) == 0) return {};
  return Fail(
      errors::kImagesStore,
      path +
          " must be a directory that only you or root can write (chmod go-w): what is in it "
          "is run later");
}

// flock(2), held until the descriptor is closed. Empty when another process has it.
// Opened for reading where it exists: users who cannot write the store lock, too.
Result<std::optional<os::UniqueFd>> TryFlock(const std::string& path, int operation) {
  os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) {
    fd.Reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (fd.valid() && ::fchmod(fd.get(), 0644) != 0) return FileError("make", path);
  }
  if (!fd.valid()) return FileError("open", path);
  while (::flock(fd.get(), operation) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno != EINTR) return FileError("lock", path);
  }
  return fd;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> IdsIn(const std::string& directory) {
  std::vector<std::string> ids = NamesIn(directory);
  std::erase_if(ids, [](const std::string& name) { return !IsId(name); });
  return ids;
}

struct Name {
  std::string name;
  std::string id;
};

Result<std::vector<Name>> ReadNames(const std::string& directory) {
  std::vector<Name> names;
  const fs::path place = fs::path(directory) / "names";
  for (const std::string& name : NamesIn(place)) {
    if (!IsImageName(name)) continue;  // a draft of WriteFile
    const std::string path = place / name;
    CAISSON_ASSIGN(std::string id, ReadFile(path));
    if (!id.empty() && id.back() == '\n') id.pop_back();
    if (!IsId(id)) {
      return Fail(errors::kImagesStore, path + " does not hold an image id; remove the file");
    }
    names.push_back({name, std::move(id)});
  }
  return names;
}

std::unexpected<Status> Unknown(const std::string& directory, const std::string& name_or_id) {
  return Fail(errors::kImagesUnknown, "there is no image '" + name_or_id + "' in " + directory +
                                          "; `caisson images list` shows those there are, `caisson "
                                          "images build NAME` (as root) makes one");
}

// The id that `name_or_id` means.
Result<std::string> Resolve(const std::string& directory, const std::string& name_or_id) {
  CAISSON_ASSIGN(const std::vector<Name> names, ReadNames(directory));
  for (const Name& name : names) {
    if (name.name == name_or_id) return name.id;
  }
  if (name_or_id.size() < kShortestPrefix || !IsHex(name_or_id))
    return Unknown(directory, name_or_id);
  std::vector<std::string> ids = IdsIn(directory);
  std::erase_if(ids, [&](const std::string& id) { return !id.starts_with(name_or_id); });
  if (ids.size() == 1) return ids[0];
  if (ids.empty()) return Unknown(directory, name_or_id);
  return Fail(errors::kImagesUnknown, "more than one image id begins with '" + name_or_id + "'");
}

std::string HoldPath(const std::string& directory, const std::string& id) {
  return directory + "/" + id + "/hold";
}

}  // namespace

Building::~Building() {
  if (lock_.valid()) (void)RemoveTree(path_);  // what stays is removed by the next build
}

std::string Store::DefaultDirectory() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  if (std::string own = value("CAISSON_IMAGES_DIR"); !own.empty()) return own;
  if (std::string cache = value("CAISSON_CACHE_DIR"); !cache.empty()) return cache + "/images";
  if (std::string xdg = value("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/caisson/images";
  if (std::string home = value("HOME"); !home.empty()) return home + "/.cache/caisson/images";
  return "";
}

Result<Store> Store::Open(const std::string& directory) {
  if (directory.empty()) {
    return Fail(errors::kImagesStore,
                "there is no place for images: set CAISSON_IMAGES_DIR or HOME");
  }
  std::error_code error;
  std::string path = fs::absolute(directory, error).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!IsMissing(path)) CAISSON_TRY(CheckOwnership(path));
  return Store(std::move(path));
}

Result<void> Store::Make() const {
  CAISSON_TRY(MakeParents(directory_));
  CAISSON_TRY(CheckOwnership(directory_));
  return MakeDirectory(directory_ + "/names", 0755);
}

Result<os::UniqueFd> Store::Lock() const {
  CAISSON_TRY(CheckOwnership(directory_));
  CAISSON_ASSIGN(std::optional<os::UniqueFd> lock, TryFlock(directory_ + "/.lock", LOCK_EX));
  return *std::move(lock);
}

Result<std::optional<os::UniqueFd>> Store::TryBuildLock() const {
  CAISSON_TRY(Make());
  return TryFlock(directory_ + "/.build.lock", LOCK_EX | LOCK_NB);
}

Result<os::UniqueFd> Store::AwaitBuildLock(const std::stop_token& stop) const {
  while (!stop.stop_requested()) {
    CAISSON_ASSIGN(std::optional<os::UniqueFd> lock, TryBuildLock());
    if (lock) return *std::move(lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return Fail(errors::kImagesInterrupted, "stopped while another build was under way");
}

Result<Building> Store::MakeBuilding(os::UniqueFd lock) const {
  for (const std::string& name : NamesIn(directory_)) {
    if (!name.starts_with(kBuildingPrefix) && !name.starts_with(kDoomedPrefix)) continue;
    CAISSON_TRY(RemoveTree(directory_ + "/" + name));
  }
  std::string path = fmt::format("{}/{}{}", directory_, kBuildingPrefix, ::getpid());
  CAISSON_TRY(MakeDirectory(path, 0700));
  return Building(std::move(path), std::move(lock));
}

Result<Image> Store::Read(const std::string& id) const {
  const std::string base = directory_ + "/" + id;
  Image image{.id = id, .root = base + "/root", .manifest = base + "/manifest.jsonl"};
  if (Exists(base + "/root.erofs")) image.erofs = base + "/root.erofs";
  CAISSON_ASSIGN(const std::string text, ReadFile(base + "/image.json"));
  auto info = json::Read(text);
  if (!info) return Fail(errors::kImagesStore, base + "/image.json: " + info.error().message);
  image.info = *std::move(info);
  CAISSON_ASSIGN(const std::vector<Name> names, ReadNames(directory_));
  for (const Name& name : names) {
    if (name.id == id) image.names.push_back(name.name);
  }
  return image;
}

Result<std::vector<Image>> Store::List() const {
  if (IsMissing(directory_)) return std::vector<Image>{};
  CAISSON_ASSIGN(const os::UniqueFd lock, Lock());
  std::vector<Image> images;
  for (const std::string& id : IdsIn(directory_)) {
    CAISSON_ASSIGN(Image image, Read(id));
    images.push_back(std::move(image));
  }
  std::ranges::sort(images, {}, [](const Image& image) { return std::tie(image.names, image.id); });
  const auto named =
      std::ranges::find_if_not(images, [](const Image& image) { return image.names.empty(); });
  std::ranges::rotate(images, named);
  return images;
}

Result<Image> Store::Find(const std::string& name_or_id) const {
  if (IsMissing(directory_)) return Unknown(directory_, name_or_id);
  CAISSON_ASSIGN(const os::UniqueFd lock, Lock());
  CAISSON_ASSIGN(const std::string id, Resolve(directory_, name_or_id));
  return Read(id);
}

Result<HeldImage> Store::Hold(const std::string& name_or_id) const {
  if (IsMissing(directory_)) return Unknown(directory_, name_or_id);
  CAISSON_ASSIGN(const os::UniqueFd lock, Lock());
  CAISSON_ASSIGN(const std::string id, Resolve(directory_, name_or_id));
  CAISSON_ASSIGN(Image image, Read(id));
  // Removing locks this exclusively, and only under the store's own lock, which we have.
  CAISSON_ASSIGN(std::optional<os::UniqueFd> hold, TryFlock(HoldPath(directory_, id), LOCK_SH));
  return HeldImage{std::move(image), *std::move(hold)};
}

// Removes every image without a name that nobody holds; needs the lock.
Result<std::vector<std::string>> Store::Collect() const {
  CAISSON_ASSIGN(const std::vector<Name> names, ReadNames(directory_));
  std::vector<std::string> gone;
  for (const std::string& id : IdsIn(directory_)) {
    if (std::ranges::any_of(names, [&](const Name& name) { return name.id == id; })) continue;
    CAISSON_ASSIGN(const std::optional<os::UniqueFd> free,
                   TryFlock(HoldPath(directory_, id), LOCK_EX | LOCK_NB));
    if (!free) continue;
    // Renamed first: an interrupted removal must not leave half an image under its id.
    const std::string doomed = directory_ + "/" + std::string(kDoomedPrefix) + id;
    CAISSON_TRY(RemoveTree(doomed));
    if (::rename((directory_ + "/" + id).c_str(), doomed.c_str()) != 0) {
      return FileError("rename", directory_ + "/" + id);
    }
    CAISSON_TRY(RemoveTree(doomed));
    gone.push_back(id);
  }
  return gone;
}

Result<std::vector<std::string>> Store::Remove(const std::string& name_or_id) const {
  if (IsMissing(directory_)) return Unknown(directory_, name_or_id);
  CAISSON_ASSIGN(const os::UniqueFd lock, Lock());
  CAISSON_ASSIGN(const std::string id, Resolve(directory_, name_or_id));
  CAISSON_ASSIGN(std::vector<Name> names, ReadNames(directory_));
  std::erase_if(names, [&](const Name& name) { return name.id != id; });
  std::vector<Name> doomed = names;
  const auto is_meant = [&](const Name& name) { return name.name == name_or_id; };
  if (std::ranges::any_of(names, is_meant)) {
    std::erase_if(doomed, [&](const Name& name) { return !is_meant(name); });
  }
  if (doomed.size() == names.size()) {
    CAISSON_ASSIGN(const std::optional<os::UniqueFd> free,
                   TryFlock(HoldPath(directory_, id), LOCK_EX | LOCK_NB));
    if (!free) {
      return Fail(errors::kImagesInUse,
                  fmt::format("the image '{}' ({}) is in use; stop what runs from it first",
                              name_or_id, id.substr(0, kShortestPrefix)));
    }
  }
  for (const Name& name : doomed) {
    const std::string path = directory_ + "/names/" + name.name;
    if (::unlink(path.c_str()) != 0) return FileError("remove", path);
  }
  return Collect();
}

Result<Image> Store::Publish(const Finished& finished) const {
  const std::string& id = finished.manifest.id;
  CAISSON_TRY(WriteFile(finished.draft + "/manifest.jsonl", finished.manifest.text));
  CAISSON_ASSIGN(const std::string info, json::Write(finished.info, {.indent = 2}));
  CAISSON_TRY(WriteFile(finished.draft + "/image.json", info + "\n"));
  CAISSON_TRY(WriteFile(finished.draft + "/hold", ""));

  CAISSON_ASSIGN(const os::UniqueFd lock, Lock());
  const std::string place = directory_ + "/" + id;
  if (!Exists(place)) {
    if (::chmod(finished.draft.c_str(), 0755) != 0) return FileError("open up", finished.draft);
    if (::rename(finished.draft.c_str(), place.c_str()) != 0) return FileError("rename", place);
  } else if (Exists(finished.draft + "/root.erofs") && !Exists(place + "/root.erofs")) {
    const std::string from = finished.draft + "/root.erofs";
    if (::rename(from.c_str(), (place + "/root.erofs").c_str()) != 0) {
      return FileError("rename", from);
    }
  }
  CAISSON_TRY(WriteFile(directory_ + "/names/" + finished.name, id + "\n"));
  CAISSON_TRY(Collect());
  return Read(id);
}

}  // namespace caisson::images
