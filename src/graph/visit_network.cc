// SPDX-License-Identifier: Apache-2.0
#include "graph/visit_network.h"

#include <algorithm>
#include <utility>

namespace caisson::graph {

// The run's cancellation wakes the transfer; the rest (another node failed, a time limit) is asked
// for, and a time limit also ends it by its own clock.
template <typename Request, typename Do>
auto VisitNetwork::Within(const Request& given, const std::stop_token& stop, Do perform) {
  Request request = given;
  request.give_up = [this, &given, &stop] {
    return interrupt_.Check() != Interrupt::Reason::kNone || stop.stop_requested() ||
           (given.give_up && given.give_up());
  };
  if (const auto deadline = interrupt_.deadline()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    request.times.total = std::clamp(left, std::chrono::milliseconds(0), request.times.total);
  }
  auto result = perform(request, stop_);
  if (result) return result;
  const Interrupt::Reason reason = interrupt_.Check();
  if (reason != Interrupt::Reason::kNone) result = Fail(InterruptStatus(reason));
  return result;
}

Result<http::OutboundResponse> VisitNetwork::Send(const http::OutboundRequest& request,
                                                  const http::BodySink& sink,
                                                  std::stop_token stop) {
  return Within(request, stop, [&](const http::OutboundRequest& given, const std::stop_token& by) {
    return network_->Send(given, sink, by);
  });
}

Result<http::MailOutcome> VisitNetwork::SendMail(const http::MailRequest& mail,
                                                 std::stop_token stop) {
  return Within(mail, stop, [&](const http::MailRequest& given, const std::stop_token& by) {
    return network_->SendMail(given, by);
  });
}

}  // namespace caisson::graph
