// SPDX-License-Identifier: Apache-2.0
// With a program of Python's standard library as the host (test_program.py), which does what a host
// must not do, too.
#include "host/node_host.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "egress/address.h"
#include "errors/graph.h"
#include "errors/host.h"
#include "errors/nodes.h"
#include "json/writer.h"
#include "os/run_program.h"

namespace caisson::host {
namespace {

using std::chrono::milliseconds;

class Listener final : public Waiter {
 public:
  Result<void> Check() override {
    if (!stop) return {};
    return Fail(errors::kGraphCancelled, "stopped");
  }
  void Log(nodes::LogLevel, std::string_view message) override {
    const std::lock_guard lock(mutex);
    lines.append(message).append("\n");
  }

  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::string lines;
};

class NodeHostTest : public testing::Test {
 protected:
  void SetUp() override {
    if (os::FindProgram("python3").empty()) GTEST_SKIP() << "there is no python3";
    options_.connection.process.command = {"python3", "-u",
                                           CAISSON_SOURCE_DIR "/src/host/test_program.py"};
    options_.connection.process.environment = {std::string("PATH=") + std::getenv("PATH")};
    options_.connection.cancel_grace = milliseconds(300);
    options_.connection.log = [this](nodes::LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      said_.append(text).append("\n");
    };
    options_.all_types = true;
  }

  std::unique_ptr<NodeHost> Started() {
    auto host = NodeHost::Start(options_);
    if (!host && host.error().code == errors::kHostNoIsolation) {
      skip_ = host.error().message;
      return nullptr;
    }
    EXPECT_TRUE(host) << host.error().message;
    return host ? *std::move(host) : nullptr;
  }

  static Call CallOf(std::string type) {
    Call call;
    call.type = std::move(type);
    call.node = "n";
    call.config = json::Object{{"text", "the secret word"}};
    call.state = json::Object{{"inputs", json::Object{{"a", 1}}}};
    call.run_config = json::Object();
    return call;
  }

  // node_results.n as JSON text, or the code.
  std::string Run(NodeHost& host, const std::string& type) {
    auto given = host.Run(CallOf(type), listener_);
    if (!given) {
      message_ = given.error().status.message;
      error_type_ = given.error().error_type;
      return std::string(given.error().status.code.name);
    }
    const json::Value* entry = given->Find("node_results")->Find("n");
    return entry != nullptr ? json::Write(*entry).value_or("?") : "none";
  }

  std::string StartFailure() {
    const auto host = NodeHost::Start(options_);
    if (host) return "started";
    message_ = host.error().message;
    return std::string(host.error().code.name);
  }

  std::string Said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }

  NodeHostOptions options_;
  Listener listener_;
  std::string message_;
  std::string error_type_;
  std::string skip_;

 private:
  std::mutex mutex_;
  std::string said_;
};

#define START(host)                          \
  const auto host = Started();               \
  if (!skip_.empty()) GTEST_SKIP() << skip_; \
  ASSERT_NE(host, nullptr)

TEST_F(NodeHostTest, gives_a_node_everything_and_brings_its_result) {
  START(host);
  EXPECT_EQ(host->package(), "test 1");
  Call call = CallOf("Echo");
  call.values.Set("{{inputs.a}}", 1);
  call.instance = "run/n";
  const auto given = host->Run(call, listener_);
  ASSERT_TRUE(given) << given.error().status.message;
  EXPECT_EQ(json::WriteCanonical(*given).value_or(""),
            R"({"node_results":{"n":{"config":{"text":"the secret word"},"instance":"run/n",)"
            R"("run_config":{},"state":{"inputs":{"a":1}},"values":{"{{inputs.a}}":1}}}})");
}

TEST_F(NodeHostTest, has_no_network_no_capabilities_and_nothing_of_ours) {
  ::setenv("CAISSON_TEST_KEY", "must stay here", 1);
  START(host);
  const std::string around = Run(*host, "Around");
  EXPECT_TRUE(around.starts_with(R"({"interfaces":["lo"],"descriptors":[0,1,2,3],"capabilities":)"
                                 R"("00000000000000000000000000000000",)"))
      << around;
  EXPECT_EQ(around.find("CAISSON_TEST_KEY"), std::string::npos) << around;
}

// Sends back what it gets, on the loopback of this host.
class EchoServer {
 public:
  EchoServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
    port_ = ntohs(place.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~EchoServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  os::UniqueFd Connect() const {
    os::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port_);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) fd.Reset();
    return fd;
  }

