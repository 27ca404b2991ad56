// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "machine/oci/engine.h"

namespace caisson::machine::oci {
namespace {

constexpr std::size_t kBlock = 512;

// The header of a member in the format ustar, of root and of no time.
std::string Header(std::string_view name, unsigned mode, std::size_t size, char type) {
  std::array<char, kBlock> header{};
  const auto put = [&header](std::size_t at, std::string_view text) {
    text.copy(header.data() + at, text.size());
  };
  const auto number = [&put](std::size_t at, int digits, std::size_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%0*zo", digits, value);
    put(at, text);
  };
  put(0, name);
  number(100, 7, mode);
  number(108, 7, 0);
  number(116, 7, 0);
  number(124, 11, size);
  number(136, 11, 0);
  put(148, "        ");  // the sum counts with blanks in its own place
  header[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  number(148, 6, sum);
  header[154] = '\0';
  return {header.data(), header.size()};
}

}  // namespace

std::string InitImage(const std::string& program) {
  std::string tar;
  // Places of what the engine, and then the machine, mounts.
  for (const char* directory :
       {"./", "./dev/", "./etc/", "./proc/", "./run/", "./run/caisson/", "./sys/"}) {
    tar += Header(directory, 0755, 0, '5');
  }
  tar += Header("./caisson-container-init", 0755, program.size(), '0') + program;
  tar.append((kBlock - program.size() % kBlock) % kBlock + 2 * kBlock, '\0');
  return tar;
}

}  // namespace caisson::machine::oci
