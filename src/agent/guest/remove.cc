// SPDX-License-Identifier: Apache-2.0
// Removal in slices, with one descriptor however deep the folders are, and never through a link or
// into another mount.
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "agent/guest/files.h"

namespace caisson::agent::guest {
namespace {

constexpr int kRemovalsPerSlice = 128;
constexpr milliseconds kHeartbeat{5000};
constexpr std::size_t kMostLevels = 20'000;
constexpr int kMostReturns = 100;  // to folders that somebody fills again

struct FolderId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FolderId&) const = default;
};

FolderId IdOf(int fd) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) return {};
  return {about.st_dev, about.st_ino};
}

struct CloseFolder {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

class RemoveOperation final : public Operation {
 public:
  RemoveOperation(HostConnection& connection, const RemoveRequest& request)
      : Operation(connection),
        path_(request.path),
        recursive_(request.recursive),
        next_(connection.agent().loop, [this] { RemoveSlice(); }),
        heartbeat_(connection.agent().loop, [this] { Beat(); }) {
    if (auto begun = Begin(); !begun) {
      connection.Fail(begun.error());
      return;
    }
    heartbeat_.Set(kHeartbeat);
    next_.Set({});
  }

 private:
  struct Level {
    std::string name;  // in its parent
    FolderId parent;
  };

  Attempt<void> Begin() {
    auto place = FindPlace(path_);
    if (!place) return std::unexpected(place.error());
    name_ = std::move(place->name);
    folder_ = std::move(place->folder);
    return {};
  }

  void Beat() {
    if (!connection_.congested()) connection_.Send(FrameType::kHeartbeat, {});
    heartbeat_.Set(kHeartbeat);
  }

  void RemoveSlice() {
    for (int i = 0; i < kRemovalsPerSlice; ++i) {
      auto step = levels_.empty() ? RemoveNamed(name_) : Step();
      if (!step) return connection_.Fail(step.error());
      if (levels_.empty()) {
        connection_.SendMessage(FrameType::kEnd, End{.count = count_});
        return connection_.Finish();
      }
    }
    next_.Set({});
  }

  // The next thing in the folder that is open, or that folder itself.
  Attempt<void> Step() {
    errno = 0;
    while (const dirent* found = ::readdir(dir_.get())) {
      const std::string name = found->d_name;
      if (name != "." && name != "..") return RemoveNamed(name);
    }
    if (errno != 0) return FileFailure("read the directory " + Where(), errno);
    return Leave();
  }

  // Something in folder_; a directory that is not empty is entered.
  Attempt<void> RemoveNamed(const std::string& name) {
    if (::unlinkat(folder_.get(), name.c_str(), 0) == 0) return Count();
    if (errno != EISDIR && errno != EPERM) return Refused(name, errno);
    if (::unlinkat(folder_.get(), name.c_str(), AT_REMOVEDIR) == 0) return Count();
    if (errno == ENOTDIR) return Refused(name, EPERM);
    if (errno != ENOTEMPTY && errno != EEXIST) return Refused(name, errno);
    if (!recursive_) {
      return Fail(FailureKind::kNotEmpty,
                  "the directory " + path_ + " is not empty; remove it recursively");
    }
    return Enter(name);
  }

  Attempt<void> Count() {
    ++count_;
    return {};
  }

  Attempt<void> Enter(const std::string& name) {
    if (levels_.size() == kMostLevels) return Refused(name, ELOOP);
    os::UniqueFd next =
        OpenPath(folder_.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_XDEV);
    if (!next.valid()) return Refused(name, errno);
    levels_.push_back({name, IdOf(folder_.get())});
    folder_ = std::move(next);
    return Reopen();
  }

  Attempt<void> Leave() {
    os::UniqueFd up = OpenPath(folder_.get(), "..", O_RDONLY | O_DIRECTORY);
    if (!up.valid()) return FileFailure("return from the directory " + Where(), errno);
    if (IdOf(up.get()) != levels_.back().parent) {
      return Fail(FailureKind::kRefused,
                  "the directory " + Where() + " was moved while it was removed");
    }
    const std::string name = std::move(levels_.back().name);
    levels_.pop_back();
    folder_ = std::move(up);
    if (::unlinkat(folder_.get(), name.c_str(), AT_REMOVEDIR) == 0) {
      ++count_;
    } else if ((errno == ENOTEMPTY || errno == EEXIST) && ++returns_ <= kMostReturns) {
      return Enter(name);
    } else {
      return Refused(name, errno);
    }
    if (levels_.empty()) return {};
    return Reopen();
  }

  Attempt<void> Reopen() {
    const int fd = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir_.reset(fd >= 0 ? ::fdopendir(fd) : nullptr);
    if (dir_ == nullptr) return FileFailure("read the directory " + Where(), errno);
    return {};
  }

  // The folder that is open.
  std::string Where() const {
    if (levels_.empty()) return path_.substr(0, path_.size() - name_.size());
    std::string path = path_;
    for (std::size_t i = 1; i < levels_.size(); ++i) path += "/" + levels_[i].name;
    return path;
  }

  std::unexpected<Failure> Refused(const std::string& name, int error) const {
    return FileFailure("remove " + (levels_.empty() ? path_ : Where() + "/" + name), error);
  }

  std::string path_;
  bool recursive_;
  std::string name_;
  os::UniqueFd folder_;
  std::unique_ptr<DIR, CloseFolder> dir_;
  std::vector<Level> levels_;
  std::uint64_t count_ = 0;
  int returns_ = 0;
  Timer next_;
  Timer heartbeat_;
};

}  // namespace

std::unique_ptr<Operation> BeginRemove(HostConnection& connection, const RemoveRequest& request) {
  return std::make_unique<RemoveOperation>(connection, request);
}

}  // namespace caisson::agent::guest
