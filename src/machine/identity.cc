// SPDX-License-Identifier: Apache-2.0
#include "machine/identity.h"

namespace caisson::machine {

std::vector<std::pair<std::string, std::string>> IdentityFiles(
    const MachineSpec& spec, const std::string& ip, const std::vector<std::string>& name_servers,
    bool first_time) {
  std::vector<std::pair<std::string, std::string>> files;
  if (first_time) {
    files.emplace_back("/etc/hostname", spec.host_name + "\n");
    files.emplace_back("/etc/hosts",
                       "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" +
                           (ip.empty() ? "127.0.1.1" : ip) + " " + spec.host_name + "\n");
  }
  std::string resolvers;
  for (const std::string& server : name_servers) resolvers += "nameserver " + server + "\n";
  files.emplace_back("/etc/resolv.conf", std::move(resolvers));
  return files;
}

}  // namespace caisson::machine
