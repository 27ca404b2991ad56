// SPDX-License-Identifier: Apache-2.0
// Names that go to a container runtime. They are checked letter by letter, so that none can add an
// argument to a command line or leave a folder.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::machine::oci {

// [a-zA-Z0-9][a-zA-Z0-9_.-]*, at most 128 of them.
bool IsContainerName(std::string_view text);

// [registry[:port]/]repository[:tag][@sha256:<64 hex digits>]
struct ImageReference {
  std::string registry;    // with its port; empty: none was named
  std::string repository;  // "library/python"
  std::string tag;         // empty: none was named
  std::string digest;      // "sha256:…"; empty: none was named

  std::string ToText() const;
};

// Fails with oci.bad_name.
Result<ImageReference> ParseImageReference(std::string_view text);

}  // namespace caisson::machine::oci
