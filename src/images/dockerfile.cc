// SPDX-License-Identifier: Apache-2.0
#include "images/dockerfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <expected>
#include <utility>

#include "base/foreign_text.h"
#include "base/utf8.h"
#include "errors/images.h"
#include "json/reader.h"

namespace caisson::images {
namespace {

constexpr std::size_t kShown = 60;
constexpr std::size_t kMaxMistakes = 20;

struct Refusal {
  std::string_view instruction;
  std::string_view advice;
};
constexpr std::array kRefused = {
    Refusal{"COPY", "make files in a RUN step, or upload them into the machine"},
    Refusal{"ADD", "fetch in a RUN step (curl), or upload into the machine"},
    Refusal{"CMD", "a machine starts nothing by itself; leave it out and use exec"},
    Refusal{"ENTRYPOINT", "a machine starts nothing by itself; leave it out and use exec"},
    Refusal{"EXPOSE", "every port of a machine can be reached already; leave it out"},
    Refusal{"VOLUME", "a machine has one disk; leave it out"},
    Refusal{"USER", "commands run as root; write RUN su NAME -c '…' for one that must not"},
    Refusal{"SHELL", "RUN uses /bin/sh; write RUN [\"bash\", \"-c\", \"…\"] for another"},
    Refusal{"ONBUILD", "write the instruction itself"},
    Refusal{"HEALTHCHECK", "look at the machine through the API; leave it out"},
    Refusal{"STOPSIGNAL", "a machine starts nothing by itself; leave it out"},
    Refusal{"MAINTAINER", "write LABEL maintainer=\"…\""},
};

constexpr std::string_view kSpaces = " \t";

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}
std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsVariable(std::string_view name) {
  return !name.empty() && IsLetter(name[0]) &&
         std::ranges::all_of(name, [](char c) { return IsLetter(c) || IsDigit(c); });
}
bool IsLabel(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || c == '-' || c == '/';
  });
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// A line with what continues it.
struct Instruction {
  std::uint32_t line = 0;
  std::string name;  // upper case
  std::string rest;  // without spaces around it
};

using Mistake = std::pair<std::uint32_t, std::string>;

std::unexpected<std::string> Bad(std::string what) { return std::unexpected(std::move(what)); }
template <typename T>
using Parsed = std::expected<T, std::string>;

// Text with quotes and variables, as ENV and its like have it: '…' is literal, "…" is not, a
// backslash takes the next character as it is.
class Words {
 public:
  Words(std::string_view text, const Environment& variables) : text_(text), variables_(variables) {}

  bool AtEnd() {
    while (at_ < text_.size() && kSpaces.find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ == text_.size();
  }
  // Up to a space that is not quoted.
  Parsed<std::string> Next() { return Take(kSpaces); }
  // All of it, spaces too.
  Parsed<std::string> Rest() {
    AtEnd();
    return Take("");
  }

 private:
  Parsed<std::string> Take(std::string_view ends) {
    std::string word;
    char quote = 0;
    while (at_ < text_.size() && (quote != 0 || ends.find(text_[at_]) == std::string_view::npos)) {
      const char c = text_[at_++];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      } else if (c == '\\' && quote != '\'' && at_ < text_.size()) {
        word += text_[at_++];
      } else if (c == '$' && quote != '\'') {
        auto value = Variable();
        if (!value) return value;
        word += *value;
      } else {
        word += c;
      }
      if (word.size() > kMaxEnvironmentBytes) return Bad("a value grows too long by its variables");
    }
    if (quote != 0) return Bad(fmt::format("a quote ({}) is not closed", quote));
    return word;
  }

  // Behind the dollar: NAME, {NAME}, {NAME:-word}, {NAME:+word}.
  Parsed<std::string> Variable() {
    const bool braced = at_ < text_.size() && text_[at_] == '{';
    if (braced) ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (!braced && name.empty()) return "$";
    if (!IsVariable(name))
      return Bad("$ is not followed by the name of a variable; write \\$ for a dollar");
    const auto found = variables_.find(name);
    std::string value = found == variables_.end() ? "" : found->second;
    if (!braced) return value;
    if (at_ < text_.size() && text_[at_] == '}') return ++at_, value;
    const std::string_view form = text_.substr(at_, 2);
    const std::size_t close = text_.find('}', at_);
    if ((form != ":-" && form != ":+") || close == std::string_view::npos) {
      return Bad("${" + name + "… is neither ${NAME}, ${NAME:-word} nor ${NAME:+word}");
    }
    const std::string_view word = text_.substr(at_ + 2, close - at_ - 2);
    if (word.find('$') != std::string_view::npos)
      return Bad("the word of ${" + name + "…} has a variable itself");
    at_ = close + 1;
    return form == ":-" ? (value.empty() ? std::string(word) : value)
                        : (value.empty() ? "" : std::string(word));
  }

