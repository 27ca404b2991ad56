// SPDX-License-Identifier: Apache-2.0
#include "images/bundle.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "errors/images.h"
#include "images/files.h"
#include "json/writer.h"

namespace caisson::images {
namespace {

constexpr int kUser = 1001;
constexpr std::int64_t kPeriod = 100'000;  // of the processor quota, in microseconds

json::Array Texts(std::initializer_list<const char*> texts) {
  json::Array array;
  for (const char* text : texts) array.emplace_back(text);
  return array;
}

json::Value Mount(const char* destination, const char* type, const char* source,
                  json::Array options) {
  return json::Object{{"destination", destination},
                      {"type", type},
                      {"source", source},
                      {"options", std::move(options)}};
}

json::Array Mounts(const BundleOptions& options) {
  json::Array tmp = Texts({"rw", "noexec", "nosuid", "nodev", "mode=1777"});
  tmp.emplace_back("size=" + std::to_string(options.tmp_bytes));
  return {Mount("/proc", "proc", "proc", Texts({"nosuid", "noexec", "nodev"})),
          Mount("/dev", "tmpfs", "tmpfs", Texts({"nosuid", "noexec", "mode=755", "size=65536k"})),
          Mount("/dev/shm", "tmpfs", "shm",
                Texts({"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"})),
          Mount("/tmp", "tmpfs", "tmpfs", std::move(tmp))};
}

json::Value Process(const BundleOptions& options) {
  json::Array arguments;
  for (const std::string& word : options.arguments) arguments.emplace_back(word);
  json::Object none;
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
    none.Set(set, json::Array{});
  }
  // No rlimits: the default ones of `runc spec` raise limits, which needs a capability that hosts
  // in containers lack.
  return json::Object{{"terminal", false},
                      {"user", json::Object{{"uid", kUser}, {"gid", kUser}}},
                      {"args", std::move(arguments)},
                      {"env", Texts({"HOME=/tmp", "PATH=/usr/bin"})},
                      {"cwd", "/"},
                      {"capabilities", std::move(none)},
                      {"noNewPrivileges", true}};
}

json::Value Linux(const BundleOptions& options) {
  json::Array namespaces;
  for (const char* type : {"pid", "network", "ipc", "uts", "mount"}) {
    namespaces.push_back(json::Object{{"type", type}});
  }
  const auto memory = static_cast<std::int64_t>(options.memory_bytes);
  json::Object resources{
      {"devices", json::Array{json::Object{{"allow", false}, {"access", "rwm"}}}},
      {"memory", json::Object{{"limit", memory}, {"swap", memory}}},
      {"cpu", json::Object{{"quota", static_cast<std::int64_t>(options.cpus * kPeriod)},
                           {"period", kPeriod}}},
      {"pids", json::Object{{"limit", static_cast<std::int64_t>(options.pids)}}}};
  return json::Object{
      {"namespaces", std::move(namespaces)},
      {"resources", std::move(resources)},
      {"maskedPaths", Texts({"/proc/acpi", "/proc/asound", "/proc/kallsyms", "/proc/kcore",
                             "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
                             "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"})},
      {"readonlyPaths",
       Texts({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})}};
}

}  // namespace

json::Value BundleConfig(const Image& image, const BundleOptions& options) {
  return json::Object{{"ociVersion", "1.0.2"},
                      {"process", Process(options)},
                      {"root", json::Object{{"path", image.root}, {"readonly", true}}},
                      {"hostname", "caisson"},
                      {"mounts", Mounts(options)},
                      {"annotations", json::Object{{"caisson.image", image.id}}},
                      {"linux", Linux(options)}};
}

Result<void> WriteBundle(const Image& image, const BundleOptions& options,
                         const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return FileError("make the directory", directory);
  }
  std::error_code error;
  if (!std::filesystem::is_empty(directory, error) || error) {
    return Fail(errors::kImagesStore, directory + " is not an empty directory; a bundle needs one");
  }
  CAISSON_ASSIGN(const std::string text, json::Write(BundleConfig(image, options), {.indent = 2}));
  return WriteFile(directory + "/config.json", text + "\n");
}

}  // namespace caisson::images
