// SPDX-License-Identifier: Apache-2.0
// The network of a run as one visit has it: a transfer ends when the visit must, and fails then
// with the reason for that. Belongs to the visit's thread.
#pragma once

#include "graph/interrupt.h"
#include "http/outbound.h"

namespace caisson::graph {

class VisitNetwork final : public http::Outbound {
 public:
  // All must outlive this. `stop` is that of the run.
  VisitNetwork(http::Outbound* network, Interrupt& interrupt, const std::stop_token& stop)
      : network_(network), interrupt_(interrupt), stop_(stop) {}

  bool exists() const { return network_ != nullptr; }
  Result<http::OutboundResponse> Send(const http::OutboundRequest& request,
                                      const http::BodySink& sink, std::stop_token stop) override;
  Result<http::MailOutcome> SendMail(const http::MailRequest& mail, std::stop_token stop) override;

 private:
  template <typename Request, typename Do>
  auto Within(const Request& given, const std::stop_token& stop, Do perform);

  http::Outbound* const network_;
  Interrupt& interrupt_;
  const std::stop_token& stop_;
};

}  // namespace caisson::graph