  std::string_view text_;
  const Environment& variables_;
  std::size_t at_ = 0;
};

// <<WORD, <<-WORD, <<"WORD": but neither <<< nor a shift by a number.
bool HasHeredoc(std::string_view text) {
  for (std::size_t at = text.find("<<"); at != std::string_view::npos; at = text.find("<<", at)) {
    at += 2;
    if (at < text.size() && text[at] == '<') {
      while (at < text.size() && text[at] == '<') ++at;
      continue;
    }
    std::size_t next = at;
    if (next < text.size() && text[next] == '-') ++next;
    while (next < text.size() && kSpaces.find(text[next]) != std::string_view::npos) ++next;
    if (next < text.size() && (IsLetter(text[next]) || text[next] == '"' || text[next] == '\''))
      return true;
  }
  return false;
}

std::string Joined(const std::string& directory, const std::string& path) {
  std::vector<std::string_view> parts;
  const std::string whole = path.starts_with('/') ? path : directory + "/" + path;
  for (std::string_view rest = whole; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
  }
  std::string joined;
  for (const std::string_view part : parts) joined += "/" + std::string(part);
  return joined.empty() ? "/" : joined;
}

class Parser {
 public:
  explicit Parser(const DockerfileOptions& options) : options_(options) {
    file_.environment = options.environment;
    file_.directory = "/";
    variables_ = options.environment;
  }

  Result<Dockerfile> Parse(std::string_view text) {
    if (text.size() > kMaxDockerfileBytes) {
      return Fail(errors::kImagesDockerfile,
                  fmt::format("the Dockerfile has {} bytes; it may have {}", text.size(),
                              kMaxDockerfileBytes));
    }
    for (const Instruction& instruction : Split(text)) {
      if (mistakes_.size() >= kMaxMistakes) break;
      if (auto done = Take(instruction); !done) Complain(instruction.line, std::move(done.error()));
    }
    if (!has_from_ && mistakes_.empty()) {
      Complain(1, "there is no FROM; begin with one of: " + Allowed());
    }
    if (mistakes_.empty()) return std::move(file_);
    std::ranges::sort(mistakes_);
    return Failure();
  }

 private:
  void Complain(std::uint32_t line, std::string what) {
    mistakes_.emplace_back(line, std::move(what));
  }

  Result<Dockerfile> Failure() const {
    const auto say = [](const Mistake& mistake) {
      return fmt::format("line {}: {}", mistake.first, ShowForeignLine(mistake.second));
    };
    Status status{errors::kImagesDockerfile, say(mistakes_[0]), {}, {}};
    status.span.line = status.span.end_line = mistakes_[0].first;
    for (std::size_t i = 1; i < mistakes_.size(); ++i) status.details += say(mistakes_[i]) + "\n";
    return Fail(std::move(status));
  }

