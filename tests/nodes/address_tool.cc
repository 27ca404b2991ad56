// SPDX-License-Identifier: Apache-2.0
// For each address on a line of standard input: why it is closed to requests of nodes, or "open".
#include <iostream>
#include <string>

#include "http/public_address.h"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto address = caisson::http::ParseIp(line);
    const char* why = address ? caisson::http::ClosedReason(*address) : "no address";
    std::cout << (why != nullptr ? why : "open") << '\n';
  }
}
