// SPDX-License-Identifier: Apache-2.0
// The form that bytes of HTTP/1 must have before the library parses them: what two readers could
// understand in two ways (RFC 9112 section 11) is refused, never mended. Beast takes folded fields,
// repeated and listed lengths, codings before chunked and chunk sizes of any length; nothing that
// comes through here holds one of these. Decides only; it is not the parser.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace caisson::http {

// `head` ends with its empty line. Lines end with CRLF and hold no CR, LF or NUL, no field is
// folded, each is a token, a colon and a value without controls; at most `most_fields` of them.
// There is one Content-Length of plain digits, or one Transfer-Encoding that is "chunked" (in
// HTTP/1.1), or none of the two. A request has one Host in HTTP/1.1, at most one in 1.0.
// http.bad_request, http.header_too_large, http.version, http.transfer_coding.
Result<void> CheckRequestForm(std::string_view head, std::size_t most_fields);
Result<void> CheckResponseForm(std::string_view head, std::size_t most_fields);

// The same for what stands between the data of two chunks, as it comes in pieces: the CRLF that
// ends a chunk, the line with the size of the next one (1 to 15 hexadecimal digits, extensions of
// visible characters, at most 1 KiB) and, after the last chunk, the trailers (at most 8 KiB).
class ChunkForm {
 public:
  // `bytes` begin where the data of the last chunk ended, and have grown since the last call when
  // that gave 0. The length of all that stands before the next data; 0: more is needed.
  // http.bad_request.
  Result<std::size_t> Check(std::string_view bytes);

 private:
  enum class At { kSize, kDataEnd, kTrailer };
  Result<std::size_t> CheckTrailers(std::string_view bytes);

  At at_ = At::kSize;
  std::size_t begin_ = 0;  // of the line that is not whole yet
  std::size_t trailers_ = 0;
};

}  // namespace caisson::http
