// SPDX-License-Identifier: Apache-2.0
#include "agent/guest/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "os/fd.h"

namespace caisson::agent::guest {
namespace {

constexpr std::size_t kMostCommandLine = 64u << 10;
constexpr int kMostRounds = 16;

std::optional<ProcessEntry> ReadEntry(pid_t pid) {
  const auto text = os::ReadSmallFile("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!text) return std::nullopt;
  // pid (name) state ppid pgrp session …, 22nd: start; the name may hold anything.
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text->size()) return std::nullopt;
  ProcessEntry entry{.pid = pid, .state = (*text)[name_end + 2]};
  const char* at = text->c_str() + name_end + 3;
  for (int field = 4; field <= 22; ++field) {
    char* end = nullptr;
    const long long number = std::strtoll(at, &end, 10);
    if (end == at) return std::nullopt;
    at = end;
    if (field == 4) entry.parent = static_cast<pid_t>(number);
    if (field == 5) entry.group = static_cast<pid_t>(number);
    if (field == 6) entry.session = static_cast<pid_t>(number);
    if (field == 22) entry.start = static_cast<std::uint64_t>(number);
  }
  return entry;
}

}  // namespace

std::vector<ProcessEntry> ListProcesses() {
  std::vector<ProcessEntry> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc"), ::closedir);
  if (directory == nullptr) return all;
  while (const dirent* found = ::readdir(directory.get())) {
    const int pid = std::atoi(found->d_name);
    if (pid <= 0) continue;
    const auto entry = ReadEntry(pid);
    if (entry && entry->state != 'Z' && entry->state != 'X') all.push_back(*entry);
  }
  return all;
}

std::vector<ProcessEntry> Descendants(const std::vector<ProcessEntry>& all, pid_t root) {
  std::unordered_multimap<pid_t, const ProcessEntry*> children;
  for (const ProcessEntry& entry : all) children.emplace(entry.parent, &entry);
  std::vector<ProcessEntry> found;
  std::vector<pid_t> open{root};
  // A list that is read while processes come and go can be cyclic; none is looked at twice.
  std::set<pid_t> seen{root};
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto it = begin; it != end; ++it) {
      if (!seen.insert(it->second->pid).second) continue;
      found.push_back(*it->second);
      open.push_back(it->second->pid);
    }
  }
  return found;
}

std::vector<ProcessEntry> Orphans(const std::vector<ProcessEntry>& all) {
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  std::vector<ProcessEntry> found;
  std::ranges::copy_if(all, std::back_inserter(found), [&](const ProcessEntry& entry) {
    return entry.parent == self && entry.session != session;
  });
  return found;
}

void SendSignal(const ProcessEntry& process, int signal) {
  const os::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd.valid()) return;
  const auto now = ReadEntry(process.pid);
  if (!now || now->start != process.start) return;
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

void KillAll(const Choose& choose) {
  std::set<std::pair<pid_t, std::uint64_t>> stopped;
  std::vector<ProcessEntry> found;
  for (int round = 0; round < kMostRounds; ++round) {
    found = choose(ListProcesses());
    bool has_new = false;
    for (const ProcessEntry& entry : found) {
      if (!stopped.emplace(entry.pid, entry.start).second) continue;
      has_new = true;
      SendSignal(entry, SIGSTOP);
    }
    if (!has_new) break;
  }
  for (const ProcessEntry& entry : found) SendSignal(entry, SIGKILL);
}

std::vector<std::string> CommandLine(pid_t pid) {
  const auto text =
      os::ReadSmallFile("/proc/" + std::to_string(pid) + "/cmdline", kMostCommandLine);
  std::vector<std::string> words;
  if (!text) return words;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\0', begin), text->size());
    words.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace caisson::agent::guest
