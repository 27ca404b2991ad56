// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "api/envelope.h"
#include "api/routes.h"
#include "api/text.h"

namespace caisson::api {

http::Router MakeRouter(Context& context) {
  http::Router router;
  Routes routes(router, context);
  AddHealth(routes);
  AddCatalogue(routes);
  AddSandboxes(routes);
  AddLifecycle(routes);
  AddExec(routes);
  AddFiles(routes);
  AddProcesses(routes);
  AddTokens(routes);
  AddNetwork(routes);
  AddNetworks(routes);
  AddTunnel(routes);
  AddIngress(routes);
  AddTemplates(routes);
  AddPools(routes);
  AddEvents(routes);
  AddMeasurements(routes);
  AddNotBuilt(routes);
  return router;
}

http::ErrorAnswer MakeErrorAnswer() { return AnswerOf; }

std::function<void(const http::Served&)> MakeServedHook(Context& context) {
  return [&context](const http::Served& served) {
    const std::string_view route = served.request != nullptr && !served.request->pattern.empty()
                                       ? std::string_view(served.request->pattern)
                                       : "none";
    const double seconds = std::chrono::duration<double>(served.duration).count();
    context.metrics.CountRequest(route, served.status, seconds);
    json::Object fields{{"status", served.status},     {"ms", seconds * 1000},
                        {"bytes_in", served.bytes_in}, {"bytes_out", served.bytes_out},
                        {"whole", served.whole},       {"route", route}};
    if (served.request != nullptr) {
      fields.Set("method", ValidUtf8(served.request->method));
      fields.Set("path", ValidUtf8(served.request->raw_path));
      fields.Set("peer", served.request->peer);
      fields.Set("request_id", ValidUtf8(served.request->id));
    }
    context.log.Info("request", std::move(fields));
  };
}

}  // namespace caisson::api
