// SPDX-License-Identifier: Apache-2.0
#include "api/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>

#include "base/utf8.h"

namespace caisson::api {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// How many bytes a character that begins with `lead` has; 0 when none does.
std::size_t LengthByLead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// True when more bytes could make a character of `text`.
bool MayGrow(std::string_view text) {
  const std::size_t length = LengthByLead(static_cast<unsigned char>(text.front()));
  if (length <= text.size()) return false;
  std::string grown(text);
  // The second byte has a narrower range after some leads; 0x80 to 0xBF in steps finds one.
  for (const char second : {'\x80', '\x90', '\xA0'}) {
    std::string candidate = grown;
    if (candidate.size() == 1) candidate += second;
    candidate.resize(length, '\x80');
    if (CharacterLength(candidate) == length) return true;
  }
  return false;
}

// Appends all of `text` that is decided and gives what is not.
std::string_view AppendValid(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0 && MayGrow(text)) return text;
    out += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return {};
}

}  // namespace

store::Milliseconds NowMilliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string Timestamp(store::Milliseconds time) {
  const std::time_t seconds = time / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     time % 1000);
}

std::string ValidUtf8(std::string_view bytes) {
  Utf8Pieces pieces;
  std::string out = pieces.Take(bytes);
  return out += pieces.Finish();
}

std::string Utf8Pieces::Take(std::string_view piece) {
  std::string out;
  out.reserve(piece.size());
  if (!rest_.empty()) {
    rest_ += piece;
    const std::string text = std::move(rest_);
    rest_ = AppendValid(text, out);
  } else {
    rest_ = AppendValid(piece, out);
  }
  return out;
}

std::string Utf8Pieces::Finish() {
  std::string out;
  for (std::size_t i = 0; i < rest_.size(); ++i) out += kReplacement;
  rest_.clear();
  return out;
}

std::string Base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = (bits << 8) | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? kBase64[(bits >> (18 - 6 * j)) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    std::size_t padding = 0;
    if (is_last && text[i + 3] == '=') padding = text[i + 2] == '=' ? 2 : 1;
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t value = j < 4 - padding ? kBase64.find(text[i + j]) : 0;
      if (value == std::string_view::npos) return std::nullopt;
      bits = (bits << 6) | static_cast<std::uint32_t>(value);
    }
    // Bits that padding leaves over must be zero, else two texts would mean the same.
    if ((bits & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (std::size_t j = 0; j < 3 - padding; ++j) {
      out += static_cast<char>((bits >> (16 - 8 * j)) & 0xFF);
    }
  }
  return out;
}

}  // namespace caisson::api
