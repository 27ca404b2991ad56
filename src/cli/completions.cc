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
  for (const OptionInfo& option : command.options) {
    text += (text.empty() ? "" : " ") + Join(option.names);
  }
  return text;
}

bool IsLong(std::string_view name) { return name.starts_with("--"); }

// Within single quotes in all three shells; `also` are further characters to mask with a backslash.
std::string Masked(std::string_view text, std::string_view also = "") {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (also.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string Quoted(std::string_view text, std::string_view also = "") {
  return "'" + Masked(text, also) + "'";
}

// ---- bash

std::string BashReply(const std::string& generator) {
  return "mapfile -t COMPREPLY < <(compgen " + generator + " -- \"$word\")";
}

std::string BashWords(const std::string& words) { return BashReply("-W '" + words + "'"); }

std::string BashValues(const CommandInfo& command) {
  std::string text;
  for (const OptionInfo& option : command.options) {
    if (!option.takes_value()) continue;
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : "|") + name;
    text += "        " + names + ") ";
    if (!option.choices.empty()) {
      text += BashWords(Join(option.choices)) + "; ";
    } else if (option.takes_file) {
      text += BashReply("-f") + "; ";
    }
    text += "return ;;\n";
  }
  return text;
}

std::string BashCommand(const CommandInfo& command) {
  std::string text = "    " + command.name + ")\n";
  if (const std::string values = BashValues(command); !values.empty()) {
    text += "      case $previous in\n" + values + "      esac\n";
  }
  text += "      if [[ $word == -* ]]; then " + BashWords(OptionNames(command)) + "\n";
  if (!command.choices.empty()) {
    text += "      else " + BashWords(Join(command.choices)) + "\n";
  } else if (command.takes_files) {
    text += "      else " + BashReply("-f") + "\n";
  }
  return text + "      fi ;;\n";
}

// ---- zsh

// "'(-q --quiet)'{-q,--quiet}'[No warnings]'"
std::string ZshOption(const OptionInfo& option) {
  std::string text;
  const std::string help = Masked(option.help, "[]:\\");
  const std::string names = Join(option.names);
  if (option.is_repeatable) {
    text = "'*'";
  } else {
    text = "'(" + names + ")'";
  }
  if (option.names.size() > 1) text += "{";
  bool first = true;
  for (const std::string& name : option.names) {
    if (!first) text += ",";
    first = false;
    text += name + (option.takes_value() && IsLong(name) ? "=" : "");
  }
  if (option.names.size() > 1) text += "}";
  text += "'[" + help + "]";
  if (option.takes_value()) {
    text += ":" + Masked(option.value_name, ":\\") + ":";
    text += !option.choices.empty() ? "(" + Join(option.choices) + ")"
            : option.takes_file     ? "_files"
                                    : " ";
  }
  return text + "'";
}

std::string ZshCommand(const CommandInfo& command) {
  std::string text = "    " + command.name + ")\n      _arguments -s";
  for (const OptionInfo& option : command.options) text += " \\\n        " + ZshOption(option);
  if (!command.choices.empty()) {
    text += " \\\n        '1:value:(" + Join(command.choices) + ")'";
  } else if (command.takes_files) {
    text += " \\\n        '*:file:_files'";
  }
  return text + " ;;\n";
}

// ---- fish

std::string FishOption(const OptionInfo& option) {
  std::string text;
  for (const std::string& name : option.names) {
    text += IsLong(name) ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.choices.empty()) {
    text += " -x -a " + Quoted(Join(option.choices));
  } else if (option.takes_value()) {
    text += option.takes_file ? " -r -F" : " -x";
  }
  return text + " -d " + Quoted(option.help, "\\");
}

std::string FishCommand(const CommandInfo& command) {
  std::string text = "complete -c caisson -n __caisson_needs_command -a " + command.name + " -d " +
                     Quoted(command.help, "\\") + "\n";
  const std::string here = "complete -c caisson -n '__caisson_is " + command.name + "'";
  if (!command.choices.empty()) {
    text += here + " -f -a " + Quoted(Join(command.choices)) + "\n";
  } else if (!command.takes_files) {
    text += here + " -f\n";
  }
  for (const OptionInfo& option : command.options) text += here + FishOption(option) + "\n";
  return text;
}

}  // namespace

std::string BashCompletions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "# Completions of caisson for bash: source <(caisson completions bash)\n"
      "_caisson() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  # \"--format=json\" comes as three words.\n"
      "  if [ \"$word\" = = ]; then word=\n"
      "  elif [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    " +
      BashWords(Names(commands) + " --help --version") +
      "\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const CommandInfo& command : commands) text += BashCommand(command);
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
      "    if [[ $words[2] == -* ]]; then\n"
      "      _arguments '--help[Print this help and exit]' '--version[Print the version and "
      "exit]'\n"
      "    else\n"
      "      _describe command commands\n"
      "    fi\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandInfo& command : commands) text += ZshCommand(command);
  // Loaded from a file of that name it completes at once; sourced, it has to be registered.
  return text +
         "  esac\n}\n"
         "if [[ $funcstack[1] == _caisson ]]; then _caisson \"$@\"; else compdef _caisson caisson; "
         "fi\n";
}

std::string FishCompletions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "# Completions of caisson for fish: "
      "caisson completions fish > ~/.config/fish/completions/caisson.fish\n"
      "function __caisson_needs_command\n"
      "  test (count (commandline -opc)) -eq 1\n"
      "end\n"
      "function __caisson_is\n"
      "  set -l words (commandline -opc)\n"
      "  test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
      "end\n"
      "complete -c caisson -n __caisson_needs_command -f\n"
      "complete -c caisson -n __caisson_needs_command -l help -d 'Print this help and exit'\n"
      "complete -c caisson -n __caisson_needs_command -l version -d 'Print the version and exit'\n";
  for (const CommandInfo& command : commands) text += FishCommand(command);
  return text;
}

}  // namespace caisson::cli
