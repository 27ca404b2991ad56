// SPDX-License-Identifier: Apache-2.0
// The errors of tests/golden/syntax_errors/cases.txt, which a CPython 3.12 gave for our sources.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "python/parser.h"
#include "python/unicode.h"

namespace caisson::python {
namespace {

struct Case {
  std::string name;
  std::string source;
  std::string error;
  int line = 0;
};

unsigned TakeHex(std::string_view text, std::size_t& at, int digits) {
  const std::string hex(text.substr(at, static_cast<std::size_t>(digits)));
  at += static_cast<std::size_t>(digits);
  return static_cast<unsigned>(std::stoul(hex, nullptr, 16));
}

// The escapes of Python that the cases use.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '\\') {
      out.push_back(c);
      continue;
    }
    switch (const char escape = text[at++]) {
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'x':
        AppendUtf8(out, TakeHex(text, at, 2));
        break;
      case 'u':
        AppendUtf8(out, TakeHex(text, at, 4));
        break;
      case 'U':
        AppendUtf8(out, TakeHex(text, at, 8));
        break;
      default:
        out.push_back(escape);
    }
  }
  return out;
}

std::vector<Case> ReadCases() {
  std::ifstream file(CAISSON_SOURCE_DIR "/tests/golden/syntax_errors/cases.txt");
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("case ")) {
      cases.push_back({line.substr(5), {}, {}, number});
    } else if (line.starts_with("source \"")) {
      cases.back().source = Unescape(std::string_view(line).substr(8, line.size() - 9));
    } else if (line.starts_with("error ")) {
      cases.back().error = Unescape(line.substr(6));
    }
  }
  return cases;
}

std::string_view LineOf(std::string_view source, std::uint32_t number) {
  for (std::uint32_t line = 1; line < number; ++line) {
    const std::size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  return source.substr(0, source.find('\n'));
}

std::size_t OffsetOf(std::string_view source, std::uint32_t line, std::uint32_t column) {
  const std::string_view text = LineOf(source, line);
  const std::size_t inside = std::min<std::size_t>(column, text.size());
  return CountCharacters(text.substr(0, inside)) + (column - inside) + 1;
}

const char* NameOf(SyntaxError::Type type) {
  switch (type) {
    case SyntaxError::Type::kIndentation:
      return "IndentationError";
    case SyntaxError::Type::kTab:
      return "TabError";
    default:
      return "SyntaxError";
  }
}

// As CPython shows it. Where it has no place (0, or an end of 0 or -1) we have the nearest one: the
// line's start, and the start for an end.
std::string Describe(const SyntaxError& error, std::string_view source, bool without_start,
                     bool without_end, std::string_view end) {
  const SourceSpan& span = error.span;
  const std::size_t offset = OffsetOf(source, span.line, span.column);
  const std::string start_text = without_start && span.column == 0 ? "0" : std::to_string(offset);
  const bool ends_at_start = span.end_line == span.line && span.end_column == span.column;
  const std::string end_text =
      without_end && ends_at_start
          ? std::string(end)
          : std::to_string(OffsetOf(source, span.end_line, span.end_column));
  if (!span.known()) {
    return fmt::format("{} (0, 0, 0, 0) {}", NameOf(error.type), error.message);
  }
  return fmt::format("{} ({}, {}, {}, {}) {}", NameOf(error.type), span.line, start_text,
                     span.end_line, end_text, error.message);
}

std::vector<std::string> Numbers(std::string_view error) {
  std::vector<std::string> out(1);
  const std::size_t open = error.find('(');
  for (const char c : error.substr(open + 1, error.find(')', open) - open - 1)) {
    if (c == ',') {
      out.emplace_back();
    } else if (c != ' ') {
      out.back().push_back(c);
    }
  }
  return out;
}

TEST(SyntaxErrors, HaveTheMessagesAndPlacesOfCPython) {
  const std::vector<Case> cases = ReadCases();
  ASSERT_GE(cases.size(), 250u);
  for (const Case& c : cases) {
    const auto tree = Parse(c.source, {.is_text = true});
    const std::string where = fmt::format("{} (cases.txt:{})", c.name, c.line);
    ASSERT_FALSE(tree.has_value()) << where;
    const std::vector<std::string> numbers = Numbers(c.error);
    ASSERT_EQ(numbers.size(), 4u) << where;
    const bool without_end = numbers[3] == "0" || numbers[3] == "-1";
    EXPECT_EQ(Describe(tree.error(), c.source, numbers[1] == "0", without_end, numbers[3]), c.error)
        << where;
  }
}

}  // namespace
}  // namespace caisson::python
