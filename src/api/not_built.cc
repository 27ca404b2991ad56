// SPDX-License-Identifier: Apache-2.0
// Parts of the API that do not exist here: 501 with the code api.not_built.
#include "api/routes.h"

namespace caisson::api {

void AddNotBuilt(Routes& routes) {
  const std::string sandbox = "/v1/sandboxes/{id}";
  for (const char* method : {"GET", "POST"}) {
    routes.AddNotBuilt(std::string(method) + " " + sandbox + "/shell-ws", "the shell by WebSocket");
    routes.AddNotBuilt(std::string(method) + " " + sandbox + "/shell", "the shell by upgrade");
  }
  routes.AddNotBuilt("* " + sandbox + "/computer/{rest...}", "the desktop");
  routes.AddNotBuilt("* " + sandbox + "/ssh-pubkeys", "access by SSH");
  routes.AddNotBuilt("* " + sandbox + "/disks", "an attached disk");
  routes.AddNotBuilt("* " + sandbox + "/disks/{rest...}", "an attached disk");
  routes.AddNotBuilt("* /v1/disks", "storage of S3 disks");
  routes.AddNotBuilt("* /v1/disks/{rest...}", "storage of S3 disks");
  routes.AddNotBuilt("GET /v1/metrics/timeseries", "the history of measurements");
  routes.AddNotBuilt("GET " + sandbox + "/metrics/timeseries", "the history of measurements");
}

}  // namespace caisson::api
