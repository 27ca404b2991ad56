// SPDX-License-Identifier: Apache-2.0
// Names of sandboxes that share networks; the file is written by the real agent, which sees the
// host's files: it stays in its folder.
#include "control/neighbours.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "agent/agent_under_test.h"
#include "control/networks.h"
#include "control/test_sandboxes.h"

namespace caisson::control {
namespace {

TEST(WithNeighbours, KeepsWhatElseIsThere) {
  const std::string own = "127.0.0.1 localhost\n10.0.0.1 mine\n";
  const std::string one = WithNeighbours(own, "10.0.0.2 a.fc.local\n");
  EXPECT_EQ(one, own + "# caisson: networks\n10.0.0.2 a.fc.local\n# caisson: end\n");
  EXPECT_EQ(WithNeighbours(one + "10.9.9.9 later\n", "10.0.0.3 b.fc.local\n"),
            own + "10.9.9.9 later\n# caisson: networks\n10.0.0.3 b.fc.local\n# caisson: end\n");
  EXPECT_EQ(WithNeighbours(one, ""), own);
  EXPECT_EQ(WithNeighbours(one + one, ""), own + own);
  EXPECT_EQ(WithNeighbours("no newline", "x\n"),
            "no newline\n# caisson: networks\nx\n# caisson: end\n");
  EXPECT_EQ(WithNeighbours("", ""), "");
}

TEST(WithNeighbours, AnEndThatSomebodyTookAwayCostsNothingElse) {
  EXPECT_EQ(WithNeighbours("a\n# caisson: networks\nb\n", ""), "a\nb\n");
}

class NetworkedDriver final : public FakeDriver {
 public:
  Result<os::UniqueFd> Connect(const std::string&) override { return agent.Connect(); }
  agent::AgentUnderTest agent;
};

class NeighboursTest : public SandboxesTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "namespaces for the agent need root";
    networked_ = std::make_unique<NetworkedDriver>();
    // All machines of this driver are the one agent: whoever was told last has the file.
    options_.hosts_file = networked_->agent.folder() + "/hosts";
    options_.answers = [](machine::Driver&, const std::string&) { return true; };
    Restart({networked_.get()});
  }
  void TearDown() override { sandboxes_.reset(); }
  Result<NeighbourLines> Lines() {
    return store_->Read([](store::Rows& rows) {
      return ReadNeighbours(rows, std::optional<std::string>("alice"));
    });
  }
  std::string File() const {
    std::ostringstream text;
    text << std::ifstream(options_.hosts_file).rdbuf();
    return text.str();
  }
  Sandbox MakeIn(const std::string& name, const std::vector<std::string>& networks) {
    return Make({.shape = "s-1vcpu-256mb", .name = name, .networks = networks});
  }

  std::unique_ptr<NetworkedDriver> networked_;
};

TEST_F(NeighboursTest, ThoseWithANetworkInCommonKnowOneAnotherAndNobodyElse) {
  Networks networks(*sandboxes_);
  ASSERT_TRUE(networks.Create(alice_, "lab"));
  ASSERT_TRUE(networks.Create(alice_, "shop"));
  ASSERT_TRUE(networks.Create(bob_, "lab"));
  const Sandbox web = MakeIn("web", {"lab", "shop"});
  const Sandbox db = MakeIn("db", {"lab"});
  const Sandbox till = MakeIn("till", {"shop"});
  const Sandbox alone = MakeIn("alone", {});
  const auto lines = Lines();
  ASSERT_TRUE(lines);
  const auto line = [](const Sandbox& of, const std::vector<std::string>& names) {
    std::set<std::string> all = {of.name + ".fc.local", of.id + ".fc.local"};
    for (const std::string& network : names) all.insert(of.name + "." + network + ".fc.local");
    std::string text = of.ip;
    for (const std::string& name : all) text += " " + name;
    return text + "\n";
  };
  EXPECT_EQ(lines->at(db.id), line(web, {"lab"}) + line(db, {"lab"}));
  EXPECT_EQ(lines->at(till.id), line(web, {"shop"}) + line(till, {"shop"}));
  EXPECT_EQ(lines->at(web.id),
            line(web, {"lab", "shop"}) + line(db, {"lab"}) + line(till, {"shop"}));
  EXPECT_FALSE(lines->contains(alone.id));
}

TEST_F(NeighboursTest, AreWrittenWhenASandboxIsMadeJoinsAndLeaves) {
  std::ofstream(options_.hosts_file) << "127.0.0.1 localhost\n";
  Networks networks(*sandboxes_);
  ASSERT_TRUE(networks.Create(alice_, "lab"));
  const Sandbox web = MakeIn("web", {"lab"});
  EXPECT_NE(File().find(web.ip + " "), std::string::npos) << File();
  EXPECT_NE(File().find(" web.lab.fc.local"), std::string::npos) << File();
  ASSERT_TRUE(sandboxes_->Leave(alice_, web.id, "lab"));
  EXPECT_EQ(File(), "127.0.0.1 localhost\n");
  ASSERT_TRUE(sandboxes_->Join(alice_, web.id, "lab"));
  EXPECT_NE(File().find(" web.fc.local"), std::string::npos) << File();
  EXPECT_TRUE(File().starts_with("127.0.0.1 localhost\n"));
}

TEST_F(NeighboursTest, ThoseThatWereThereBeforeAreToldOfANewOneAndOfItsEnd) {
  Networks networks(*sandboxes_);
  ASSERT_TRUE(networks.Create(alice_, "lab"));
  const Sandbox first = MakeIn("first", {"lab"});
  const Sandbox second = MakeIn("second", {"lab"});
  // The second's end leaves the first alone with the file.
  ASSERT_TRUE(sandboxes_->Delete(alice_, second.id));
  const auto is_told = [&] {
    return File().find(" first.fc.local") != std::string::npos &&
           File().find("second") == std::string::npos;
  };
  for (int i = 0; i < 1000 && !is_told(); ++i) {
    TendFor(1);
    ::usleep(10'000);
  }
  EXPECT_TRUE(is_told()) << File();
}

}  // namespace
}  // namespace caisson::control
