// SPDX-License-Identifier: Apache-2.0
// Takes the chunked coding off a body: what stands between the data is checked strictly first
// (form.h), then parsed by Beast. Extensions and trailers are bounded and dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "http/form.h"

namespace caisson::http {

class ChunkDecoder {
 public:
  ChunkDecoder();
  ChunkDecoder(ChunkDecoder&&) noexcept;
  ChunkDecoder& operator=(ChunkDecoder&&) noexcept;
  ~ChunkDecoder();

  struct Step {
    std::size_t consumed = 0;  // bytes of `bytes` that are done with; 0: more are needed
    std::string_view data;     // a piece of `bytes`, at most `most` long
  };
  // One step forward; what it did not consume must stand at the start of the next call's `bytes`.
  // http.bad_request. Not to be called once done(), or after it failed.
  Result<Step> Next(std::string_view bytes, std::size_t most);
  bool done() const;

 private:
  class Parser;
  ChunkForm form_;
  std::unique_ptr<Parser> parser_;  // made when the first bytes come
};

}  // namespace caisson::http
