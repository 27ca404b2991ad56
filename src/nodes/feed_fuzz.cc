// SPDX-License-Identifier: Apache-2.0
// Feeds, their dates and charsets come from anywhere.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "nodes/date_time.h"
#include "nodes/feed.h"
#include "nodes/text_decoding.h"

namespace {

bool IsValid(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = caisson::CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::nodes;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(bytes.find('\n'), size);
  const std::string text = DecodeBody(bytes.substr(line), bytes.substr(0, line));
  if (!IsValid(text)) std::abort();
  if (const auto items = ReadFeed(text)) {
    for (const FeedItem& item : *items) {
      if (!IsValid(item.title) || !IsValid(item.link)) std::abort();
      const std::string date = NormalFeedDate(item.published);
      if (!date.empty() && !ParseIsoTime(date)) std::abort();
    }
  }
  NormalFeedDate(bytes.substr(0, line));
  if (const auto time = ParseConfiguredTime(bytes)) {
    if (ParseConfiguredTime(FormatConfiguredTime(*time)) == std::nullopt) std::abort();
  }
  return 0;
}
