// SPDX-License-Identifier: Apache-2.0
// What a command, a gigabyte and an idle agent cost, beside the bare calls of the same run. Prints
// JSON lines for bench/run.py; exit code 77 where the agent cannot be started.
//
//   agent_bench [runs of a command, default 300 [bytes of a file, default 1 GiB]]
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "agent/agent_under_test.h"
#include "agent/client.h"

namespace caisson::agent {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Give(const std::string& why) {
  std::fprintf(stderr, "agent_bench: %s\n", why.c_str());
  std::exit(1);
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double At99(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() * 99 / 100];
}

double ExecTrue(const AgentUnderTest& agent) {
  const auto begin = Clock::now();
  auto exec = Exec::Start(agent.Connect(), {.command = {.argv = {"/bin/true"}}});
  for (;;) {
    const auto event = exec->Next();
    if (!event) Give(event.error().message);
    if (event->kind == ExecEvent::Kind::kExit) return SecondsSince(begin) * 1e3;
  }
}

double SpawnTrue() {
  const auto begin = Clock::now();
  char program[] = "/bin/true";
  char* const argv[] = {program, nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = 0;
  int status = 0;
  // In a session of its own, as ours is: where the kernel groups processes by session for their
  // share of the processor, that is what waits on a busy machine.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  if (::posix_spawn(&pid, program, nullptr, &attributes, argv, environment) != 0) {
    Give("posix_spawn");
  }
  ::waitpid(pid, &status, 0);
  const double took = SecondsSince(begin) * 1e3;
  ::posix_spawnattr_destroy(&attributes);
  return took;
}

void BenchExec(const AgentUnderTest& agent, int runs) {
  std::vector<double> through_agent;
  std::vector<double> bare;
  for (int i = 0; i < runs; ++i) {
    through_agent.push_back(ExecTrue(agent));
    bare.push_back(SpawnTrue());
  }
  const double ours = Median(through_agent);
  const double control = Median(bare);
  std::printf(
      "{\"what\":\"exec of true through the agent, p50 (p99 %.3g)\",\"value\":%.3f,"
      "\"unit\":\"ms\",\"control\":%.3f,\"control_name\":\"posix_spawn in a session, wait\","
      "\"ratio\":%.2f,\"target\":\"<= 4 ms\",\"ok\":%s}\n",
      At99(through_agent), ours, control, ours / control, ours <= 4 ? "true" : "false");
}

// Bytes a second through a socket of the same kind, with nothing else done to them.
double SocketCopy(std::size_t bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) Give("socketpair");
  const auto begin = Clock::now();
  std::jthread writer([&] {
    const std::string piece(256u << 10, 'x');
    for (std::size_t left = bytes; left > 0;) {
      const ssize_t count = ::write(ends[0], piece.data(), std::min(piece.size(), left));
      if (count <= 0) Give("write to a socket");
      left -= static_cast<std::size_t>(count);
    }
    ::close(ends[0]);
  });
  std::vector<char> buffer(256u << 10);
  while (::read(ends[1], buffer.data(), buffer.size()) > 0) continue;
  ::close(ends[1]);
  return static_cast<double>(bytes) / SecondsSince(begin);
}

double UploadRate(const AgentUnderTest& agent, const std::string& path, std::size_t bytes) {
  const std::string piece(256u << 10, 'x');
  const auto begin = Clock::now();
  auto upload = Upload::Start(agent.Connect(), {path, {}});
  if (!upload) Give(upload.error().message);
  for (std::size_t left = bytes; left > 0;) {
    const std::string_view next = std::string_view(piece).substr(0, left);
    if (const auto written = upload->Write(next); !written) Give(written.error().message);
    left -= next.size();
  }
  if (const auto size = upload->Commit(); !size || *size != bytes) Give("the upload is not whole");
  return static_cast<double>(bytes) / SecondsSince(begin);
}

double DownloadRate(const AgentUnderTest& agent, const std::string& path, std::size_t bytes) {
  const auto begin = Clock::now();
  auto download = Download::Start(agent.Connect(), path);
  if (!download) Give(download.error().message);
  std::size_t got = 0;
  for (;;) {
    const auto piece = download->Next();
    if (!piece) Give(piece.error().message);
    if (piece->empty()) break;
    got += piece->size();
  }
  if (got != bytes) Give("the download is not whole");
  return static_cast<double>(bytes) / SecondsSince(begin);
}

