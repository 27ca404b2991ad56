// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>

#include "api/test_service.h"

namespace caisson::api {
namespace {

class PoolsApi : public ::testing::Test {
 protected:
  static std::string TextOf(const Answered& answered, const char* field) {
    const json::Value* data = answered.body.Find("data");
    const json::Value* found = data == nullptr ? nullptr : data->Find(field);
    return found == nullptr ? "" : json::Write(*found).value();
  }
  void Await(const std::string& ready) {
    for (int i = 0; i < 500; ++i) {
      if (TextOf(service_.Call(service_.owner, "GET", "/v1/pools/p"), "ready") == ready) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    FAIL() << "not " << ready << " ready";
  }

  TestService service_;
  const std::string definition_ =
      R"({"sandbox":{"shape":"s-1vcpu-256mb"},"size":1,"warm":{"command":"python3","ready":"r"}})";
};

TEST_F(PoolsApi, defines_fills_and_hands_out) {
  auto put = service_.Call(service_.owner, "PUT", "/v1/pools/p", definition_);
  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(TextOf(put, "created"), "true");
  put = service_.Call(service_.owner, "PUT", "/v1/pools/p", definition_);
  EXPECT_EQ(TextOf(put, "created"), "false");
  Await("1");
  const auto made = service_.Call(service_.owner, "POST", "/v1/sandboxes", R"({"pool":"p"})");
  EXPECT_EQ(made.status, 200);
  EXPECT_EQ(TextOf(made, "pool"), R"({"name":"p","ready":true})");
  EXPECT_EQ(TextOf(made, "warm_process"), "\"warm-1\"");
  EXPECT_EQ(TextOf(made, "status"), "\"running\"");
  EXPECT_EQ(service_.Call(service_.owner, "DELETE", "/v1/pools/p").status, 200);
  EXPECT_EQ(service_.Call(service_.owner, "DELETE", "/v1/pools/p").status, 404);
}

TEST_F(PoolsApi, is_the_tenants_own) {
  service_.Call(service_.owner, "PUT", "/v1/pools/p", definition_);
  EXPECT_EQ(service_.Call(service_.other, "GET", "/v1/pools/p").status, 404);
  EXPECT_EQ(service_.Call(service_.other, "POST", "/v1/sandboxes", R"({"pool":"p"})").status, 404);
  EXPECT_EQ(service_.Call("", "GET", "/v1/pools").status, 401);
}

TEST_F(PoolsApi, says_which_field_is_wrong) {
  const auto refusal = [&](const std::string& method, const std::string& path,
                           const std::string& body) {
    const auto answer = service_.Call(service_.owner, method, path, body);
    return std::to_string(answer.status) + " " + json::Write(*answer.body.Find("data")).value();
  };
  EXPECT_NE(refusal("PUT", "/v1/pools/p", R"({"size":1,"sandbox":{"shape":7}})")
                .find(R"(400 {"sandbox.shape":)"),
            std::string::npos);
  EXPECT_NE(refusal("PUT", "/v1/pools/p", R"({"size":1,"sandbox":{"shape":"none"}})")
                .find(R"(400 {"sandbox.shape":)"),
            std::string::npos);
  EXPECT_NE(refusal("PUT", "/v1/pools/p", R"({"size":1,"sandbox":{"shape":"s","pool":"q"}})")
                .find(R"(400 {"sandbox.pool":)"),
            std::string::npos);
  EXPECT_NE(
      refusal("POST", "/v1/sandboxes", R"({"pool":"p","egress":["*"]})").find(R"(400 {"egress":)"),
      std::string::npos);
}

}  // namespace
}  // namespace caisson::api
