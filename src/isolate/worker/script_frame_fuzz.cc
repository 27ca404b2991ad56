// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a frame of a streaming run: the decoders refuse them, or give what is
// encoded to the same again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "isolate/worker/script_frame.h"

namespace caisson::isolate {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

std::string BodyOf(const std::string& frame) { return frame.substr(kFrameHeadBytes); }
std::string BodyOf(const OutgoingFrame& frame) {
  return BodyOf(frame.head).append(frame.rest.begin(), frame.rest.end());
}

void Check(std::string_view body) {
  if (const auto job = DecodeScriptJob(body)) {
    const auto again = DecodeScriptJob(BodyOf(EncodeScriptJob(*job)));
    Require(again && again->source == job->source && again->inputs == job->inputs &&
            again->options == job->options && again->imports == job->imports &&
            again->limits == job->limits && again->entry == job->entry);
    Require(MaxScriptFrameBytes(job->limits) > 0);
  }
  if (const auto message = DecodeScriptMessage(body)) {
    const std::string bytes = BodyOf(EncodeScriptMessage(*message));
    const auto again = DecodeScriptMessage(bytes);
    Require(again && again->kind == message->kind && again->final == message->final &&
            again->text == message->text);
  }
  if (const auto outcome = DecodeScriptEnd(body)) {
    const std::string bytes = BodyOf(EncodeScriptEnd(*outcome));
    const auto again = DecodeScriptEnd(bytes);
    Require(again && BodyOf(EncodeScriptEnd(*again)) == bytes);
  }
  if (const auto status = DecodeScriptStatus(body)) Require(!status->code.name.empty());
}

}  // namespace
}  // namespace caisson::isolate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  caisson::isolate::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
