// SPDX-License-Identifier: Apache-2.0
#include "http/web_url.h"

#include <fmt/format.h>
#include <idn2.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "http/public_address.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMostBytes = 1u << 20;
// What is written as %XX in each part, beside controls and everything beyond ASCII.
constexpr std::string_view kInPath = " \"#<>?`{}";
constexpr std::string_view kInQuery = " \"#<>'";
constexpr std::string_view kInFragment = " \"<>`";
constexpr std::string_view kInUserinfo = " \"#<>?`{}/:;=@[\\]^|";
constexpr std::string_view kNotInHost = " #/:<>?@[\\]^|%\x7f";

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20; }

std::string Encode(std::string_view text, std::string_view set) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = !IsControl(c) && static_cast<unsigned char>(c) < 0x7f &&
                       set.find(c) == std::string_view::npos;
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

// Without spaces and controls around it, and without tabs and line ends within.
std::string Cleaned(std::string_view text) {
  const auto is_outer = [](char c) { return IsControl(c) || c == ' '; };
  while (!text.empty() && is_outer(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_outer(text.back())) text.remove_suffix(1);
  std::string cleaned;
  std::ranges::copy_if(text, std::back_inserter(cleaned),
                       [](char c) { return c != '\t' && c != '\n' && c != '\r'; });
  return cleaned;
}

// A number of an IPv4 address: decimal, 0x or with a leading zero octal.
std::optional<std::uint64_t> AddressNumber(std::string_view text) {
  if (text.empty()) return std::nullopt;
  unsigned base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    const int digit = HexDigit(c);
    if (digit < 0 || static_cast<unsigned>(digit) >= base) return std::nullopt;
    value = std::min<std::uint64_t>(value * base + static_cast<unsigned>(digit), 1ull << 40);
  }
  return value;
}

std::vector<std::string_view> Labels(std::string_view host) {
  std::vector<std::string_view> labels;
  for (std::size_t begin = 0; begin <= host.size();) {
    const std::size_t end = std::min(host.find('.', begin), host.size());
    labels.push_back(host.substr(begin, end - begin));
    begin = end + 1;
  }
  if (labels.size() > 1 && labels.back().empty()) labels.pop_back();
  return labels;
}

bool EndsInNumber(std::string_view host) {
  const std::string_view last = Labels(host).back();
  if (last.empty()) return false;
  return std::ranges::all_of(last, [](char c) { return c >= '0' && c <= '9'; }) ||
         ((last.starts_with("0x") || last.starts_with("0X")) && AddressNumber(last));
}

std::optional<std::string> AddressHost(std::string_view host) {
  const auto labels = Labels(host);
  if (labels.size() > 4) return std::nullopt;
  std::uint64_t address = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto number = AddressNumber(labels[i]);
    const bool last = i + 1 == labels.size();
    const std::uint64_t limit = last ? 1ull << (8 * (5 - labels.size())) : 256;
    if (!number || *number >= limit) return std::nullopt;
    address += last ? *number : *number << (8 * (3 - i));
  }
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

// An IPv6 address in its shortest form, without a dotted end.
std::optional<std::string> SixHost(std::string_view text) {
  const auto ip = text.find(':') != std::string_view::npos ? ParseIp(text) : std::nullopt;
  if (!ip) return std::nullopt;
  if (!ip->is_v4()) {
    const std::string form = FormatIp(*ip);
    if (form.find('.') == std::string::npos) return "[" + form + "]";
  }
  const auto& b = ip->bytes;
  std::string_view head = ip->is_v4() ? "::ffff:" : "::";
  return fmt::format("[{}{:x}:{:x}]", head, b[12] << 8 | b[13], b[14] << 8 | b[15]);
}

std::optional<std::string> NormalHost(std::string_view text) {
  if (text.starts_with('[')) {
    return text.ends_with(']') ? SixHost(text.substr(1, text.size() - 2)) : std::nullopt;
  }
  const auto host = AsciiHost(Decode(text));
  if (!host || host->empty() || std::ranges::any_of(*host, [](char c) {
        return IsControl(c) || kNotInHost.find(c) != std::string_view::npos;
      })) {
    return std::nullopt;
  }
  return EndsInNumber(*host) ? AddressHost(*host) : host;
}

// ":8080", "" for the scheme's own.
std::optional<std::string> NormalPort(std::string_view text, bool is_https) {
  unsigned port = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    port = std::min(port * 10 + static_cast<unsigned>(c - '0'), 1u << 20);
  }
  if (port > 65535) return std::nullopt;
  if (text.empty() || port == (is_https ? 443u : 80u)) return "";
  return fmt::format(":{}", port);
}

std::optional<std::string> NormalAuthority(std::string_view text, bool is_https) {
  std::string userinfo;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view given = text.substr(0, at);
    const std::size_t colon = given.find(':');
    userinfo = Encode(given.substr(0, colon), kInUserinfo);
    if (colon != std::string_view::npos && colon + 1 < given.size()) {
      userinfo += ":" + Encode(given.substr(colon + 1), kInUserinfo);
    }
    if (!userinfo.empty()) userinfo += "@";
    text.remove_prefix(at + 1);
  }
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const auto host = NormalHost(text.substr(0, colon));
  const auto port =
      NormalPort(colon == std::string_view::npos ? "" : text.substr(colon + 1), is_https);
  if (!host || !port) return std::nullopt;
  return userinfo + *host + *port;
}

std::string NormalPath(std::string_view text) {
  std::vector<std::string> segments;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("/\\", begin + 1), text.size());
    std::string segment = Encode(text.substr(begin + 1, end - begin - 1), kInPath);
    std::string dots = Lower(segment);
    for (std::size_t at; (at = dots.find("%2e")) != std::string::npos;) dots.replace(at, 3, ".");
    const bool last = end == text.size();
    if (dots == ".." && !segments.empty()) segments.pop_back();
    if (dots == ".." || dots == ".") {
      if (last) segments.emplace_back();
    } else {
      segments.push_back(std::move(segment));
    }
    begin = end;
  }
  if (segments.empty()) return "/";
  std::string path;
  for (const std::string& segment : segments) path += "/" + segment;
  return path;
}

}  // namespace

std::optional<std::string> AsciiHost(std::string_view host) {
  if (host.find('\0') != std::string_view::npos) return std::nullopt;
  if (std::ranges::all_of(host, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    return Lower(host);
  }
  char* ascii = nullptr;
  if (idn2_to_ascii_8z(std::string(host).c_str(), &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) !=
      IDN2_OK) {
    return std::nullopt;
  }
  std::string result = Lower(ascii);
  idn2_free(ascii);
  return result;
}

std::optional<std::string> NormalWebUrl(std::string_view given) {
  if (given.size() > kMostBytes) return std::nullopt;
  const std::string cleaned = Cleaned(given);
  std::string_view text = cleaned;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string scheme = Lower(text.substr(0, colon));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  text.remove_prefix(colon + 1);
  while (text.starts_with('/') || text.starts_with('\\')) text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_of("/\\?#"), text.size());
  const auto authority = NormalAuthority(text.substr(0, end), scheme == "https");
  if (!authority) return std::nullopt;
  text.remove_prefix(end);
  std::string fragment;
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
    fragment = "#" + Encode(text.substr(hash + 1), kInFragment);
    text = text.substr(0, hash);
  }
  std::string query;
  if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
    query = "?" + Encode(text.substr(mark + 1), kInQuery);
    text = text.substr(0, mark);
  }
  return scheme + "://" + *authority + NormalPath(text) + query + fragment;
}

}  // namespace caisson::http