  // Joins lines that end in a backslash; comments and empty lines between them go.
  std::vector<Instruction> Split(std::string_view text) {
    std::vector<Instruction> instructions;
    std::string joined;
    std::uint32_t begun = 0;
    for (std::uint32_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!CheckLine(number, line)) continue;
      const std::string_view content = Trimmed(line);
      if (content.starts_with('#')) {
        CheckDirective(number, content, begun == 0 && instructions.empty());
        continue;
      }
      if (content.empty()) continue;
      if (begun == 0) begun = number;
      if (content.ends_with('\\')) {
        joined += line.substr(0, line.find_last_of('\\'));
        continue;
      }
      joined += line;
      instructions.push_back(NameAndRest(std::exchange(begun, 0), std::exchange(joined, {})));
    }
    if (begun != 0) instructions.push_back(NameAndRest(begun, joined));
    return instructions;
  }

  bool CheckLine(std::uint32_t number, std::string_view line) {
    const bool is_text = IsUtf8(line) && std::ranges::none_of(line, [](char c) {
                           return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7f;
                         });
    if (!is_text && mistakes_.size() < kMaxMistakes) {
      Complain(number,
               "the line holds bytes that are no UTF-8, or control characters; take them out");
    }
    return is_text;
  }

  // "# escape=`" and "# syntax=…" on top would change what all else means.
  void CheckDirective(std::uint32_t number, std::string_view comment, bool on_top) {
    if (!on_top) return;
    const std::string_view content = Trimmed(comment.substr(1));
    const std::string_view name = Trimmed(content.substr(0, content.find('=')));
    if (content.find('=') == std::string_view::npos) return;
    for (const std::string_view directive : {"SYNTAX", "ESCAPE", "CHECK"}) {
      if (Upper(name) == directive)
        Complain(number, "directives are not supported; leave the line out");
    }
  }

  static Instruction NameAndRest(std::uint32_t line, std::string_view text) {
    text = Trimmed(text);
    const std::size_t end = std::min(text.find_first_of(kSpaces), text.size());
    return {line, Upper(text.substr(0, end)), std::string(Trimmed(text.substr(end)))};
  }

  Parsed<void> Take(const Instruction& instruction) {
    for (const Refusal& refusal : kRefused) {
      if (refusal.instruction == instruction.name) {
        return Bad(fmt::format("{} is not supported: {}", refusal.instruction, refusal.advice));
      }
    }
    if (instruction.name == "FROM") return TakeFrom(instruction);
    const auto taker = TakerOf(instruction.name);
    if (taker == nullptr) {
      return Bad(
          fmt::format("\"{}\" is no instruction; there are FROM, RUN, ENV, ARG, WORKDIR, LABEL",
                      instruction.name.substr(0, kShown)));
    }
    if (!has_from_) return Bad(instruction.name + " stands before FROM; begin with FROM");
    if (instruction.rest.empty()) return Bad(instruction.name + " has nothing behind it");
    if (file_.steps.size() == kMaxTemplateSteps) {
      return Bad(
          fmt::format("there are more than {} steps; join RUN lines by &&", kMaxTemplateSteps));
    }
    return (this->*taker)(instruction);
  }

  using Taker = Parsed<void> (Parser::*)(const Instruction&);
  static Taker TakerOf(std::string_view name) {
    if (name == "RUN") return &Parser::TakeRun;
    if (name == "ENV") return &Parser::TakeEnv;
    if (name == "ARG") return &Parser::TakeArg;
    if (name == "WORKDIR") return &Parser::TakeWorkdir;
    if (name == "LABEL") return &Parser::TakeLabel;
    return nullptr;
  }

  std::string Allowed() const {
    std::string names;
    for (const auto& [name, unused] : options_.images) names += (names.empty() ? "" : ", ") + name;
    return names.empty() ? "no image is allowed here" : names;
  }

  Parsed<void> TakeFrom(const Instruction& instruction) {
    if (std::exchange(has_from_, true))
      return Bad("there is a second FROM; a template has one stage");
    const std::string& name = instruction.rest;
    if (name.find('$') != std::string::npos) {
      return Bad("FROM has a variable; write the image itself: " + Allowed());
    }
    if (name.starts_with("--")) return Bad("options of FROM are not supported; leave them out");
    if (name.find_first_of(kSpaces) != std::string::npos) {
      return Bad("FROM names more than an image; a template has one stage, without a name");
    }
    const auto found = options_.images.find(name);
    if (found == options_.images.end()) {
      return Bad(fmt::format("\"{}\" is not an image that templates may be made of: {}",
                             name.substr(0, kShown), Allowed()));
    }
    file_.from = name;
    file_.image = found->second;
    return {};
  }

  Parsed<void> TakeRun(const Instruction& instruction) {
    const std::string& rest = instruction.rest;
    if (rest.starts_with("--")) return Bad("options of RUN are not supported; leave them out");
    if (HasHeredoc(rest)) {
      return Bad("RUN has a here-document; write the lines with printf, or join commands by && \\");
    }
    TemplateStep step = Step(instruction);
    step.arguments = {"/bin/sh", "-c", rest};
    if (rest.starts_with('[')) {
      auto listed = ReadList(rest);
      if (!listed) return Bad(std::move(listed.error()));
      if (!listed->empty()) step.arguments = *std::move(listed);
    }
    file_.steps.push_back(std::move(step));
    return {};
  }

  // As Docker has it: what is no array of texts is a command for the shell, `[ -e x ] && …` too.
  static Parsed<std::vector<std::string>> ReadList(const std::string& rest) {
    const auto value = json::Read(rest);
    std::vector<std::string> words;
    if (!value || !value->is_array()) return words;
    for (const json::Value& word : value->as_array()) {
      if (!word.is_string() || word.as_string().find('\0') != std::string::npos) {
        return Bad("RUN [ … ] takes texts only");
      }
      words.push_back(word.as_string());
    }
    if (words.empty() || words[0].empty()) return Bad("RUN [ ] names no program");
    return words;
  }

  TemplateStep Step(const Instruction& instruction) const {
    return {.line = instruction.line,
            .text = instruction.name + " " + instruction.rest,
            .arguments = {},
            .environment = variables_,
            .directory = file_.directory};
  }

  // NAME=value …, each given to `set` with its variables replaced.
  Parsed<void> TakePairs(const Instruction& instruction, bool (*is_name)(std::string_view),
                         std::map<std::string, std::string>& into) {
    const Environment before = variables_;  // one line sees nothing of itself
    const std::string_view rest = instruction.rest;
    const std::size_t first = std::min(rest.find_first_of(kSpaces), rest.size());
    if (rest.substr(0, first).find('=') == std::string_view::npos) {
      // The old form: NAME and all the rest.
      Words words(rest.substr(first), before);
      if (words.AtEnd())
        return Bad(instruction.name + " has a name without a value; write NAME=value");
      auto value = words.Rest();
      if (!value) return Bad(std::move(value.error()));
      return Set(instruction, std::string(rest.substr(0, first)), *std::move(value), is_name, into);
    }
    for (Words words(rest, before); !words.AtEnd();) {
      auto word = words.Next();
      if (!word) return Bad(std::move(word.error()));
      const std::size_t equals = word->find('=');
      if (equals == std::string::npos) {
        return Bad(fmt::format("\"{}\" has no value; write NAME=value", word->substr(0, kShown)));
      }
      if (auto set =
              Set(instruction, word->substr(0, equals), word->substr(equals + 1), is_name, into);
          !set) {
        return set;
      }
    }
    return {};
  }

  static Parsed<void> Set(const Instruction& instruction, const std::string& name,
                          std::string value, bool (*is_name)(std::string_view),
                          std::map<std::string, std::string>& into) {
    if (!is_name(name)) {
      return Bad(fmt::format("\"{}\" is not a name for {}: letters, digits and _, no digit first",
                             name.substr(0, kShown), instruction.name));
    }
    into[name] = std::move(value);
    std::size_t bytes = 0;
    for (const auto& [key, each] : into) bytes += key.size() + each.size();
    if (bytes > kMaxEnvironmentBytes) return Bad("all values together are too long");
    return {};
  }

  Parsed<void> TakeEnv(const Instruction& instruction) {
    Environment set;
    if (auto taken = TakePairs(instruction, IsVariable, set); !taken) return taken;
    for (const auto& [name, value] : set) {
      variables_[name] = value;
      file_.environment[name] = value;
      fixed_.push_back(name);
    }
    return CheckSize();
  }

  // Holds for the steps behind it, not for the machine; ENV wins.
  Parsed<void> TakeArg(const Instruction& instruction) {
    Words words(instruction.rest, variables_);
    auto word = words.Next();
    if (!word) return Bad(std::move(word.error()));
    if (!words.AtEnd()) return Bad("ARG takes one name; write a line for each");
    const std::size_t equals = std::min(word->find('='), word->size());
    const std::string name = word->substr(0, equals);
    if (!IsVariable(name)) return Bad("ARG is not followed by the name of a variable");
    if (equals == word->size()) {
      return Bad(fmt::format(
          "ARG {0} has no value, and none is given to a build; write ARG {0}=value", name));
    }
    if (std::ranges::find(fixed_, name) == fixed_.end())
      variables_[name] = word->substr(equals + 1);
    return CheckSize();
  }

  Parsed<void> CheckSize() const {
    std::size_t bytes = 0;
    for (const auto& [name, value] : variables_) bytes += name.size() + value.size();
    if (bytes > kMaxEnvironmentBytes) return Bad("all variables together are too long");
    return {};
  }

  Parsed<void> TakeWorkdir(const Instruction& instruction) {
    auto path = Words(instruction.rest, variables_).Rest();
    if (!path) return Bad(std::move(path.error()));
    if (path->empty()) return Bad("WORKDIR names no directory");
    if (path->size() > 4095) return Bad("WORKDIR names a path of more than 4095 bytes");
    TemplateStep step = Step(instruction);
    step.directory = "/";
    file_.directory = Joined(file_.directory, *path);
    step.arguments = {"/bin/mkdir", "-p", "--", file_.directory};
    file_.steps.push_back(std::move(step));
    return {};
  }

  Parsed<void> TakeLabel(const Instruction& instruction) {
    return TakePairs(instruction, IsLabel, file_.labels);
  }

  const DockerfileOptions& options_;
  Dockerfile file_;
  Environment variables_;           // ENV and ARG so far
  std::vector<std::string> fixed_;  // names that ENV has set
  std::vector<Mistake> mistakes_;
  bool has_from_ = false;
};

}  // namespace

Result<Dockerfile> ParseDockerfile(std::string_view text, const DockerfileOptions& options) {
  return Parser(options).Parse(text);
}

}  // namespace caisson::images
