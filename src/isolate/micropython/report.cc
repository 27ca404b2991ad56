// SPDX-License-Identifier: Apache-2.0
#include "isolate/micropython/report.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "isolate/micropython/object_reader.h"

namespace caisson::isolate {
namespace {

// As in runtimes/micropython/harness.py.
enum Kind : std::int32_t {
  kOk = 0,
  kRaised = 1,
  kExited = 2,
  kSyntax = 3,
  kShape = 4,
  kLost = 5,
  kMemory = 6,
};

constexpr std::size_t kMaxText = 64u << 10;
constexpr std::size_t kOuterFrames = 10;
constexpr std::size_t kInnerFrames = 40;

Fault FaultOf(std::int32_t kind) {
  switch (kind) {
    case kRaised:
    case kMemory:
      return Fault::kRaised;
    case kExited:
      return Fault::kExited;
    case kSyntax:
    case kShape:
      return Fault::kSyntax;
    default:
      return Fault::kArtifact;
  }
}

// The guest can make texts that are no UTF-8, and a cut may end inside a character.
std::string ValidUtf8(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = Utf8SequenceLength(text.substr(at));
    valid += length == 0 ? "\uFFFD" : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return valid;
}

std::string TextItem(const GuestMemory& memory, std::uint32_t report, std::uint32_t index) {
  const std::optional<std::uint32_t> item = TupleItem(memory, report, index);
  const std::optional<std::string_view> text = item ? Text(memory, *item) : std::nullopt;
  return text ? ValidUtf8(text->substr(0, kMaxText)) : "";
}

// `File "workflow", line 3, in name`, with or without the name.
std::optional<TracebackFrame> ParseFrame(std::string_view line) {
  constexpr std::string_view kStart = "  File \"workflow\", line ";
  constexpr std::string_view kIn = ", in ";
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  TracebackFrame frame;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), frame.line);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(kIn)) frame.function = ValidUtf8(line.substr(kIn.size()));
  return frame;
}

}  // namespace

std::vector<TracebackFrame> ParseTraceback(std::string_view text) {
  std::vector<TracebackFrame> frames;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    // The exception's own line ends the frames; what follows is the author's text.
    if (!line.starts_with("Traceback ") && !line.starts_with("  File ")) break;
    if (std::optional<TracebackFrame> frame = ParseFrame(line)) frames.push_back(*frame);
  }
  if (frames.size() > kOuterFrames + kInnerFrames) {
    frames.erase(frames.begin() + kOuterFrames, frames.end() - kInnerFrames);
  }
  return frames;
}

Report ReadReport(const GuestMemory& memory, std::uint32_t object) {
  Report report;
  const std::optional<std::uint32_t> first = TupleItem(memory, object, 0);
  const std::optional<std::int32_t> kind = first ? SmallInt(*first) : std::nullopt;
  const std::optional<std::uint32_t> second = TupleItem(memory, object, 1);
  if (kind == kOk && second) {
    report.ok = true;
    report.value = *second;
    return report;
  }
  if (!kind || (!second && kind != kLost)) {
    report.fault = Fault::kArtifact;
    report.message = "the harness gave back something that is no report";
    return report;
  }
  report.claims_no_memory = kind == kLost || kind == kMemory;
  report.fault = FaultOf(*kind);
  if (kind == kLost) {
    report.error_type = "MemoryError";
    report.message = "the harness could not say what was raised";
    return report;
  }
  report.error_type = TextItem(memory, object, 1);
  report.message = TextItem(memory, object, 2);
  const std::optional<std::uint32_t> traceback = TupleItem(memory, object, 3);
  if (const auto text = traceback ? Text(memory, *traceback) : std::nullopt) {
    report.traceback = ParseTraceback(*text);
  }
  return report;
}

}  // namespace caisson::isolate
