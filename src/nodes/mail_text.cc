// SPDX-License-Identifier: Apache-2.0
#include "nodes/mail_text.h"

#include <algorithm>

#include "base/utf8.h"
#include "http/headers.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMostLine = 78;
constexpr std::size_t kWordBytes = 39;  // of an encoded word: with its marks below 75 characters

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

// Encoded words, each on a line of its own, cut between characters.
std::string EncodedWords(std::string_view text) {
  std::string words;
  while (!text.empty()) {
    std::size_t length = 0;
    while (length < text.size()) {
      std::size_t next = length;
      NextCharacter(text, next);
      if (next > kWordBytes) break;
      length = next;
    }
    if (!words.empty()) words += "\r\n ";
    words += "=?utf-8?b?" + Base64(text.substr(0, length)) + "?=";
    text.remove_prefix(length);
  }
  return words;
}

// Text of a header that has no form of its own.
std::string Unstructured(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  const bool plain = IsAscii(text) && text.size() <= kMostLine - 10 &&
                     text.find("=?") == std::string_view::npos && Strip(text) == text;
  return plain ? std::string(text) : EncodedWords(text);
}

Result<void> CheckHeader(std::string_view name, std::string_view value) {
  const bool odd = std::ranges::any_of(value, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
  const auto has = [&](std::string_view line_end) { return value.find(line_end) != value.npos; };
  if (!odd && !has("\u0085") && !has("\u2028") && !has("\u2029")) return {};
  return NodeFailed(
      "Header values may not contain linefeed or carriage return characters, nor "
      "other controls: the header " +
      std::string(name) + " of the mail does");
}

Result<std::string> Address(std::string_view name, const std::string& given) {
  CAISSON_TRY(CheckHeader(name, given));
  std::string bare = BareAddress(given);
  if (!IsAscii(bare)) {
    return NodeFailed("the address '" + bare +
                      "' has characters beyond ASCII, which few mail servers take");
  }
  if (IsAscii(given)) return given;
  const std::size_t angle = given.rfind('<');
  if (angle == std::string::npos) return bare;
  std::string_view display = Strip(std::string_view(given).substr(0, angle));
  if (display.size() >= 2 && display.starts_with('"') && display.ends_with('"')) {
    display = display.substr(1, display.size() - 2);
  }
  return EncodedWords(display) + " <" + bare + ">";
}

Result<void> AddAddresses(std::string& text, std::string_view name,
                          const std::vector<std::string>& addresses) {
  if (addresses.empty()) return {};
  std::string line;
  for (const std::string& address : addresses) {
    CAISSON_ASSIGN(const std::string written, Address(name, address));
    line += (line.empty() ? "" : ",\r\n ") + written;
  }
  text += std::string(name) + ": " + line + "\r\n";
  return {};
}

// Lines that end with CR LF, the last one too.
std::string Lines(std::string_view body, std::size_t& longest) {
  std::string lines;
  std::size_t length = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\r' && body[i] != '\n') {
      lines += body[i];
      longest = std::max(longest, ++length);
      continue;
    }
    if (body[i] == '\r' && i + 1 < body.size() && body[i + 1] == '\n') ++i;
    lines += "\r\n";
    length = 0;
  }
  if (length > 0 || lines.empty()) lines += "\r\n";
  return lines;
}

std::string Folded(const std::string& base64) {
  std::string lines;
  constexpr std::size_t kLine = 76;
  for (std::size_t i = 0; i < base64.size(); i += kLine) lines += base64.substr(i, kLine) + "\r\n";
  return lines;
}

}  // namespace

std::string BareAddress(std::string_view address) {
  const std::size_t open = address.rfind('<');
  const std::size_t close = address.rfind('>');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    address = address.substr(open + 1, close - open - 1);
  }
  return std::string(Strip(address));
}

Result<std::string> WriteMail(const MailText& mail) {
  CAISSON_TRY(CheckHeader("Subject", mail.subject));
  if (!http::IsToken(mail.subtype)) {
    return NodeFailed("subtype must be a name such as plain or html, not " +
                      PyReprText(mail.subtype));
  }
  std::string text = "Subject: " + Unstructured(mail.subject) + "\r\n";
  CAISSON_TRY(AddAddresses(text, "From", {mail.from}));
  CAISSON_TRY(AddAddresses(text, "To", mail.to));
  CAISSON_TRY(AddAddresses(text, "Cc", mail.cc));
  std::size_t longest = 0;
  const std::string lines = Lines(mail.body, longest);
  const bool plain =
      longest <= kMostLine && IsAscii(lines) && lines.find('\0') == std::string::npos;
  text += "Content-Type: text/" + mail.subtype + "; charset=\"utf-8\"\r\n";
  text += "Content-Transfer-Encoding: " + std::string(plain ? "7bit" : "base64") + "\r\n";
  text += "MIME-Version: 1.0\r\n\r\n";
  return text + (plain ? lines : Folded(Base64(lines)));
}

}  // namespace caisson::nodes
