// SPDX-License-Identifier: Apache-2.0
#include "cli/completions.h"

namespace caisson::cli {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string Names(const std::vector<CommandInfo>& commands) {
  std::string text;
  for (const CommandInfo& command : commands) text += (text.empty() ? "" : " ") + command.name;
  return text;
}

std::string OptionNames(const CommandInfo& command) {
  std::string text;
  for (const OptionInfo& option : command.options) text += (text.empty() ? "" : " ") + option.name;
  return text;
}

// For single quotes in all three shells; `also` are further characters to mask with a backslash.
std::string Quoted(std::string_view text, std::string_view also = "") {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (also.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out + "'";
}

std::string BashValues(const CommandInfo& command) {
  std::string text;
  for (const OptionInfo& option : command.options) {
    if (!option.takes_value) continue;
    text += "        " + option.name + ") ";
    text += option.choices.empty()
                ? "COMPREPLY=($(compgen -f -- \"$word\"))"
                : "COMPREPLY=($(compgen -W '" + Join(option.choices) + "' -- \"$word\"))";
    text += "; return ;;\n";
  }
  return text;
}

}  // namespace

std::string BashCompletions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "# Completions of caisson for bash: source <(caisson completions bash)\n"
      "_caisson() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      Names(commands) +
      " --help --version' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const CommandInfo& command : commands) {
    text += "    " + command.name + ")\n";
    if (const std::string values = BashValues(command); !values.empty()) {
      text += "      case $previous in\n" + values + "      esac\n";
    }
    text += "      if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '" + OptionNames(command) +
            "' -- \"$word\"))\n";
    if (!command.choices.empty()) {
      text += "      else COMPREPLY=($(compgen -W '" + Join(command.choices) + "' -- \"$word\"))\n";
    } else if (command.takes_files) {
      text += "      else COMPREPLY=($(compgen -f -- \"$word\"))\n";
    }
    text += "      fi ;;\n";
  }
  return text + "  esac\n}\ncomplete -o filenames -F _caisson caisson\n";
}

std::string ZshCompletions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "#compdef caisson\n"
      "# Completions of caisson for zsh: caisson completions zsh > ~/.zfunc/_caisson\n"
      "_caisson() {\n"
      "  local -a commands=(\n";
  for (const CommandInfo& command : commands) {
    text += "    " + Quoted(command.name + ":" + command.help) + "\n";
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandInfo& command : commands) {
    text += "    " + command.name + ")\n      _arguments";
    for (const OptionInfo& option : command.options) {
      const std::string help = Quoted(option.help, "[]:");
      std::string quoted = "'" + option.name + "[" + help.substr(1, help.size() - 2) + "]";
      if (option.takes_value) {
        quoted +=
            option.choices.empty() ? ":value:_files" : ":value:(" + Join(option.choices) + ")";
      }
      text += " \\\n        " + quoted + "'";
    }
    if (!command.choices.empty()) {
      text += " \\\n        '1:value:(" + Join(command.choices) + ")'";
    } else if (command.takes_files) {
      text += " \\\n        '*:file:_files'";
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\n_caisson \"$@\"\n";
}

std::string FishCompletions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "# Completions of caisson for fish\n"
      "complete -c caisson -n __fish_use_subcommand -f\n"
      "complete -c caisson -n __fish_use_subcommand -l help -l version\n";
  for (const CommandInfo& command : commands) {
    text += "complete -c caisson -n __fish_use_subcommand -a " + command.name + " -d " +
            Quoted(command.help, "\\") + "\n";
    const std::string here =
        "complete -c caisson -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const OptionInfo& option : command.options) {
      const bool is_long = option.name.starts_with("--");
      text += here + (is_long ? " -l " + option.name.substr(2) : " -s " + option.name.substr(1));
      if (option.takes_value) text += " -r";
      if (!option.choices.empty()) text += " -f -a " + Quoted(Join(option.choices));
      text += " -d " + Quoted(option.help, "\\") + "\n";
    }
    if (!command.choices.empty()) text += here + " -f -a " + Quoted(Join(command.choices)) + "\n";
  }
  return text;
}

}  // namespace caisson::cli
