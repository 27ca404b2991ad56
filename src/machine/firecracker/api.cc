// SPDX-License-Identifier: Apache-2.0
#include "machine/firecracker/api.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <string_view>
#include <utility>

#include "errors/machine.h"
#include "json/reader.h"
#include "json/writer.h"
#include "os/fd.h"

namespace caisson::machine::firecracker {
namespace {

constexpr std::chrono::milliseconds kConnect{5'000};
constexpr std::size_t kMostWords = 300;

std::unexpected<Status> VmFailed(const std::string& what) {
  return Fail(errors::kMachineVmFailed, what);
}

// Of {"fault_message": "…"}; else what there is.
std::string FaultIn(const std::string& body) {
  const auto value = json::Read(body.substr(0, 64 << 10));
  const json::Value* fault = value && value->is_object() ? value->Find("fault_message") : nullptr;
  const std::string text = fault != nullptr && fault->is_string() ? fault->as_string() : body;
  return text.substr(0, kMostWords);
}

std::unexpected<Status> Refusal(const Call& call, const http::ClientAnswer& answer) {
  const std::string fault = FaultIn(answer.body);
  // As Rust tells ENOSPC.
  if (fault.find("os error 28") != std::string::npos ||
      fault.find("No space left") != std::string::npos) {
    return Fail(errors::kMachineFull, "the host's disk is full");
  }
  const std::string what =
      fmt::format("Firecracker refuses {} {}: {} {}", call.method, call.path, answer.status, fault);
  if (call.path == "/snapshot/load" && fault.find("CRC") != std::string::npos) {
    return Fail(errors::kMachineDamaged, what);
  }
  return VmFailed(what);
}

}  // namespace

Result<Api> Api::Open(const std::string& socket) {
  CAISSON_ASSIGN(http::Client client,
                 http::Client::Make({.base_url = "http://localhost",
                                     .unix_socket = socket,
                                     .headers = {{"Accept", "application/json"},
                                                 {"Content-Type", "application/json"}},
                                     .connect_timeout = kConnect}));
  return Api(std::move(client));
}

Result<void> Api::Do(const Call& call, std::chrono::milliseconds patience) {
  http::ClientRequest request;
  request.method = call.method;
  request.path = call.path;
  CAISSON_ASSIGN(request.body, json::Write(call.body));
  request.timeout = patience;
  const auto answer = client_.Send(request);
  if (!answer) {
    return VmFailed(fmt::format("Firecracker does not answer {} {} within {} s: {}", call.method,
                                call.path, static_cast<double>(patience.count()) / 1000,
                                answer.error().message));
  }
  if (answer->status != 204 && answer->status != 200) return Refusal(call, *answer);
  return {};
}

bool IsListening(const std::string& socket) {
  const os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (!fd.valid() || socket.size() >= sizeof name.sun_path) return false;
  socket.copy(name.sun_path, socket.size());
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

}  // namespace caisson::machine::firecracker
