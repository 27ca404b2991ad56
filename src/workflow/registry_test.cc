// SPDX-License-Identifier: Apache-2.0
#include "workflow/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "json/reader.h"

namespace caisson::workflow {
namespace {

std::vector<std::string> Warnings(std::string_view type, std::string_view config) {
  std::vector<Diagnostic> found;
  const auto value = json::Read(config);
  CheckConfig(*FindNodeType(type), value->as_object(), {.type = {3, 1, 3, 9}, .fields = {}}, "n",
              found);
  std::vector<std::string> texts;
  for (const Diagnostic& each : found) {
    EXPECT_EQ(each.severity, Severity::kWarning);
    EXPECT_EQ(each.span.line, 3u);
    texts.push_back(each.message + " / " + each.hint);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Registry, KnowsTheTypesOfThePeer) {
  EXPECT_EQ(NodeTypes().size(), 141u);
  EXPECT_EQ(std::ranges::count_if(NodeTypes(), &NodeType::restricted), 15);
  EXPECT_TRUE(std::ranges::is_sorted(NodeTypes(), {}, &NodeType::name));
  ASSERT_NE(FindNodeType("SetVariableNode"), nullptr);
  EXPECT_EQ(FindNodeType("SetVariable"), nullptr);
  EXPECT_EQ(FindNodeType(""), nullptr);
}

TEST(Registry, PutsARefusalAsThePeerDoes) {
  EXPECT_EQ(NodePolicyRefusal(*FindNodeType("PostgresNode"), "db"),
            "node 'db': node type 'PostgresNode' is marked restricted for untrusted authors. This "
            "capability is disabled in restricted mode because it cannot be isolated from other "
            "tenants.");
  EXPECT_EQ(NodePolicyRefusal(*FindNodeType("AgentNode"), "a"), "");
}

TEST(Registry, GuessesWhatWasMeant) {
  EXPECT_EQ(NodeTypeHint("SetVaraibleNode"), "did you mean 'SetVariableNode'?");
  EXPECT_EQ(NodeTypeHint("setvariablenode"), "did you mean 'SetVariableNode'?");
  EXPECT_EQ(NodeTypeHint("RSS"), "did you mean 'RSSNode'?");
  EXPECT_EQ(NodeTypeHint("Frobnicate"), "");
  EXPECT_EQ(NodeTypeHint(std::string(100'000, 'x')), "");
  const std::string_view ids[] = {"a", "grade"};
  EXPECT_EQ(Nearest("b", ids), "") << "one letter is near to everything";
  EXPECT_EQ(Nearest("garde", ids), "grade");
}

TEST(Registry, WarnsOfUnknownFields) {
  EXPECT_EQ(
      Warnings("SetVariableNode", R"({"varaibles":{}})"),
      Texts{"node 'n': SetVariableNode has no field 'varaibles'; it is ignored / did you mean "
            "'variables'?"});
}

TEST(Registry, WarnsOfMissingFields) {
  EXPECT_EQ(Warnings("AgentNode", "{}"),
            Texts{"node 'n': AgentNode requires the field 'ai_model' / add ai_model=... (str)"});
}

TEST(Registry, WarnsOfWrongTypes) {
  EXPECT_EQ(
      Warnings("AgentNode", R"({"ai_model":3})"),
      Texts{"node 'n': field 'ai_model' of AgentNode takes str, not an int / write a value of "
            "that type"});
  EXPECT_EQ(
      Warnings("AgentNode", R"({"ai_model":"m","history_namespace":["a",{"b":1}]})"),
      Texts{"node 'n': field 'history_namespace[1]' of AgentNode does not fit list[str] / write "
            "a value of that type"});
  EXPECT_EQ(
      Warnings("AgentensorNode", R"({"mode":"evalute"})"),
      Texts{"node 'n': field 'mode' of AgentensorNode takes Literal['evaluate', 'train'], not "
            "'evalute' / write a value of that type"});
  EXPECT_EQ(
      Warnings("AgentensorNode", R"({"max_cases":0})"),
      Texts{"node 'n': field 'max_cases' of AgentensorNode must be at least 1 / write a value "
            "that is at least 1"});
}

TEST(Registry, ReadsValuesAsTheModelLibraryDoes) {
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"m","max_messages":"5"})"), Texts{});
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"m","max_messages":5.0})"), Texts{});
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"m","max_messages":5.5})").size(), 1u);
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"m","max_messages":null})").size(), 1u);
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"m","use_graph_chat_history":"yes"})"), Texts{});
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"m","use_graph_chat_history":2})").size(), 1u);
}

TEST(Registry, LetsTemplatesAndPlaceholdersPass) {
  EXPECT_EQ(Warnings("AgentNode", R"({"ai_model":"{{inputs.model}}","max_messages":"{{a.b}}",)"
                                  R"("mcp_servers":"[[servers]]"})"),
            Texts{});
}

TEST(Registry, FindsModelsByModuleAndName) {
  const ModelResult direct = FindModel("orcheo.nodes.ai.agent", "AgentNode");
  ASSERT_EQ(direct.outcome, ModelLookup::kModel);
  const ModelResult exported = FindModel("orcheo.nodes.ai", "AgentNode");
  ASSERT_EQ(exported.outcome, ModelLookup::kModel);
  EXPECT_EQ(direct.model->schema_json, exported.model->schema_json);
  EXPECT_TRUE(json::Read(direct.model->schema_json));
  EXPECT_EQ(FindModel("orcheo.nodes.ai", "Nothing").outcome, ModelLookup::kNotAModel);
  EXPECT_EQ(FindModel("orcheo.nothing", "AgentNode").outcome, ModelLookup::kNoSuchModule);
  EXPECT_EQ(FindModel("os", "system").outcome, ModelLookup::kNoSuchModule);
  EXPECT_EQ(FindModel("pydantic", "BaseModel").outcome, ModelLookup::kNoSuchModule);
}

}  // namespace
}  // namespace caisson::workflow
