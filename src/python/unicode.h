// SPDX-License-Identifier: Apache-2.0
// The Unicode 15.0 facts that Python's lexer needs: identifier characters, printability, NFKC and
// character names. Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::python {

bool IsIdentifierStart(char32_t c);     // XID_Start or '_'
bool IsIdentifierContinue(char32_t c);  // XID_Continue
bool IsPrintable(char32_t c);           // as str.isprintable

// NFKC of UTF-8 text; nullopt when `text` is not UTF-8.
std::optional<std::string> NormalizeNfkc(std::string_view text);

// The character that `\N{name}` denotes: names and aliases, ASCII case ignored; no named sequences.
std::optional<char32_t> CharacterByName(std::string_view name);

// Decodes the character at `text[offset]` (valid UTF-8 or WTF-8) and moves offset past it.
char32_t DecodeUtf8(std::string_view text, std::size_t& offset);
void AppendUtf8(std::string& out, char32_t c);  // surrogates become three bytes (WTF-8)

// Offset of the first byte that is not part of a valid UTF-8 sequence (no surrogates), or npos.
std::size_t FindInvalidUtf8(std::string_view text);

// Number of characters in (valid) UTF-8 text.
std::size_t CountCharacters(std::string_view text);

}  // namespace caisson::python
