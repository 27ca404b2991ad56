// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/names.h"

#include <algorithm>

#include "errors/oci.h"

namespace caisson::machine::oci {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsWord(char c) { return IsDigit(c) || IsLower(c) || (c >= 'A' && c <= 'Z'); }
bool IsWordOrMark(char c) { return IsWord(c) || c == '_' || c == '.' || c == '-'; }

bool IsMarked(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && IsWord(text[0]) &&
         std::ranges::all_of(text, IsWordOrMark);
}

bool IsRegistry(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, IsDigit)) return false;
  }
  const std::string_view host = text.substr(0, colon);
  return IsMarked(host, 253) && host.find('_') == std::string_view::npos &&
         host.find("..") == std::string_view::npos && IsWord(host.back());
}

// As the engines tell a registry from the first part of a name.
bool LooksLikeRegistry(std::string_view part) {
  return part.find_first_of(".:") != std::string_view::npos || part == "localhost";
}

bool IsComponent(std::string_view text) {
  return IsMarked(text, 128) && IsWord(text.back()) && text.find("..") == std::string_view::npos &&
         std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool IsRepository(std::string_view text) {
  if (text.size() > 255) return false;
  for (;;) {
    const std::size_t slash = text.find('/');
    if (!IsComponent(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool IsDigest(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  if (!text.starts_with(kAlgorithm) || text.size() != kAlgorithm.size() + 64) return false;
  return std::ranges::all_of(text.substr(kAlgorithm.size()),
                             [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool IsContainerName(std::string_view text) { return IsMarked(text, 128); }

std::string ImageReference::ToText() const {
  std::string text = registry.empty() ? repository : registry + "/" + repository;
  if (!tag.empty()) text += ":" + tag;
  if (!digest.empty()) text += "@" + digest;
  return text;
}

Result<ImageReference> ParseImageReference(std::string_view text) {
  ImageReference image;
  std::string_view rest = text;
  const std::size_t at = rest.find('@');
  if (at != std::string_view::npos) image.digest = rest.substr(at + 1);
  rest = rest.substr(0, at);
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos && LooksLikeRegistry(rest.substr(0, slash))) {
    image.registry = rest.substr(0, slash);
    rest.remove_prefix(slash + 1);
  }
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) image.tag = rest.substr(colon + 1);
  image.repository = rest.substr(0, colon);
  const bool good =
      (at == std::string_view::npos || IsDigest(image.digest)) &&
      (image.registry.empty() || IsRegistry(image.registry)) && IsRepository(image.repository) &&
      (colon == std::string_view::npos ||
       (IsMarked(image.tag, 128) || (image.tag.starts_with('_') && image.tag.size() <= 128 &&
                                     std::ranges::all_of(image.tag, IsWordOrMark))));
  if (good) return image;
  return Fail(
      errors::kOciBadName,
      "\"" + std::string(text.substr(0, 300)) +
          "\" is no image reference; write [registry[:port]/]name[:tag][@sha256:digest], the "
          "name in small letters, digits and . _ - /");
}

}  // namespace caisson::machine::oci
