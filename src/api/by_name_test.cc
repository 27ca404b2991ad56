// SPDX-License-Identifier: Apache-2.0
// PUT /v1/sandboxes/by-name/{name}
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "api/test_service.h"

namespace caisson::api {
namespace {

constexpr const char* kPath = "/v1/sandboxes/by-name/files";  // a name that is a route's elsewhere
constexpr const char* kBody = R"({"shape": "s-1vcpu-256mb", "egress": ["240.0.0.0/4"]})";

const json::Value& DataOf(const Answered& answered) { return *answered.body.Find("data"); }

TEST(ByName, FindsOrCreates) {
  TestService service;
  const auto made = service.Call(service.owner, "PUT", kPath, kBody);
  ASSERT_EQ(made.status, 200);
  EXPECT_TRUE(DataOf(made).Find("created")->as_bool());
  EXPECT_EQ(DataOf(made).Find("name")->as_string(), "files");
  const std::string id = DataOf(made).Find("id")->as_string();
  ASSERT_EQ(service.Call(service.owner, "POST", "/v1/sandboxes/" + id + "/pause").status, 200);
  const auto found = service.Call(service.owner, "PUT", kPath, kBody);
  ASSERT_EQ(found.status, 200);
  EXPECT_FALSE(DataOf(found).Find("created")->as_bool());
  EXPECT_EQ(DataOf(found).Find("id")->as_string(), id);
  EXPECT_EQ(DataOf(found).Find("status")->as_string(), "running");
  const auto of_other = service.Call(service.other, "PUT", kPath, kBody);
  EXPECT_NE(DataOf(of_other).Find("id")->as_string(), id);
}

TEST(ByName, RefusesAnotherPolicyAndAnotherName) {
  TestService service;
  ASSERT_EQ(service.Call(service.owner, "PUT", kPath, kBody).status, 200);
  const auto open = service.Call(service.owner, "PUT", kPath, R"({"shape": "s-1vcpu-256mb"})");
  EXPECT_EQ(open.status, 409);
  EXPECT_EQ(open.code, "control.differs");
  EXPECT_NE(DataOf(open).Find("egress")->as_string().find("is [240.0.0.0/4], not [*]"),
            std::string::npos);
  const auto name =
      service.Call(service.owner, "PUT", kPath, R"({"shape": "s-1vcpu-256mb", "name": "other"})");
  EXPECT_EQ(name.status, 400);
  EXPECT_EQ(name.code, "api.field");
  const auto same =
      service.Call(service.owner, "PUT", kPath,
                   R"({"shape": "s-1vcpu-256mb", "egress": ["240.0.0.0/4"], "name": "files"})");
  EXPECT_EQ(same.status, 200);
}

TEST(ByName, IsInTheAuditLogWithItsName) {
  TestService service;
  ASSERT_EQ(service.Call(service.owner, "PUT", kPath, kBody).status, 200);
  json::Array entries;  // one is written after the answer
  for (int i = 0; i < 500 && entries.empty(); ++i) {
    const auto log = service.Call(service.admin, "GET", "/v1/audit");
    ASSERT_EQ(log.status, 200);
    entries = DataOf(log).Find("data")->as_array();
    if (entries.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(entries.size(), 1u);
  const json::Value& entry = entries.back();
  EXPECT_EQ(entry.Find("action")->as_string(), "PUT /v1/sandboxes/by-name/{name}");
  EXPECT_EQ(entry.Find("target")->as_string(), "files");
}

}  // namespace
}  // namespace caisson::api
