// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kReadPiece = 128u << 10;
constexpr int kPiecesPerSlice = 4;
constexpr int kEntriesPerSlice = 256;
constexpr mode_t kFileMode = 0644;

std::string TemporaryName() {
  std::uint64_t number = 0;
  [[maybe_unused]] const ssize_t drawn = ::getrandom(&number, sizeof number, 0);
  return ".caisson-upload-" + std::to_string(number);
}

std::unexpected<Failure> NotAFile(const std::string& path, mode_t mode) {
  return Fail(FailureKind::kNotAFile,
              path + " is " + TypeText(mode) + "; only regular files are read and written");
}

std::string LinkTarget(int folder, const char* name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(folder, name, target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

void AnswerStat(HostConnection& connection, const StatRequest& request) {
  if (auto checked = CheckPath(request.path); !checked) return connection.Fail(checked.error());
  const os::UniqueFd fd =
      OpenPath(AT_FDCWD, request.path, O_PATH | (request.follow ? 0 : O_NOFOLLOW));
  struct stat about{};
  if (!fd.valid() || ::fstat(fd.get(), &about) != 0) {
    return connection.Fail(FileFailure("look at " + request.path, errno).error());
  }
  FileInfo info = Describe(about);
  if (S_ISLNK(about.st_mode)) info.link_target = LinkTarget(fd.get(), "");
  connection.SendMessage(FrameType::kFile, info);
  connection.Finish();
}

PutOperation::PutOperation(HostConnection& connection, const PutRequest& request)
    : Operation(connection), counted_(connection.agent(), &Counts::streams), path_(request.path) {
  if (auto begun = Begin(request); !begun) {
    connection.Fail(begun.error());
  } else {
    connection.Send(FrameType::kOk, {});
  }
}

PutOperation::~PutOperation() {
  if (file_.valid()) ::unlinkat(place_.folder.get(), temporary_.c_str(), 0);
}

Attempt<void> PutOperation::Begin(const PutRequest& request) {
  auto place = MakePlace(request.path);
  if (!place) return std::unexpected(place.error());
  place_ = *std::move(place);
  struct stat about{};
  const bool replaces =
      ::fstatat(place_.folder.get(), place_.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0;
  if (!replaces && errno != ENOENT) return FileFailure("look at " + path_, errno);
  if (replaces && !S_ISREG(about.st_mode)) return NotAFile(path_, about.st_mode);
  mode_ = request.mode.value_or(replaces ? about.st_mode : kFileMode) & 07777;
  temporary_ = TemporaryName();
  file_.Reset(::openat(place_.folder.get(), temporary_.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file_.valid()) return FileFailure("make a file beside " + path_, errno);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
    pipe_out_.Reset(ends[0]);
    pipe_in_.Reset(ends[1]);
    ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kMaxDataBytes));
  }
  // A file keeps its owner, as if it had been written to; where that cannot be, it is ours.
  if (replaces) [[maybe_unused]]
    const int owned = ::fchown(file_.get(), about.st_uid, about.st_gid);
  return {};
}

void PutOperation::OnFrame(const Frame& frame) {
  const bool commits = frame.type == FrameType::kCommit;
  if (!commits && frame.type != FrameType::kData) return Operation::OnFrame(frame);
  if (auto done = commits ? Commit() : Write(frame.payload); !done) {
    return connection_.Fail(done.error());
  }
  if (!commits) return;
  connection_.SendMessage(FrameType::kEnd, End{.count = written_});
  connection_.Finish();
}

Attempt<void> PutOperation::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileFailure("write " + path_, errno);
    written_ += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

ssize_t PutOperation::ReadPayload(int socket, std::size_t most) {
  if (pipe_in_.valid()) {
    const ssize_t count =
        ::splice(socket, nullptr, pipe_in_.get(), nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count >= 0 || errno != EINVAL) {
      if (count <= 0) return count;
      if (auto done = WriteFromPipe(static_cast<std::size_t>(count)); !done) {
        connection_.Fail(done.error());
      }
      return count;
    }
    pipe_in_.Reset();  // not from a socket of this kind
  }
  auto& buffer = connection_.agent().buffer;
  const ssize_t count = ::read(socket, buffer.data(), std::min(most, buffer.size()));
  if (count <= 0) return count;
  if (auto done = Write({buffer.data(), static_cast<std::size_t>(count)}); !done) {
    connection_.Fail(done.error());
  }
  return count;
}

// As much as has just been put into it.
Attempt<void> PutOperation::WriteFromPipe(std::size_t bytes) {
  while (bytes > 0) {
    ssize_t count = ::splice(pipe_out_.get(), nullptr, file_.get(), nullptr, bytes, SPLICE_F_MOVE);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EINVAL) {  // not into a file of this kind
      auto& buffer = connection_.agent().buffer;
      count = ::read(pipe_out_.get(), buffer.data(), std::min(bytes, buffer.size()));
      if (count < 0) return FileFailure("write " + path_, errno);
      if (auto done = Write({buffer.data(), static_cast<std::size_t>(count)}); !done) return done;
    } else if (count <= 0) {
      return FileFailure("write " + path_, count == 0 ? ENOSPC : errno);
    } else {
      written_ += static_cast<std::uint64_t>(count);
    }
    bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

Attempt<void> PutOperation::Commit() {
  const int folder = place_.folder.get();
  if (::fchmod(file_.get(), mode_) != 0 ||
      ::renameat(folder, temporary_.c_str(), folder, place_.name.c_str()) != 0) {
    return FileFailure("put the new file in the place of " + path_, errno);
  }
  file_.Reset();
  return {};
}

GetOperation::GetOperation(HostConnection& connection, const PathRequest& request)
    : Operation(connection),
      counted_(connection.agent(), &Counts::streams),
      path_(request.path),
      next_(connection.agent().loop, [this] { ReadSlice(); }) {
  if (auto opened = Open(); !opened) {
    connection.Fail(opened.error());
    return;
  }
  connection.SendMessage(FrameType::kFile, info_);
  next_.Set({});
}

// Looked at before it is opened, since opening a device or a FIFO can do something.
Attempt<void> GetOperation::Open() {
  if (auto checked = CheckPath(path_); !checked) return checked;
  for (const int flags : {O_PATH, O_RDONLY | O_NONBLOCK | O_NOCTTY}) {
    file_ = OpenPath(AT_FDCWD, path_, flags);
    struct stat about{};
    if (!file_.valid() || ::fstat(file_.get(), &about) != 0) {
      return FileFailure("open " + path_, errno);
    }
    if (!S_ISREG(about.st_mode)) return NotAFile(path_, about.st_mode);
    info_ = Describe(about);
  }
  if (info_.size == 0) info_.size.reset();  // files of /proc say so, whatever is in them
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return {};
}

void GetOperation::ReadSlice() {
  auto& buffer = connection_.agent().buffer;
  for (int piece = 0; piece < kPiecesPerSlice; ++piece) {
    if (connection_.congested()) return;
    std::size_t wanted = std::min(kReadPiece, buffer.size());
    if (info_.size) wanted = std::min<std::uint64_t>(wanted, *info_.size - read_);
    const ssize_t count = wanted == 0 ? 0 : ::read(file_.get(), buffer.data(), wanted);
    if (count < 0) return connection_.Fail(FileFailure("read " + path_, errno).error());
    if (count > 0) {
      read_ += static_cast<std::uint64_t>(count);
      connection_.Send(FrameType::kData, {buffer.data(), static_cast<std::size_t>(count)});
      continue;
    }
    if (info_.size && read_ < *info_.size) {
      return connection_.Fail(
          Fail(FailureKind::kUnreadable, path_ + " became shorter while it was read").error());
    }
    connection_.SendMessage(FrameType::kEnd, End{.count = read_});
    return connection_.Finish();
  }
  next_.Set({});
}

struct ListOperation::Folder {
  explicit Folder(DIR* opened) : dir(opened) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { ::closedir(dir); }
  DIR* dir;
};

ListOperation::ListOperation(HostConnection& connection, const ListRequest& request)
    : Operation(connection),
      max_entries_(request.max_entries),
      next_(connection.agent().loop, [this] { ListSlice(); }) {
  if (auto opened = Open(request.path); !opened) {
    connection.Fail(opened.error());
  } else {
    ListSlice();
  }
}

Attempt<void> ListOperation::Open(const std::string& path) {
  if (auto checked = CheckPath(path); !checked) return checked;
  os::UniqueFd fd = OpenPath(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  DIR* dir = fd.valid() ? ::fdopendir(fd.get()) : nullptr;
  if (dir == nullptr) return FileFailure("open the directory " + path, errno);
  fd.Release();
  folder_ = std::make_unique<Folder>(dir);
  return {};
}

ListOperation::~ListOperation() = default;

// What one slice says is one write; the next comes when the host has taken it.
void ListOperation::ListSlice() {
  for (int i = 0; i < kEntriesPerSlice; ++i) {
    const dirent* found = ::readdir(folder_->dir);
    if (found == nullptr) return TellEnd(false);
    const std::string name = found->d_name;
    struct stat about{};
    const int dir = ::dirfd(folder_->dir);
    if (dir < 0 || name == "." || name == ".." ||
        ::fstatat(dir, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (count_ == max_entries_) return TellEnd(true);
    FileEntry entry{name, Describe(about)};
    if (S_ISLNK(about.st_mode)) entry.info.link_target = LinkTarget(dir, name.c_str());
    connection_.SendLater(FrameType::kEntry, Encode(entry));
    ++count_;
  }
  if (!connection_.congested()) next_.Set({});
}

void ListOperation::TellEnd(bool truncated) {
  connection_.SendMessage(FrameType::kEnd, End{.count = count_, .truncated = truncated});
  connection_.Finish();
}

}  // namespace caisson::agent::guest
