// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "errors/cli.h"
#include "json/reader.h"
#include "os/write_all.h"

namespace caisson::cli {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ > STDERR_FILENO) close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string Name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::unexpected<Status> Unreadable(const std::string& path, const std::string& why) {
  return Fail(errors::kCliFileUnreadable, Name(path) + " cannot be read: " + why);
}

std::unexpected<Status> Unwritable(const std::string& path) {
  return Fail(errors::kCliFileUnwritable, path + " cannot be written: " + std::strerror(errno));
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, std::size_t limit) {
  const Descriptor file(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Unreadable(path, std::strerror(errno));
  std::string text;
  struct stat info{};
  if (fstat(file.get(), &info) == 0 && info.st_size > 0) {
    text.reserve(std::min(limit, static_cast<std::size_t>(info.st_size)) + 1);
  }
  char buffer[64 << 10];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unreadable(path, std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > limit) {
      return Unreadable(path, "it has more than " + std::to_string(limit) + " bytes");
    }
  }
}

Result<void> WriteFile(const std::string& path, std::string_view text) {
  const std::string draft = path + ".tmp" + std::to_string(getpid());
  const int created = open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (created < 0) return Unwritable(path);
  const auto write_all = [&] {
    const Descriptor file(created);
    errno = os::WriteAll(file.get(), text);
    return errno == 0;
  };
  if (write_all() && rename(draft.c_str(), path.c_str()) == 0) return {};
  auto failure = Unwritable(path);
  unlink(draft.c_str());
  return failure;
}

std::string RuntimesDirectory() {
  const char* runtimes = std::getenv("CAISSON_RUNTIMES_DIR");
  return runtimes != nullptr && *runtimes != '\0' ? runtimes : CAISSON_RUNTIMES_DIR;
}

std::string ProgramDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

Result<json::Value> ReadJsonArgument(const std::string& argument, std::string_view what) {
  std::string text = argument;
  std::string place(what);
  if (argument == "-" || argument.starts_with('@')) {
    const std::string path = argument == "-" ? argument : argument.substr(1);
    CAISSON_ASSIGN(text, ReadFile(path));
    place += " (" + Name(path) + ")";
  }
  auto value = json::Read(text);
  if (value) return value;
  Status status = std::move(value).error();
  status.message = place + ": " + status.message;
  return Fail(std::move(status));
}

}  // namespace caisson::cli