double OutputRate(const AgentUnderTest& agent, std::size_t bytes) {
  const auto begin = Clock::now();
  const Heard heard = RunIn(agent, "head -c " + std::to_string(bytes) + " /dev/zero");
  if (heard.output.size() != bytes) Give("the output is not whole");
  return static_cast<double>(bytes) / SecondsSince(begin);
}

double FileWriteRate(const std::string& path, std::size_t bytes) {
  const std::string piece(256u << 10, 'x');
  const auto begin = Clock::now();
  const os::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  for (std::size_t left = bytes; left > 0;) {
    const ssize_t count = ::write(file.get(), piece.data(), std::min(piece.size(), left));
    if (count <= 0) Give("write a file");
    left -= static_cast<std::size_t>(count);
  }
  return static_cast<double>(bytes) / SecondsSince(begin);
}

// Processor time of a process so far, in ms.
double ProcessorTime(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string skipped;
  std::getline(stat, skipped, ')');
  for (int i = 0; i < 11; ++i) stat >> skipped;
  double user = 0;
  double system = 0;
  stat >> user >> system;
  return (user + system) * 1e3 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Beside the rate, which on a busy machine tells little.
void PrintProcessorTime(const char* what, double milliseconds) {
  std::printf("{\"what\":\"processor time of the agent for %s\",\"value\":%.0f,\"unit\":\"ms\"}\n",
              what, milliseconds);
}

void PrintRate(const char* what, double rate, double control) {
  std::printf(
      "{\"what\":\"%s\",\"value\":%.0f,\"unit\":\"MB/s\",\"control\":%.0f,"
      "\"control_name\":\"bare socket copy\",\"ratio\":%.2f,\"target\":\">= 0.4 of it\","
      "\"ok\":%s}\n",
      what, rate / 1e6, control / 1e6, rate / control, rate >= 0.4 * control ? "true" : "false");
}

void PrintMemory(AgentUnderTest& agent, const char* when) {
  const long kilobytes = AgentUnderTest::PrivateMemory(agent.process().pid());
  std::printf(
      "{\"what\":\"private memory of the agent, %s\",\"value\":%ld,\"unit\":\"kB\","
      "\"target\":\"< 1024 kB\",\"ok\":%s}\n",
      when, kilobytes, kilobytes >= 0 && kilobytes < 1024 ? "true" : "false");
}

}  // namespace
}  // namespace caisson::agent

int main(int argc, char** argv) {
  using namespace caisson::agent;
  const int runs = argc > 1 ? std::atoi(argv[1]) : 300;
  const std::size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1u << 30;
  AgentUnderTest agent;
  if (!Ping(agent.Connect())) {
    std::fprintf(stderr, "agent_bench: no agent can be started here\n");
    return 77;
  }
  PrintMemory(agent, "idle");
  BenchExec(agent, runs);
  // In memory: the speed of a disk is not the question.
  const std::string path = "/dev/shm/caisson-agent-bench-" + std::to_string(::getpid());
  const double control = SocketCopy(bytes);
  const double bare_file = FileWriteRate(path + "-bare", bytes);
  const std::string upload =
      "upload of a file (write(2) alone: " + std::to_string(std::lround(bare_file / 1e6)) +
      " MB/s)";
  ::unlink((path + "-bare").c_str());
  const double at_first = ProcessorTime(agent.process().pid());
  PrintRate(upload.c_str(), UploadRate(agent, path, bytes), control);
  const double uploaded = ProcessorTime(agent.process().pid());
  PrintRate("download of a file", DownloadRate(agent, path, bytes), control);
  PrintProcessorTime("this upload", uploaded - at_first);
  PrintProcessorTime("this download", ProcessorTime(agent.process().pid()) - uploaded);
  ::unlink(path.c_str());
  PrintRate("output of a command, 200 MB", OutputRate(agent, 200'000'000), control);
  PrintMemory(agent, "after all this");
  return 0;
}
