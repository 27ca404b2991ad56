// SPDX-License-Identifier: Apache-2.0
// What the API says of a driver, and refuses where it cannot.
#include <gtest/gtest.h>

#include "api/test_service.h"

namespace caisson::api {
namespace {

const json::Value& DataOf(const Answered& answered) { return *answered.body.Find("data"); }

TEST(Drivers, SayWhatTheyCan) {
  TestService service;
  const auto answered = service.Call(service.owner, "GET", "/v1/capabilities");
  ASSERT_EQ(answered.status, 200);
  EXPECT_EQ(DataOf(answered).Find("default")->as_string(), "fake");
  const json::Value& driver = DataOf(answered).Find("drivers")->as_array().front();
  EXPECT_EQ(driver.Find("isolation")->as_string(), "namespaces");
  EXPECT_EQ(driver.Find("pause")->as_string(), "memory");
  EXPECT_EQ(driver.Find("snapshot")->as_string(), "none");
  EXPECT_EQ(driver.Find("fork")->as_string(), "fs");
  EXPECT_FALSE(driver.Find("emulated")->as_bool());
  EXPECT_TRUE(driver.Find("egress")->Find("addresses")->as_bool());
  EXPECT_FALSE(driver.Find("egress")->Find("host_names")->as_bool());
}

TEST(Drivers, RefuseWhatIsNotTheirs) {
  TestService service;
  const auto unknown = service.Call(service.owner, "POST", "/v1/sandboxes",
                                    R"({"shape": "s-1vcpu-256mb", "driver": "teapot"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.code, "control.unknown_driver");
  const auto names = service.Call(service.owner, "POST", "/v1/sandboxes",
                                  R"({"shape": "s-1vcpu-256mb", "egress": ["example.org"]})");
  EXPECT_EQ(names.status, 422);
  EXPECT_EQ(names.code, "egress.host_names_unsupported");
  const auto made = service.Call(service.owner, "POST", "/v1/sandboxes",
                                 R"({"shape": "s-1vcpu-256mb", "driver": "fake"})");
  ASSERT_EQ(made.status, 200);
  EXPECT_EQ(DataOf(made).Find("driver")->as_string(), "fake");
  const std::string path = "/v1/sandboxes/" + DataOf(made).Find("id")->as_string();
  const auto log = service.Call(service.owner, "GET", path + "/egress/log");
  EXPECT_EQ(log.status, 501);
  EXPECT_EQ(log.code, "machine.unsupported");
  ASSERT_EQ(service.Call(service.owner, "POST", path + "/pause").status, 200);
  const auto fork = service.Call(service.owner, "POST", path + "/fork", R"({"driver": "teapot"})");
  EXPECT_EQ(fork.code, "control.unknown_driver");
}

}  // namespace
}  // namespace caisson::api
