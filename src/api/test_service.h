// SPDX-License-Identifier: Apache-2.0
// For tests: the whole API on a free port over a driver without machines (control/fake_driver.h),
// with two tenants.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "api/api.h"
#include "api/text.h"
#include "control/fake_driver.h"
#include "control/identity.h"
#include "http/client.h"
#include "http/server.h"
#include "json/reader.h"
#include "json/writer.h"
#include "store/sqlite/store.h"

namespace caisson::api {

struct Answered {
  int status = 0;
  json::Value body;
  std::string code;  // of X-Error-Code; empty: none
};

class TestService {
 public:
  TestService() {
    std::string pattern = testing::TempDir() + "caisson-api-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    store_ = store::sqlite::Open(directory_ + "/store.db").value();
    admin = control::CreateKey(*store_, "alice", "", true, NowMilliseconds())->secret;
    owner = control::CreateKey(*store_, "alice", "", false, NowMilliseconds())->secret;
    other = control::CreateKey(*store_, "bob", "", false, NowMilliseconds())->secret;
    control::SandboxesOptions options;
    options.catalogue = [] {
      return std::vector<control::RootImage>{
          {.name = "devbox:1", .description = "a test", .image = "abc"}};
    };
    options.host_now = [] { return control::HostNow{1 << 20, 1 << 20}; };
    options.now = NowMilliseconds;
    options.answers = [](machine::Driver&, const std::string&) { return true; };
    options.warm_up = [](machine::Driver&, const store::Sandbox&, const control::Warm&,
                         const std::stop_token&) -> Result<std::string> { return "warm-1"; };
    options.warm_check = [](machine::Driver&, const store::Sandbox&) -> Result<void> { return {}; };
    sandboxes_ = std::make_unique<control::Sandboxes>(options, *store_, driver);
    templates_ = std::make_unique<control::Templates>(*sandboxes_);
    pools_ = std::make_unique<control::Pools>(*sandboxes_);
    context_.emplace(ApiOptions{.version = "test", .public_url = "http://test"}, *sandboxes_,
                     *templates_, *pools_, log_);
    server_ = http::Server::Start({.listeners = {{.address = "127.0.0.1:0"}},
                                   .error_answer = MakeErrorAnswer(),
                                   .served = MakeServedHook(*context_)},
                                  MakeRouter(*context_))
                  .value();
  }
  ~TestService() {
    server_->Drain(std::chrono::seconds(5));
    server_.reset();
    pools_.reset();
    templates_.reset();
    sandboxes_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  Answered Call(const std::string& key, const std::string& method, const std::string& path,
                const std::string& body = "") {
    auto client = http::Client::Make({.base_url = Url()}).value();
    http::ClientRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    if (!key.empty()) request.headers.Add("X-Api-Key", key);
    if (!body.empty()) request.headers.Add("Content-Type", "application/json");
    const auto answer = client.Send(request);
    EXPECT_TRUE(answer) << method << " " << path;
    if (!answer) return {};
    const std::string* code = answer->headers.Find("X-Error-Code");
    auto parsed = json::Read(answer->body);
    return {.status = answer->status,
            .body = parsed ? *std::move(parsed) : json::Value(),
            .code = code != nullptr ? *code : ""};
  }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  control::FakeDriver driver;
  std::string admin, owner, other;  // keys: alice's two, bob's

 private:
  std::string directory_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<control::Sandboxes> sandboxes_;
  std::unique_ptr<control::Templates> templates_;
  std::unique_ptr<control::Pools> pools_;
  Log log_{STDERR_FILENO};
  std::optional<Context> context_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace caisson::api
