// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/boot_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/digest/sha256.h"
#include "errors/machine.h"
#include "images/files.h"
#include "images/store.h"
#include "images/tool.h"
#include "os/fd.h"
#include "os/syscall_error.h"

namespace caisson::machine::microvm {
namespace {

namespace fs = std::filesystem;

// What the machines' devices and file systems need; the rest of it is in the kernel, or comes as a
// dependency.
constexpr std::array<std::string_view, 8> kModules = {
    "virtio_mmio", "virtio_blk", "virtio_console", "vmw_vsock_virtio_transport",
    "virtio_net",  "virtio-rng", "erofs",          "overlay"};
// Of them those that serve one link of the agent alone.
constexpr std::string_view kOfSerialPort = "virtio_console";
constexpr std::string_view kOfVsock = "vsock";

std::unexpected<Status> Unavailable(const std::string& what) {
  return Fail(errors::kMachineUnavailable, what);
}

Result<std::string> ReadWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unavailable("cannot read " + path.string());
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

Result<void> WriteWhole(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return Unavailable("cannot write " + path.string());
  return {};
}

// A name may be spelt with either, in files and in dependencies.
std::string Normal(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::map<std::string, fs::path> FindModules(const fs::path& root) {
  std::map<std::string, fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(root, error)) {
    if (entry.path().extension() == ".ko") found.emplace(Normal(entry.path().stem()), entry.path());
  }
  return found;
}

Result<void> AddModule(const std::map<std::string, fs::path>& all, const std::string& name,
                       std::set<std::string>& seen, std::vector<fs::path>& order) {
  if (!seen.insert(Normal(name)).second) return {};
  const auto found = all.find(Normal(name));
  if (found == all.end()) return {};  // it is in the kernel; a machine that lacks it does not boot
  CAISSON_ASSIGN(const std::string bytes, ReadWhole(found->second));
  std::istringstream names(DependenciesOf(bytes));
  for (std::string dependency; std::getline(names, dependency, ',');) {
    if (!dependency.empty()) CAISSON_TRY(AddModule(all, dependency, seen, order));
  }
  order.push_back(found->second);
  return {};
}

// --- cpio, as the kernel reads it (Documentation/driver-api/early-userspace/buffer-format.rst) ---

class Archive {
 public:
  void Directory(const std::string& name) { Add(name, 040755, {}); }
  void File(const std::string& name, std::string_view content, bool program) {
    Add(name, program ? 0100755 : 0100644, content);
  }
  void Device(const std::string& name, unsigned major, unsigned minor) {
    Add(name, 020600, {}, major, minor);
  }
  std::string Take() {
    Add("TRAILER!!!", 0, {});
    return std::move(bytes_);
  }

 private:
  void Add(const std::string& name, unsigned mode, std::string_view content, unsigned major = 0,
           unsigned minor = 0) {
    bytes_ += fmt::format(
        "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}"
        "{:08x}{:08x}",
        ++inode_, mode, 0, 0, 1, 0, content.size(), 0, 0, major, minor, name.size() + 1, 0);
    bytes_ += name;
    bytes_.push_back('\0');
    Pad();
    bytes_ += content;
    Pad();
  }
  void Pad() { bytes_.append((4 - bytes_.size() % 4) % 4, '\0'); }

