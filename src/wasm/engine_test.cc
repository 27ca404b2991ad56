// SPDX-License-Identifier: Apache-2.0
#include "wasm/engine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "wasm/address_space.h"

namespace caisson::wasm {
namespace {

std::uint64_t AddressSpace() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(Engine, ReservesWhatItSaysThatItNeeds) {
  for (const std::uint32_t slots : {1u, 2u, 9u}) {
    const EngineOptions options{.slots = slots};
    const std::uint64_t before = AddressSpace();
    const auto engine = Engine::Create(options);
    ASSERT_TRUE(engine) << engine.error().message;
    const std::uint64_t reserved = AddressSpace() - before;
    EXPECT_LE(reserved, AddressSpaceNeeded(options)) << slots;
    EXPECT_GE(reserved, AddressSpaceNeeded(options) / 2) << slots;
  }
}

// The message of Engine::Create in a child that may have `bytes` of address space.
std::string CreateWithin(std::uint64_t bytes) {
  int fds[2];
  if (pipe(fds) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], STDERR_FILENO);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(9);
    const auto engine = Engine::Create({.slots = 2});
    if (engine) _exit(1);
    const std::string text = std::string(engine.error().code.name) + "|" + engine.error().message;
    (void)!write(fds[1], text.data(), text.size());
    _exit(0);
  }
  close(fds[1]);
  std::string text;
  char chunk[4096];
  for (ssize_t got = 0; (got = read(fds[0], chunk, sizeof chunk)) > 0;) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  close(fds[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "died: " + text;
}

TEST(Engine, AProcessThatMayHaveTooLittleAddressSpaceIsToldHowMuchItNeeds) {
  if (AddressSpace() > (std::uint64_t{1} << 40)) GTEST_SKIP() << "a sanitizer's shadow is larger";
  const std::uint64_t needed = AddressSpaceNeeded({.slots = 2});
  for (const std::uint64_t bytes :
       {AddressSpace() + (256u << 20), std::uint64_t{2} << 30, needed}) {
    const std::string text = CreateWithin(bytes);
    EXPECT_TRUE(text.starts_with("wasm.address_space|")) << text;
    for (const std::string& part :
         {std::to_string(needed >> 20) + " MiB", std::to_string(bytes >> 20) + " MiB",
          std::string("ulimit -v unlimited")}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace caisson::wasm
