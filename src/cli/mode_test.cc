// SPDX-License-Identifier: Apache-2.0
#include "cli/mode.h"

#include <gtest/gtest.h>

#include <map>

#include "errors/cli.h"

namespace caisson::cli {
namespace {

Result<ModeChoice> Choose(const std::optional<std::string>& option,
                          const std::map<std::string, std::string>& variables = {}) {
  return ChooseMode(option, [&](const char* name) -> const char* {
    const auto entry = variables.find(name);
    return entry == variables.end() ? nullptr : entry->second.c_str();
  });
}

TEST(Mode, UnsetBehavesAsRestrictedAndSaysSo) {
  auto choice = Choose(std::nullopt);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->mode, Mode::kRestricted);
  EXPECT_FALSE(choice->was_set);
  EXPECT_NE(StartupLine(*choice, {}).find("not set"), std::string_view::npos);
}

TEST(Mode, RestrictedIsTrimmedAndCaseDoesNotMatter) {
  for (const char* text : {"restricted", "Restricted ", " RESTRICTED\n"}) {
    auto choice = Choose(text);
    ASSERT_TRUE(choice) << text;
    EXPECT_TRUE(choice->was_set);
  }
}

TEST(Mode, UnrestrictedIsRefusedWithAnExplanationWhereverItComesFrom) {
  for (const auto& choice :
       {Choose("unrestricted"),
        Choose(std::nullopt, {{"CAISSON_WORKFLOW_DEFINITION_MODE", "Unrestricted"}}),
        Choose(std::nullopt, {{"ORCHEO_WORKFLOW_DEFINITION_MODE", "unrestricted"}})}) {
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, errors::kCliModeUnavailable);
    EXPECT_NE(choice.error().message.find("does not exist yet"), std::string::npos);
  }
}

TEST(Mode, OptionGoesBeforeOurVariableAndOursBeforeThePeers) {
  EXPECT_TRUE(Choose("restricted", {{"CAISSON_WORKFLOW_DEFINITION_MODE", "unrestricted"}}));
  EXPECT_TRUE(Choose(std::nullopt, {{"CAISSON_WORKFLOW_DEFINITION_MODE", "restricted"},
                                    {"ORCHEO_WORKFLOW_DEFINITION_MODE", "unrestricted"}}));
}

TEST(Mode, AnythingElseIsRefusedInThePeersWords) {
  auto choice = Choose(std::nullopt, {{"ORCHEO_WORKFLOW_DEFINITION_MODE", "strict"}});
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message,
            "ORCHEO_WORKFLOW_DEFINITION_MODE must be 'restricted' or 'unrestricted'.");
  EXPECT_FALSE(Choose(std::nullopt, {{"CAISSON_WORKFLOW_DEFINITION_MODE", ""}}));
}

}  // namespace
}  // namespace caisson::cli
