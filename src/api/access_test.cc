// SPDX-License-Identifier: Apache-2.0
// Who may do what, route by route, and what of others is not shown.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "api/test_service.h"

namespace caisson::api {
namespace {

constexpr const char* kNewSandbox = R"({"shape": "s-1vcpu-256mb"})";

class AccessTest : public testing::Test {
 protected:
  std::string TextAt(const Answered& answered, const char* key) {
    const json::Value* data = answered.body.Find("data");
    const json::Value* value = data != nullptr ? data->Find(key) : nullptr;
    return value != nullptr && value->is_string() ? value->as_string() : "";
  }
  std::string Make(const std::string& key) {
    return TextAt(service_.Call(key, "POST", "/v1/sandboxes", kNewSandbox), "id");
  }
  std::string TokenOf(const std::string& sandbox) {
    return TextAt(
        service_.Call(service_.owner, "POST", "/v1/sandboxes/" + sandbox + "/access-token"),
        "token");
  }
  int StatusOf(const std::string& key, const std::string& method, const std::string& path,
               const std::string& body) {
    return service_.Call(key, method, path, body).status;
  }

  TestService service_;
};

struct Row {
  const char* method;
  const char* path;  // {sb}: the sandbox of the owner
  const char* body;
  int owner, admin, other, token, foreign_token;  // the last is that of another sandbox
};

// Nothing of these changes the sandbox so that a later row could not be asked for.
const Row kRows[] = {
    {"GET", "/v1/whoami", "", 200, 200, 200, 403, 403},
    {"GET", "/v1/capabilities", "", 200, 200, 200, 403, 403},
    {"GET", "/v1/hosts", "", 403, 200, 403, 403, 403},
    {"GET", "/v1/audit", "", 403, 200, 403, 403, 403},
    {"GET", "/v1/sandboxes", "", 200, 200, 200, 403, 403},
    {"GET", "/v1/templates", "", 200, 200, 200, 403, 403},
    {"GET", "/v1/networks", "", 200, 200, 200, 403, 403},
    {"GET", "/v1/metrics", "", 200, 200, 200, 403, 403},
    {"GET", "/v1/sandboxes/{sb}", "", 200, 200, 404, 200, 404},
    {"PATCH", "/v1/sandboxes/{sb}", "{}", 200, 200, 404, 403, 403},
    {"GET", "/v1/sandboxes/{sb}/egress", "", 200, 200, 404, 200, 404},
    {"PUT", "/v1/sandboxes/{sb}/egress", R"({"egress": ["*"]})", 200, 200, 404, 403, 403},
    {"GET", "/v1/sandboxes/{sb}/bandwidth", "", 200, 200, 404, 200, 404},
    {"POST", "/v1/sandboxes/{sb}/bandwidth/recharge", R"({"add_bytes": 1})", 200, 200, 404, 403,
     403},
    {"PUT", "/v1/sandboxes/by-name/box", R"({"shape": "s-1vcpu-256mb"})", 200, 200, 200, 403, 403},
    {"POST", "/v1/sandboxes/{sb}/resize", R"({"disk_mib": 10240})", 200, 200, 404, 403, 403},
    {"POST", "/v1/sandboxes/{sb}/networks", R"({"id": "nothing"})", 404, 404, 404, 403, 403},
    {"GET", "/v1/sandboxes/{sb}/access-token", "", 200, 200, 404, 403, 403},
    {"POST", "/v1/sandboxes/{sb}/fork", "{}", 409, 409, 404, 403, 403},
    {"POST", "/v1/sandboxes/{sb}/pause", "", 200, 200, 404, 200, 404},
    {"POST", "/v1/sandboxes/{sb}/resume", "", 200, 200, 404, 200, 404},
    {"GET", "/v1/sandboxes/{sb}/computer/screen", "", 501, 501, 501, 403, 403},
};

TEST_F(AccessTest, HoldsRouteByRoute) {
  const std::string sandbox = Make(service_.owner);
  const std::string token = TokenOf(sandbox);
  const std::string foreign_token = TokenOf(Make(service_.owner));
  ASSERT_FALSE(token.empty() || foreign_token.empty());
  for (const Row& row : kRows) {
    std::string path = row.path;
    if (const std::size_t at = path.find("{sb}"); at != std::string::npos) {
      path.replace(at, 4, sandbox);
    }
    const std::string what = fmt::format("{} {}", row.method, row.path);
    EXPECT_EQ(StatusOf("", row.method, path, row.body), 401) << what;
    EXPECT_EQ(StatusOf("csk_wrong", row.method, path, row.body), 401) << what;
    EXPECT_EQ(StatusOf(service_.owner, row.method, path, row.body), row.owner) << what;
    EXPECT_EQ(StatusOf(service_.admin, row.method, path, row.body), row.admin) << what;
    EXPECT_EQ(StatusOf(service_.other, row.method, path, row.body), row.other) << what;
    EXPECT_EQ(StatusOf(token, row.method, path, row.body), row.token) << what;
    EXPECT_EQ(StatusOf(foreign_token, row.method, path, row.body), row.foreign_token) << what;
  }
}

TEST_F(AccessTest, NeedsNoKeyWhereItSaysSo) {
  for (const char* path : {"/healthz", "/readyz", "/v1/shapes", "/v1/rootfs"}) {
    EXPECT_EQ(StatusOf("", "GET", path, ""), 200) << path;
    EXPECT_EQ(StatusOf("csk_wrong", "GET", path, ""), 200) << path;
  }
}

TEST_F(AccessTest, AnotherTenantCannotTellASandboxFromNothing) {
  const std::string sandbox = Make(service_.owner);
  const auto there = service_.Call(service_.other, "GET", "/v1/sandboxes/" + sandbox);
  const auto nothing = service_.Call(service_.other, "GET", "/v1/sandboxes/sb-nothing");
  EXPECT_EQ(there.status, nothing.status);
  EXPECT_EQ(there.code, nothing.code);
  EXPECT_EQ(there.body.Find("status")->as_string(), "fail");
}

TEST_F(AccessTest, ATokenIsDeadOnceItIsRotatedOrItsSandboxIsGone) {
  const std::string sandbox = Make(service_.owner);
  const std::string path = "/v1/sandboxes/" + sandbox;
  const std::string first = TokenOf(sandbox);
  EXPECT_EQ(StatusOf(first, "GET", path, ""), 200);
  const auto rotated = service_.Call(service_.owner, "POST", path + "/access-token/rotate");
  EXPECT_EQ(StatusOf(first, "GET", path, ""), 401);
  EXPECT_EQ(StatusOf(TextAt(rotated, "token"), "GET", path, ""), 200);
  EXPECT_EQ(StatusOf(service_.owner, "DELETE", path + "/access-token", ""), 200);
  EXPECT_EQ(StatusOf(TextAt(rotated, "token"), "GET", path, ""), 401);
}

}  // namespace
}  // namespace caisson::api
