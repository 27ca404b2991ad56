// SPDX-License-Identifier: Apache-2.0
// The restricted grammar of templates: one literal FROM of a known image, then RUN, ENV, ARG,
// WORKDIR and LABEL. What it means is settled here (variables, directories, what a step runs with);
// nothing is run. Whatever has no meaning for a machine is refused, with its line and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace caisson::images {

inline constexpr std::size_t kMaxDockerfileBytes = 64u << 10;
inline constexpr std::size_t kMaxTemplateSteps = 256;
// Of all variables together: ENV lines may repeat one another and double each time.
inline constexpr std::size_t kMaxEnvironmentBytes = 32u << 10;

using Environment = std::map<std::string, std::string>;

// What one RUN or WORKDIR does: `arguments` with exactly this environment in this directory, which
// is there when a WORKDIR named it, since that is a step that makes it.
struct TemplateStep {
  std::uint32_t line = 0;
  std::string text;  // as it was written, joined, on one line
  std::vector<std::string> arguments;
  Environment environment;
  std::string directory;
};

struct Dockerfile {
  std::string from;   // as it was written
  std::string image;  // what the allow list says that it is
  std::vector<TemplateStep> steps;
  Environment environment;  // of the machines that are made of it: that of the base, and ENV
  std::string directory;    // "/" without a WORKDIR
  std::map<std::string, std::string> labels;
};

struct DockerfileOptions {
  std::map<std::string, std::string>
      images;                  // what may stand behind FROM -> the image it stands for
  Environment environment = {  // of the base
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", "/root"}};
};

// Fails with images.dockerfile: "line 3: COPY is not supported: …". The first mistake is the
// message and the span, all further ones are lines of the details.
Result<Dockerfile> ParseDockerfile(std::string_view text, const DockerfileOptions& options);

}  // namespace caisson::images
