// SPDX-License-Identifier: Apache-2.0
// sandbox cp: one file, either way.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/sandbox.h"
#include "errors/cli.h"
#include "os/fd.h"
#include "os/write_all.h"

namespace caisson::cli {
namespace {

struct Place {
  std::string sandbox;  // empty: here
  std::string path;
};

// "box:/path" is in a sandbox; what begins with a slash or a dot is here.
Place PlaceOf(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.front() == '/' || text.front() == '.') {
    return {.sandbox = "", .path = text};
  }
  return {.sandbox = text.substr(0, colon), .path = text.substr(colon + 1)};
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string FilesPath(const std::string& sandbox, const std::string& path) {
  return sandbox + "/files?path=" + http::PercentEncode(path);
}

Result<ExitCode> Upload(const Place& from, Place to, ServiceClient& client) {
  const os::UniqueFd file(open(from.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Fail(errors::kCliFileUnreadable, from.path + " is no file that can be read");
  }
  if (to.path.ends_with('/')) to.path += NameOf(from.path);
  CAISSON_ASSIGN(const std::string sandbox, client.PathOf(to.sandbox));
  http::ClientRequest request{
      .method = "PUT",
      .path = FilesPath(sandbox, to.path) + fmt::format("&mode={:04o}", info.st_mode & 07777),
      .headers = {{"Content-Type", "application/octet-stream"}}};
  request.upload_size = static_cast<std::uint64_t>(info.st_size);
  request.upload = [&](std::span<char> into) -> Result<std::size_t> {
    const ssize_t got = read(file.get(), into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    return Fail(errors::kCliFileUnreadable, from.path + ": " + std::strerror(errno));
  };
  CAISSON_TRY(client.Send(request));
  return ExitCode::kOk;
}

Result<ExitCode> Download(const Place& from, Place to, ServiceClient& client) {
  if (to.path.ends_with('/') || to.path == ".") to.path += "/" + NameOf(from.path);
  CAISSON_ASSIGN(const std::string sandbox, client.PathOf(from.sandbox));
  // Beside the file, which is replaced once all of it is there.
  std::string draft = to.path + ".XXXXXX";
  const os::UniqueFd file(mkostemp(draft.data(), O_CLOEXEC));
  if (!file.valid()) {
    return Fail(errors::kCliFileUnwritable, to.path + ": " + std::strerror(errno));
  }
  http::ClientRequest request{.path = FilesPath(sandbox, from.path)};
  request.download = [&](std::string_view bytes) -> Result<void> {
    const int error = os::WriteAll(file.get(), bytes);
    if (error == 0) return {};
    return Fail(errors::kCliFileUnwritable, to.path + ": " + std::strerror(error));
  };
  auto answer = client.Send(request);
  if (!answer) {
    unlink(draft.c_str());
    return Fail(std::move(answer).error());
  }
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(file.get(), 0666 & ~mask) != 0 || rename(draft.c_str(), to.path.c_str()) != 0) {
    unlink(draft.c_str());
    return Fail(errors::kCliFileUnwritable, to.path + ": " + std::strerror(errno));
  }
  return ExitCode::kOk;
}

}  // namespace

Result<ExitCode> SandboxCopy(const SandboxArguments& arguments, ServiceClient& client, Console&) {
  const Place from = PlaceOf(arguments.source);
  const Place to = PlaceOf(arguments.destination);
  if (from.sandbox.empty() == to.sandbox.empty()) {
    return Fail(errors::kCliUsage,
                "one of the two must be in a sandbox (NAME:/path), the other here");
  }
  return to.sandbox.empty() ? Download(from, to, client) : Upload(from, to, client);
}

}  // namespace caisson::cli
