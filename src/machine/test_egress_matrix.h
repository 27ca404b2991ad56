// SPDX-License-Identifier: Apache-2.0
// The egress matrix (egress/test_matrix.h) from inside machines of every driver, and that nothing
// opens when the gate, its resolver or the packet filter fails. A driver's test program says
// INSTANTIATE_TEST_SUITE_P(Jail, EgressMatrix, testing::Values(...), NameOfDriver), and so of
// EgressFaults, which takes longer.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "machine/test_networked.h"

namespace caisson::machine {

class EgressMatrix : public Networked {
 protected:
  egress::RunPython In(const std::string& id) {
    return [this, id](const std::string& program) { return RunProbe(id, program); };
  }
  bool IsDeaf() const { return driver_->capabilities().isolation_class == "user-space-kernel"; }
  // Whether the log says so, soon: the gate tells what it counts a few times a second.
  template <typename Said>
  bool Told(const std::string& id, Said said) {
    for (int i = 0; i < 100; ++i) {
      const auto log = driver_->ReadNetworkLog(id, 0);
      if (log && said(*log)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  bool Denied(const std::string& id, const egress::MatrixDenial& wanted) {
    return Told(id, [&](const egress::NetworkLog& log) {
      return std::ranges::any_of(
          log.denials, [&](const egress::Denial& denial) { return egress::Is(denial, wanted); });
    });
  }
};

TEST_P(EgressMatrix, UnderAStarAllThatIsPublicIsOpen) {
  Make("one", egress::Policy::PublicOnly());
  egress::ExpectMatrix(In("one"), egress::Under::kStar, IsDeaf());
}

TEST_P(EgressMatrix, RulesOpenWhatTheySayAndNothingElseAndWhatWasDeniedCanBeRead) {
  Make("one", Rules(egress::kMatrixRules));
  egress::ExpectMatrix(In("one"), egress::Under::kRules, IsDeaf());
  for (const egress::MatrixDenial& denial : egress::kMatrixDenials) {
    EXPECT_TRUE(Denied("one", denial)) << denial.kind << " " << denial.about;
  }
  for (const std::string& asked : names_->resolver().Asked()) {
    EXPECT_EQ(asked.find("evil"), std::string::npos) << asked;
  }
  const auto log = driver_->ReadNetworkLog("one", 0);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_TRUE(driver_->ReadNetworkLog("one", log->last)->denials.empty());
  EXPECT_EQ(log->rules.at(0).rule, "good.test");
  EXPECT_TRUE(Told("one", [](const egress::NetworkLog& told) {
    return told.rules.at(0).connections > 0 && told.rules.at(0).answers > 0;
  }));
}

class EgressFaults : public Networked {
 protected:
  // The gate of the helper, and what stands around it.
  std::vector<pid_t> Gates() const {
    std::vector<pid_t> gates;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(process.path().filename().c_str());
      if (pid <= 0 || FirstLine(pid, "cmdline").find("egress-gate") == std::string::npos) continue;
      for (pid_t parent = ParentOf(pid); parent > 1; parent = ParentOf(parent)) {
        if (parent == helper_->pid()) gates.push_back(pid);
      }
    }
    return gates;
  }
  static std::string FirstLine(pid_t pid, const char* file) {
    std::ifstream stream("/proc/" + std::to_string(pid) + "/" + file);
    std::string line;
    std::getline(stream, line);
    return line;
  }
  static pid_t ParentOf(pid_t pid) {
    std::ifstream stream("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
    }
    return 0;
  }
};

TEST_P(EgressFaults, ANameEndsWithTheLifeOfItsAnswer) {
  Make("one", Rules({"*.good.test"}));
  const std::string fixed = "fetch('short.good.test', 443, '203.0.113.77')";
  Expect("one", {{fixed, "refused"},
                 {"fetch('short.good.test', 443)", "200"},
                 {fixed, "200"},  // two seconds, which are made five
                 {"time.sleep(6)", "None"},
                 {fixed, "refused"},
                 {"fetch('short.good.test', 443)", "200"}});
}

TEST_P(EgressFaults, AResolverThatIsSilentOrLiesOpensNothing) {
  Make("one", Rules({"good.test"}));
  using Mood = egress::TableResolver::Mood;
  for (const Mood mood : {Mood::kSilent, Mood::kBroken, Mood::kOtherQuestion}) {
    names_->resolver().Be(mood);
    Expect("one",
           {{"ask('good.test', '198.51.100.53', 1, 15)", "SERVFAIL"},
            {"fetch('good.test', 443, '203.0.113.10')", "refused"},
            {"fetch('evil.test', 443)", "no name"}},
           "mood " + std::to_string(static_cast<int>(mood)));
  }
  names_->resolver().Be(Mood::kHonest);
  Expect("one", {{"fetch('good.test', 443)", "200"}});
}

TEST_P(EgressFaults, AGateThatIsKilledOrSilentOpensNothingAndComesBack) {
  Make("one", Rules({"good.test", "203.0.113.77:8080"}));
  Expect("one", {{"fetch('good.test', 443)", "200"}});
  Watch("one", {"203.0.113.20:443", "203.0.113.20:80", "203.0.113.10:8080", "10.9.9.9:80"});
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const std::vector<pid_t> gates = Gates();
    ASSERT_FALSE(gates.empty());
    for (const pid_t gate : gates) ASSERT_EQ(::kill(gate, signal), 0);
    Expect("one",
           {{"fetch('x', 8080, '203.0.113.77')", "200"},  // needs no gate
            {"fetch('evil.test', 443, '203.0.113.20')", "refused"}},
           "without a gate");
    Expect("one",
           {{"any(fetch('good.test', 443) == '200' for _ in range(20))", "True"},
            {"fetch('evil.test', 443)", "no name"},
            {"fetch('evil.test', 443, '203.0.113.10')", "closed"}},
           "with another gate");
  }
  EXPECT_EQ(Reached("one"), std::set<std::string>());
}

TEST_P(EgressFaults, APacketFilterThatFailsOpensNothing) {
  Make("one", Rules({"203.0.113.10:80", "good.test"}));
  Watch("one", {"203.0.113.10:80", "203.0.113.20:80", "10.9.9.9:80", "169.254.169.254:80",
                "198.51.100.1:8080"});
  for (const char* fault : {"echo 'Error: no' >&2; exit 1", "exit 0", "kill -9 $$"}) {
    helper_->Kill();
    std::ofstream(nft_fault()) << fault << "\n";
    egress::Shell("nft flush ruleset");  // of the host: others may do that
    helper_->Start();
    EXPECT_NE(helper_->AwaitEnd(), 0) << "it serves without a packet filter: " << fault;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::filesystem::remove(nft_fault());
    helper_->Start();
    Expect("one",
           {{"fetch('x', 80, '203.0.113.10')", "200"},
            {"fetch('good.test', 443)", "200"},
            {"fetch('x', 80, '203.0.113.20')", "refused"}},
           fault);
  }
  EXPECT_EQ(Reached("one"), (std::set<std::string>{"one 203.0.113.10:80"}));
}

// Frames as a guest makes them itself, where it may: "sent", else "no such socket".
inline constexpr const char* kFrames = R"(
def frame(protocol, packet):
    try: s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    except OSError: return 'no such socket'
    s.bind(('eth0', 0))
    to = next(line.split()[3] for line in open('/proc/net/arp') if line.split()[-1] == 'eth0')
    s.send(bytes.fromhex(to.replace(':', '')) + s.getsockname()[4] + struct.pack('>H', protocol) + packet)
    return 'sent'
def datagram(sum): return struct.pack('>4H', 1000, 9000, 13, sum) + b'hello'
def total(data):
    data += bytes(len(data) % 2)
    sum_ = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while sum_ >> 16: sum_ = (sum_ & 65535) + (sum_ >> 16)
    return 65535 - sum_
def raw(source, to='203.0.113.10'):
    def head(sum): return struct.pack('>BBHHHBBH4s4s', 69, 0, 33, 1, 0, 64, 17, sum, socket.inet_aton(source),
                                      socket.inet_aton(to))
    return frame(0x800, head(total(head(0))) + datagram(0))
def raw6(to):
    ends = socket.inet_pton(socket.AF_INET6, '2001:db8:5::99') + socket.inet_pton(socket.AF_INET6, to)
    return frame(0x86dd, struct.pack('>IHBB', 6 << 28, 13, 17, 64) + ends +
                 datagram(total(ends + struct.pack('>II', 13, 17) + datagram(0))))
)";

TEST_P(EgressFaults, NoPacketOfAForeignSenderOrOfIpv6LeavesAMachine) {
  const Machine one = Make("one", egress::Policy::PublicOnly());
  egress::EchoServer& server = world_->Server(SOCK_DGRAM, 9000);
  const auto ipv6_heard = [this] {
    return world_->InInternet([] { return egress::ShellOutput("grep Udp6 /proc/net/snmp6"); });
  };
  const auto frame = [&](const std::string& call) {
    const auto program = egress::ProbeProgram({"udp('203.0.113.10', 9000)", call}, kFrames);
    const auto answers = egress::AnswersOf(RunProbe("one", program), 2);
    EXPECT_EQ(answers[0].said, "open") << "and it knows whom to send to";
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return answers[1].said;
  };
  const auto send = [&](const std::string& source) {
    const int before = server.datagrams();
    const std::string said = frame("raw('" + source + "')");
    return said == "sent" ? std::to_string(server.datagrams() - before - 1) : said;
  };
  const std::string as_itself = send(one.ip);
  if (as_itself == "no such socket") return;
  EXPECT_EQ(as_itself, "1");
  for (const char* source : {"10.231.200.7", "8.8.8.8", "198.51.100.1", "127.0.0.1"}) {
    EXPECT_EQ(send(source), "0") << source;
  }
  const std::string before = ipv6_heard();
  EXPECT_EQ(frame("raw6('2001:db8::10')"), "sent");
  EXPECT_EQ(ipv6_heard(), before);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EgressMatrix);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EgressFaults);

}  // namespace caisson::machine