 private:
  void Serve() {
    for (;;) {
      const os::UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      std::array<char, 100> buffer;
      for (ssize_t count = 0; (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0;) {
        (void)!::write(fd.get(), buffer.data(), static_cast<std::size_t>(count));
      }
    }
  }

  os::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(NodeHostTest, reaches_what_its_policy_opens_and_nothing_else) {
  const EchoServer server;
  std::vector<std::string> connected;
  WayOutOptions way_out;
  way_out.policy = *egress::Policy::Parse(
      {"api.example.com", "*.example.net:8443", "203.0.113.0/24"}, egress::HostNames::kEnforced);
  way_out.resolve = [](const std::string& name) -> std::vector<std::uint32_t> {
    if (name == "api.example.com") return {0x08080808};
    if (name == "in.example.net") return {0x7f000001, 0x0a000001};  // loopback, private
    return {};
  };
  way_out.connect = [&](std::uint32_t address, std::uint16_t port) {
    connected.push_back(egress::FormatAddress(address) + ":" + std::to_string(port));
    return server.Connect();
  };
  std::string refused;
  way_out.log = [&](std::string_view text) { refused.append(text).append("\n"); };
  options_.connection.way_out = way_out;
  START(host);
  const auto reach = [&](const char* target) {
    Call call = CallOf("Reach");
    call.config = json::Object{{"text", target}};
    const auto given = host->Run(call, listener_);
    return given ? json::Write(*given->Find("node_results")->Find("n")).value_or("?")
                 : given.error().status.message;
  };
  const std::string rest =
      R"(,"direct":"Network is unreachable","variable":"http://127.0.0.1:3128"})";
  const std::string open = R"({"proxied":["HTTP/1.1 200 Connection established","hello"])" + rest;
  const std::string closed = R"({"proxied":["HTTP/1.1 403 Forbidden",""])" + rest;
  EXPECT_EQ(reach("api.example.com:443"), open);
  EXPECT_EQ(reach("203.0.113.9:22"), open);
  EXPECT_EQ(connected, (std::vector<std::string>{"8.8.8.8:443", "203.0.113.9:22"}));
  for (const char* target :
       {"api.example.com:22", "other.example.com:443", "in.example.net:8443", "8.8.8.8:443",
        "127.0.0.1:80", "169.254.169.254:80", "[::1]:443", "api.example.com"}) {
    EXPECT_EQ(reach(target), closed) << target;
  }
  EXPECT_EQ(reach("nowhere.example.net:8443"),
            R"({"proxied":["HTTP/1.1 502 Bad Gateway",""])" + rest);
  EXPECT_EQ(connected.size(), 2u);
  EXPECT_NE(refused.find("no connection to in.example.net:8443: the name leads to addresses that "
                         "are closed to everybody\n"),
            std::string::npos)
      << refused;
}

TEST_F(NodeHostTest, reaches_nothing_without_a_policy) {
  START(host);
  Call call = CallOf("Reach");
  call.config = json::Object{{"text", "api.example.com:443"}};
  const auto given = host->Run(call, listener_);
  ASSERT_TRUE(given) << given.error().status.message;
  EXPECT_EQ(json::Write(*given->Find("node_results")->Find("n")).value_or("?"),
            R"({"proxied":["ConnectionRefusedError",""],"direct":"Network is unreachable",)"
            R"("variable":null})");
}

TEST_F(NodeHostTest, tells_what_a_node_raised) {
  START(host);
  EXPECT_EQ(Run(*host, "Raise"), errors::kNodesFailed.name);
  EXPECT_EQ(message_, "'missing'");
  EXPECT_EQ(error_type_, "KeyError");
  EXPECT_EQ(Run(*host, "NotJson"), errors::kHostNotJson.name);
  EXPECT_EQ(message_, "$.a[3]: a set has no JSON form");
}

TEST_F(NodeHostTest, checks_a_configuration) {
  START(host);
  EXPECT_TRUE(host->Check("Echo", "n", json::Object()));
  const auto checked = host->Check("Echo", "n", json::Object{{"bad", true}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code.name, errors::kNodesConfig.name);
  EXPECT_EQ(checked.error().message, "$.bad is bad");
}

TEST_F(NodeHostTest, hands_lines_to_their_call_and_shows_no_secret_in_the_others) {
  START(host);
  Call call = CallOf("Say");
  call.secrets = {{"secret", "[[key]]"}};
  ASSERT_TRUE(host->Run(call, listener_));
  EXPECT_EQ(listener_.lines, "for the call\n");
  EXPECT_NE(Said().find("for nobody: the [[key]] word\n"), std::string::npos) << Said();
  EXPECT_NE(Said().find("printed: the [[key]] word\n"), std::string::npos) << Said();
}

TEST_F(NodeHostTest, serves_what_it_is_told_to) {
  options_.all_types = false;
  options_.types = {"Echo"};
  START(host);
  EXPECT_NE(host->Find("Echo"), nullptr);
  EXPECT_EQ(host->Find("Slow"), nullptr);
  EXPECT_EQ(Run(*host, "Slow"), errors::kHostUnknownType.name);
  options_.types = {"Echo", "Missing"};
  EXPECT_EQ(StartFailure(), errors::kHostUnknownType.name);
  EXPECT_NE(message_.find("'Missing'"), std::string::npos);
  options_.types = {"Secret"};
  EXPECT_EQ(StartFailure(), errors::kHostRestrictedType.name);
}

TEST_F(NodeHostTest, serves_no_restricted_type_as_one_of_all) {
  START(host);
  EXPECT_EQ(host->Find("Secret"), nullptr);
}

TEST_F(NodeHostTest, says_why_it_cannot_start) {
  START(host);
  auto& command = options_.connection.process.command;
  command.emplace_back("version");
  EXPECT_EQ(StartFailure(), errors::kHostVersion.name);
  command.back() = "pong_first";
  EXPECT_EQ(StartFailure(), errors::kHostProtocol.name);
  command.back() = "ends";
  EXPECT_EQ(StartFailure(), errors::kHostUnavailable.name);
  EXPECT_NE(message_.find("exited with code 1"), std::string::npos) << message_;
  EXPECT_NE(message_.find("no library"), std::string::npos) << message_;
  command.back() = "no_hello";
  options_.connection.start_timeout = milliseconds(300);
  EXPECT_EQ(StartFailure(), errors::kHostUnavailable.name);
  EXPECT_NE(message_.find("300 ms"), std::string::npos) << message_;
  command = {"no-such-program"};
  EXPECT_EQ(StartFailure(), errors::kHostUnavailable.name);
  command = {"/dev/null"};
  EXPECT_EQ(StartFailure(), errors::kHostUnavailable.name);
}

TEST_F(NodeHostTest, names_each_way_to_lie) {
  options_.max_starts = 100;
  START(host);
  EXPECT_EQ(Run(*host, "Garbage"), errors::kHostProtocol.name);
  EXPECT_EQ(Run(*host, "Odd"), errors::kHostProtocol.name);
  EXPECT_EQ(Run(*host, "HelloAgain"), errors::kHostProtocol.name);
  EXPECT_EQ(Run(*host, "WrongId"), errors::kHostUnknownCall.name);
  EXPECT_EQ(Run(*host, "LogForNobody"), errors::kHostUnknownCall.name);
  EXPECT_EQ(Run(*host, "TooLarge"), errors::kHostTooLarge.name);
  EXPECT_EQ(Run(*host, "Twice"), "1");  // the second one ends it
  EXPECT_NE(Run(*host, "Pid"), "");
}

TEST_F(NodeHostTest, is_started_again_when_it_has_ended) {
  START(host);
  const std::string first = Run(*host, "Pid");
  EXPECT_EQ(Run(*host, "Die"), errors::kHostLost.name);
  EXPECT_NE(message_.find("exited with code 3"), std::string::npos) << message_;
  EXPECT_NE(message_.find("the last words"), std::string::npos) << message_;
  const std::string second = Run(*host, "Pid");
  EXPECT_NE(first, second);
  EXPECT_EQ(second.find("host."), std::string::npos) << second;
}

TEST_F(NodeHostTest, is_not_started_again_and_again) {
  options_.max_starts = 3;
  START(host);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(*host, "Die"), errors::kHostLost.name);
  EXPECT_EQ(Run(*host, "Pid"), errors::kHostGaveUp.name);
  EXPECT_NE(message_.find("3 times"), std::string::npos) << message_;
}

TEST_F(NodeHostTest, ends_a_call_that_is_cancelled) {
  START(host);
  const std::string pid = Run(*host, "Pid");
  std::thread stopper([this] {
    std::this_thread::sleep_for(milliseconds(100));
    listener_.stop = true;
  });
  EXPECT_EQ(Run(*host, "Slow"), errors::kGraphCancelled.name);
  stopper.join();
  listener_.stop = false;
  EXPECT_EQ(Run(*host, "Pid"), pid);  // it goes on
}

TEST_F(NodeHostTest, ends_a_call_that_takes_too_long) {
  options_.connection.call_timeout = milliseconds(200);
  START(host);
  EXPECT_EQ(Run(*host, "Slow"), errors::kHostTimedOut.name);
}

TEST_F(NodeHostTest, is_killed_when_it_does_not_end_a_cancelled_call) {
  START(host);
  const std::string pid = Run(*host, "Pid");
  listener_.stop = true;
  EXPECT_EQ(Run(*host, "Stubborn"), errors::kGraphCancelled.name);
  listener_.stop = false;
  EXPECT_NE(Run(*host, "Pid"), pid);
}

TEST_F(NodeHostTest, is_killed_when_it_gives_no_sign_of_life) {
  options_.connection.ping_after = milliseconds(100);
  options_.connection.ping_patience = milliseconds(400);
  START(host);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Run(*host, "Freeze"), errors::kHostHung.name);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5'000));
}

TEST_F(NodeHostTest, lives_while_it_answers_pings) {
  options_.connection.ping_after = milliseconds(50);
  options_.connection.ping_patience = milliseconds(1'000);
  options_.connection.call_timeout = milliseconds(1'500);
  START(host);
  const std::string pid = Run(*host, "Pid");
  EXPECT_EQ(Run(*host, "Slow"), errors::kHostTimedOut.name);
  EXPECT_EQ(Run(*host, "Pid"), pid);
}

TEST_F(NodeHostTest, ends_every_call_when_it_ends) {
  START(host);
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Listener listener;
      const auto given = host->Run(CallOf("Slow"), listener);
      if (!given && given.error().status.code == errors::kHostLost) ++lost;
    });
  }
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(Run(*host, "Die"), errors::kHostLost.name);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 4);
}

TEST_F(NodeHostTest, runs_many_calls_at_once) {
  START(host);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) {
        Listener listener;
        Call call = CallOf("Echo");
        call.config = json::Object{{"i", i}, {"k", k}};
        const auto given = host->Run(call, listener);
        if (given && *given->Find("node_results")->Find("n")->Find("config") == call.config) {
          ++right;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST_F(NodeHostTest, refuses_to_send_more_than_a_message_may_have) {
  options_.connection.max_frame_bytes = 64u << 10;
  START(host);
  Call call = CallOf("Echo");
  call.config = json::Object{{"text", std::string(100'000, 'x')}};
  const auto given = host->Run(call, listener_);
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().status.code.name, errors::kHostTooLarge.name);
  EXPECT_NE(Run(*host, "Pid"), "");
}

}  // namespace
}  // namespace caisson::host
