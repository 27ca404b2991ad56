// SPDX-License-Identifier: Apache-2.0
#include "runs/owner.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "graph/messages.h"

namespace caisson::runs {
namespace {

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id.empty() ? "?" : id;
}

// "pid:[4026531836]"
std::string PidNamespace() {
  std::array<char, 64> name{};
  const ssize_t length = readlink("/proc/self/ns/pid", name.data(), name.size() - 1);
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : "?";
}

// In clock ticks since the boot, field 22 of proc_pid_stat(5); nullopt when there is no such
// process or it has ended and waits to be reaped.
std::optional<std::string> StartTime(std::string_view pid) {
  std::ifstream file("/proc/" + std::string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const std::string stat = text.str();
  const std::size_t name_end = stat.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int number = 3; fields >> field; ++number) {
    if (number == 3 && (field == "Z" || field == "X")) return std::nullopt;
    if (number == 22) return field;
  }
  return std::nullopt;
}

std::vector<std::string> Words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string NewOwner() {
  const std::string pid = std::to_string(getpid());
  return BootId() + " " + PidNamespace() + " " + pid + " " + StartTime(pid).value_or("?") + " " +
         graph::RandomUuid();
}

OwnerState StateOf(std::string_view owner) {
  const std::vector<std::string> words = Words(owner);
  if (words.size() != 5 || !IsNumber(words[2]) || words[0] == "?" || words[1] == "?" ||
      words[3] == "?" || words[0] != BootId() || words[1] != PidNamespace()) {
    return OwnerState::kUnknown;
  }
  return StartTime(words[2]) == words[3] ? OwnerState::kAlive : OwnerState::kDead;
}

}  // namespace caisson::runs
