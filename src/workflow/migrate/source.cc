// SPDX-License-Identifier: Apache-2.0
#include "workflow/migrate/source.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "python/lexer.h"
#include "python/walk.h"

namespace caisson::workflow::migrate {
namespace {

// At one place: what closes comes first, then what opens, then what replaces.
constexpr int kClosing = 0, kOpening = 1, kReplacing = 2;

std::string_view Trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\f");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

// Collects the lines of a rendering.
class Writer {
 public:
  void Put(std::string_view text, std::uint32_t origin, bool counts_lines) {
    for (const char c : text) {
      if (fresh_) {
        lines_.push_back({.text = {}, .origin = origin});
        fresh_ = false;
      }
      if (c == '\n') {
        fresh_ = true;
        origin += counts_lines ? 1 : 0;
      } else {
        lines_.back().text += c;
      }
    }
  }
  Lines Take() { return std::move(lines_); }

 private:
  Lines lines_;
  bool fresh_ = true;
};

}  // namespace

void Append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

void AppendNew(Lines& lines, std::string_view text, std::uint32_t origin) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({.text = std::string(text.substr(0, end)), .origin = origin});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string Join(const Lines& lines) {
  std::string text;
  for (const Line& line : lines) text.append(line.text).append(1, '\n');
  return text;
}

void Edits::Replace(Range range, std::string text) {
  edits_.push_back({range, std::move(text), kReplacing, static_cast<long>(edits_.size())});
}
void Edits::Open(std::size_t at, std::string text) {
  edits_.push_back({{at, at}, std::move(text), kOpening, static_cast<long>(edits_.size())});
}
void Edits::Close(std::size_t at, std::string text) {
  edits_.push_back({{at, at}, std::move(text), kClosing, -static_cast<long>(edits_.size())});
}
void Edits::Wrap(Range range, std::string before, std::string after) {
  Open(range.begin, std::move(before));
  Close(range.end, std::move(after));
}

std::vector<Edits::Edit> Edits::Sorted() const {
  std::vector<Edit> sorted = edits_;
  std::ranges::sort(sorted, [](const Edit& a, const Edit& b) {
    return std::tie(a.range.begin, a.order, a.sequence) <
           std::tie(b.range.begin, b.order, b.sequence);
  });
  return sorted;
}

Source::Source(std::string_view text) : text_(text) {
  if (!text.empty()) starts_.push_back(0);
  for (std::size_t at = text.find('\n'); at != std::string_view::npos && at + 1 < text.size();
       at = text.find('\n', at + 1)) {
    starts_.push_back(at + 1);
  }
  inside_string_.resize(starts_.size() + 2);
}

std::size_t Source::LineStart(std::uint32_t line) const {
  if (line == 0) return 0;
  return line <= starts_.size() ? starts_[line - 1] : text_.size();
}
std::size_t Source::LineEnd(std::uint32_t line) const {
  return std::min(text_.find('\n', LineStart(line)), text_.size());
}
std::string_view Source::LineText(std::uint32_t line) const {
  if (line == 0 || line > starts_.size()) return {};
  return text_.substr(LineStart(line), LineEnd(line) - LineStart(line));
}
std::uint32_t Source::LineAt(std::size_t offset) const {
  return static_cast<std::uint32_t>(std::ranges::upper_bound(starts_, offset) - starts_.begin());
}

Range Source::Of(const SourceSpan& span) const {
  const auto place = [this](std::uint32_t line, std::uint32_t column) {
    return std::min(LineStart(line) + column, text_.size());
  };
  const std::size_t begin = place(span.line, span.column);
  return {begin, std::max(begin, place(span.end_line, span.end_column))};
}

std::string_view Source::Text(const SourceSpan& span) const {
  const Range range = Of(span);
  return text_.substr(range.begin, range.end - range.begin);
}

std::uint32_t Source::CommentsAbove(std::uint32_t line, std::uint32_t after) const {
  while (line > after + 1 && Trimmed(LineText(line - 1)).starts_with('#') &&
         !inside_string_[line - 1]) {
    --line;
  }
  return line;
}

std::size_t Source::EndWithComment(const SourceSpan& span) const {
  const std::size_t end = Of(span).end;
  const std::size_t line_end = std::min(text_.find('\n', end), text_.size());
  const std::string_view rest = Trimmed(text_.substr(end, line_end - end));
  return rest.empty() || rest.starts_with('#') ? line_end : end;
}

Lines Source::Render(Range range, const Edits& edits) const {
  Writer writer;
  std::size_t at = range.begin;
  for (const Edits::Edit& edit : edits.Sorted()) {
    if (edit.range.begin < at || edit.range.end > range.end) continue;
    writer.Put(text_.substr(at, edit.range.begin - at), LineAt(at), true);
    writer.Put(edit.text, LineAt(edit.range.begin), false);
    at = edit.range.end;
  }
  writer.Put(text_.substr(at, range.end - at), LineAt(at), true);
  return writer.Take();
}

Lines Source::Reindent(Range range, const Edits& edits, std::size_t from, std::size_t to) const {
  Lines lines = Render(range, edits);
  std::uint32_t last = 0;
  for (Line& line : lines) {
    const bool continues = line.origin != last && line.origin != 0 && inside_string_[line.origin];
    last = line.origin;
    if (continues || (Trimmed(line.text).empty() && line.text.empty())) continue;
    std::size_t cut = 0;
    while (cut < from && cut < line.text.size() &&
           (line.text[cut] == ' ' || line.text[cut] == '\t')) {
      ++cut;
    }
    line.text = std::string(to, ' ') + line.text.substr(cut);
    if (Trimmed(line.text).empty()) line.text.clear();
  }
  return lines;
}

void Source::MarkStrings(const python::Module& module) {
  std::string text(text_);
  if (!text.ends_with('\n')) text += '\n';
  const python::LexResult lexed = python::Lex(text);
  std::vector<std::uint32_t> open;  // where f-strings begin
  const auto mark = [this](std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t line = first + 1; line <= last; ++line) {
      if (line < inside_string_.size()) inside_string_[line] = true;
    }
  };
  for (const python::Token& token : lexed.tokens) {
    if (token.kind == python::TokenKind::kString) mark(token.line, token.end_line);
    if (token.kind == python::TokenKind::kFStringStart) open.push_back(token.line);
    if (token.kind == python::TokenKind::kFStringEnd && !open.empty()) {
      mark(open.back(), token.end_line);
      open.pop_back();
    }
  }
  // A text that stands for itself is prose and moves with what it describes.
  python::WalkBreadthFirst(&module, [this](python::NodeRef node) {
    if (node.stmt() == nullptr) return;
    const auto* statement = python::IsA<python::ExprStmt>(node.stmt());
    if (statement == nullptr || statement->value->kind != python::ExprKind::kConstant) return;
    for (std::uint32_t line = statement->span.line + 1; line <= statement->span.end_line; ++line) {
      if (line < inside_string_.size()) inside_string_[line] = false;
    }
  });
}

}  // namespace caisson::workflow::migrate
