// SPDX-License-Identifier: Apache-2.0
// Where nodes put files for people to download. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace caisson::nodes {

struct StoredBlob {
  std::string id;            // "atc_..."
  std::string download_url;  // for whoever may see the run
};

class Blobs {
 public:
  virtual ~Blobs() = default;
  // Keeps `content` for as long as the store keeps files. `name` and `mime_type` are an author's
  // and are not trusted. Fails with a code of the store; nothing is kept then.
  virtual Result<StoredBlob> Put(std::string_view content, std::string_view name,
                                 std::string_view mime_type) = 0;
};

}  // namespace caisson::nodes