  std::string bytes_;
  unsigned inode_ = 0;
};

// The lines of modules/order that a guest with such a link needs.
Result<std::string> OrderFor(const fs::path& kernel, AgentLink link) {
  CAISSON_ASSIGN(const std::string all, ReadWhole(kernel / "modules/order"));
  const bool by_vsock = link == AgentLink::kVsock;
  if (by_vsock && all.find(kOfVsock) == std::string::npos) {
    return Unavailable("the kernel in " + kernel.string() +
                       " has no modules for vsock; fetch it anew with `caisson images kernel`");
  }
  const std::string_view not_needed = by_vsock ? kOfSerialPort : kOfVsock;
  std::string order;
  std::istringstream lines(all);
  for (std::string name; std::getline(lines, name);) {
    if (name.find(not_needed) == std::string::npos) order += name + "\n";
  }
  return order;
}

Result<std::string> MakeArchive(const fs::path& kernel, const std::string& agent,
                                const std::string& init, AgentLink link) {
  Archive archive;
  archive.Directory("dev");
  archive.Device("dev/console", 5, 1);
  archive.Directory("modules");
  CAISSON_ASSIGN(const std::string order, OrderFor(kernel, link));
  archive.File("modules/order", order, false);
  std::istringstream lines(order);
  for (std::string name; std::getline(lines, name);) {
    CAISSON_ASSIGN(const std::string module, ReadWhole(kernel / "modules" / name));
    archive.File("modules/" + name, module, false);
  }
  CAISSON_ASSIGN(const std::string first, ReadWhole(init));
  archive.File("init", first, true);
  CAISSON_ASSIGN(const std::string second, ReadWhole(agent));
  archive.File("caisson-agent", second, true);
  return archive.Take();
}

// --- the package ---

Result<std::string> Tool(const KernelOptions& options, std::vector<std::string> words,
                         const std::string& package, const std::string& directory = {}) {
  os::Program program;
  program.arguments = std::move(words);
  program.variables = {{"LC_ALL", "C"}};
  program.directory = directory;
  return images::RunTool(program, package, options.stop);
}

// "linux-image-6.1.0-57-cloud-amd64" of the package that only depends on it.
Result<std::string> RealPackage(const KernelOptions& options) {
  CAISSON_ASSIGN(const std::string text,
                 Tool(options, {"apt-cache", "depends", options.package}, "apt"));
  const std::size_t at = text.find("Depends: linux-image-");
  if (at == std::string::npos) return options.package;
  const std::size_t begin = at + 9;
  return text.substr(begin, text.find('\n', begin) - begin);
}

Result<std::string> VersionOf(const KernelOptions& options, const std::string& package) {
  CAISSON_ASSIGN(const std::string text, Tool(options, {"apt-cache", "policy", package}, "apt"));
  const std::size_t at = text.find("Candidate: ");
  const std::string version =
      at == std::string::npos ? "" : text.substr(at + 11, text.find('\n', at) - at - 11);
  if (version.empty() || version == "(none)") {
    return Unavailable("apt has no " + package + "; run apt-get update");
  }
  return package + " " + version + "\n";
}

std::string ListOfModules() {
  std::string text = "modules";
  for (const std::string_view name : kModules) text += " " + std::string(name);
  return text + "\n";
}

struct Scratch {
  explicit Scratch(std::string place) : path(std::move(place)) {
    std::error_code error;
    fs::remove_all(path, error);
    fs::create_directories(path, error);
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

Result<void> Unpack(const KernelOptions& options, const std::string& package,
                    const std::string& scratch) {
  CAISSON_TRY(Tool(options, {"apt-get", "download", package}, "apt", scratch));
  std::string deb;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(scratch, error)) {
    if (entry.path().extension() == ".deb") deb = entry.path();
  }
  if (deb.empty()) return Unavailable("apt-get download " + package + " left no file");
  CAISSON_TRY(Tool(options, {"dpkg-deb", "-x", deb, scratch + "/root"}, "dpkg"));
  return {};
}

Result<void> Collect(const std::string& root, const std::string& to, const std::string& version) {
  std::error_code error;
  fs::create_directories(to + "/modules", error);
  fs::path image;
  for (const auto& entry : fs::directory_iterator(root + "/boot", error)) {
    if (entry.path().filename().string().starts_with("vmlinuz")) image = entry.path();
  }
  if (image.empty()) return Unavailable("the package of the kernel has no /boot/vmlinuz-*");
  fs::copy_file(image, to + "/vmlinuz", error);
  if (error) return Unavailable("copy the kernel: " + error.message());
  const auto all = FindModules(root);
  std::set<std::string> seen;
  std::vector<fs::path> order;
  for (const std::string_view name : kModules) {
    CAISSON_TRY(AddModule(all, std::string(name), seen, order));
  }
  std::string list;
  for (const fs::path& module : order) {
    fs::copy_file(module, to + "/modules/" + module.filename().string(), error);
    if (error) return Unavailable("copy a module: " + error.message());
    list += module.filename().string() + "\n";
  }
  CAISSON_TRY(WriteWhole(to + "/modules/order", list));
  return WriteWhole(to + "/version", version);
}

}  // namespace

std::string DefaultKernelDirectory() {
  const std::string images = images::Store::DefaultDirectory();
  return images.empty() ? "" : fs::path(images).parent_path() / "guest-kernel";
}

std::string DependenciesOf(std::string_view bytes) {
  using namespace std::string_view_literals;
  const std::size_t at = bytes.find("\0depends="sv);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + 9;
  return std::string(bytes.substr(begin, bytes.find('\0', begin) - begin));
}

Result<std::string> FetchKernel(const KernelOptions& options) {
  const auto say = [&options](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  CAISSON_ASSIGN(const std::string package, RealPackage(options));
  CAISSON_ASSIGN(const std::string version, VersionOf(options, package));
  // One that was fetched for fewer modules is fetched anew.
  const std::string whole = version + ListOfModules();
  if (const auto has = os::ReadSmallFile(options.directory + "/version"); has && *has == whole) {
    say(package + " is there");
    return version;
  }
  const std::string parent = fs::path(options.directory).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  const Scratch scratch(parent + "/.kernel-" + std::to_string(::getpid()));
  say("fetching " + package);
  CAISSON_TRY(Unpack(options, package, scratch.path));
  say("taking the kernel and its modules");
  CAISSON_TRY(Collect(scratch.path + "/root", scratch.path + "/new", whole));
  fs::remove_all(options.directory, error);
  fs::rename(scratch.path + "/new", options.directory, error);
  if (error) return Unavailable("make " + options.directory + ": " + error.message());
  return version;
}

Result<BootFiles> MakeBootFiles(const std::string& kernel, const std::string& agent,
                                const std::string& init, const std::string& directory,
                                AgentLink link) {
  if (!fs::exists(kernel + "/vmlinuz")) {
    return Unavailable("there is no kernel for virtual machines in " + kernel +
                       "; fetch one with `caisson images kernel`");
  }
  CAISSON_ASSIGN(const std::string archive, MakeArchive(kernel, agent, init, link));
  CAISSON_ASSIGN(const std::string image, ReadWhole(kernel + "/vmlinuz"));
  BootFiles files{.directory = directory, .id = digest::Sha256Hex(image + archive)};
  if (const auto has = os::ReadSmallFile(directory + "/id"); has && *has == files.id) return files;
  std::error_code error;
  fs::remove_all(directory, error);
  fs::create_directories(directory, error);
  CAISSON_TRY(WriteWhole(directory + "/vmlinuz", image));
  CAISSON_TRY(WriteWhole(directory + "/initrd", archive));
  CAISSON_TRY(WriteWhole(directory + "/id", files.id));
  for (const char* file : {"/vmlinuz", "/initrd"}) ::chmod((directory + file).c_str(), 0444);
  ::chmod(directory.c_str(), 0755);
  return files;
}

}  // namespace caisson::machine::microvm
