// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/bundle.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "errors/images.h"
#include "images/files.h"
#include "jail/interpreter_syscalls.h"
#include "json/writer.h"
#include "machine/oci/policy.h"

namespace caisson::machine::oci {

json::Value BundleConfig(const images::Image& image, const std::vector<std::string>& arguments) {
  const auto syscalls = jail::ContainerSyscalls(std::nullopt, false);
  ContainerPolicy policy;
  policy.root = image.root;
  policy.arguments = arguments;
  policy.environment = {"HOME=/tmp", "PATH=/usr/bin"};
  policy.syscalls = syscalls;
  json::Value config = RuntimeConfig(policy);
  config.mutable_object().Set("annotations", json::Object{{"caisson.image", image.id}});
  return config;
}

Result<void> WriteBundle(const images::Image& image, const std::vector<std::string>& arguments,
                         const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return images::FileError("make the directory", directory);
  }
  std::error_code error;
  if (!std::filesystem::is_empty(directory, error) || error) {
    return Fail(errors::kImagesStore, directory + " is not an empty directory; a bundle needs one");
  }
  CAISSON_ASSIGN(const std::string text,
                 json::Write(BundleConfig(image, arguments), {.indent = 2}));
  return images::WriteFile(directory + "/config.json", text + "\n");
}

}  // namespace caisson::machine::oci
