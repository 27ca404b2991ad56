// SPDX-License-Identifier: Apache-2.0
#include "graph/template.h"

#include <gtest/gtest.h>

#include "errors/graph.h"
#include "errors/template.h"
#include "graph/test_support.h"

namespace caisson::graph {
namespace {

using nodes::StateField;

nodes::State SpecState() {
  nodes::State state;
  state.Set(StateField::kMessages, json::Array());
  state.Set(StateField::kInputs, J("{'n': 3, 'b': true, 'f': 1.5, 'none': null, 'name': 'Bob',"
                                   "'cred': '[[token]]', 'tmpl': '{{inputs.n}}', 'k': {'x': 1}}"));
  state.Set(StateField::kNodeResults,
            J("{'a': {'x': 5, 'd': {'k': [1, 2]}, 's': 'str'}, 'inputs': 'hidden', 'nul': null}"));
  return state;
}

struct Case {
  const char* text;
  const char* expected;  // JSON
};

class SpecTable : public testing::TestWithParam<Case> {};

TEST_P(SpecTable, resolves_as_the_peer_does) {
  const nodes::State state = SpecState();
  const Template parsed = Template::Parse(json::Value(GetParam().text), Credentials::kResolve);
  const auto value = parsed.Resolve({state, nullptr, "n", nullptr});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(Text(*value), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Section7, SpecTable,
    testing::Values(
        Case{"{{a.x}}", "5"}, Case{"val={{ a.x }}!", "\"val=5!\""},
        Case{"x{{a.d}}", "\"x{{a.d}}\""}, Case{"{{a.d.k}}", "[1,2]"},
        Case{"{{a.x}}{{a.s}}", "\"5str\""},
        Case{"{{inputs.n}} {{inputs.b}} {{inputs.f}}", "\"3 True 1.5\""},
        Case{"{{inputs.none}}", "null"}, Case{"t {{inputs.none}}", "\"t {{inputs.none}}\""},
        Case{"{{{a.x}}}", "\"{5}\""}, Case{"{{}}", "\"{{}}\""},
        Case{"{{ inputs . name }}", "\"{{ inputs . name }}\""},
        Case{"{{a.d.k.0}}", "\"{{a.d.k.0}}\""}, Case{"  {{inputs.name}}\n", "\"Bob\""},
        Case{"{{inputs}}",
             "{\"n\":3,\"b\":true,\"f\":1.5,\"none\":null,\"name\":\"Bob\",\"cred\":"
             "\"[[token]]\",\"tmpl\":\"{{inputs.n}}\",\"k\":{\"x\":1}}"},
        Case{"{{nul}}", "\"{{nul}}\""}, Case{"{{node_results.nul}}", "null"},
        // What a template yields is data, whatever it reads like.
        Case{"{{inputs.cred}}", "\"[[token]]\""}, Case{"{{inputs.tmpl}}", "\"{{inputs.n}}\""},
        Case{"<{{inputs.cred}}{{inputs.tmpl}}>", "\"<[[token]]{{inputs.n}}>\""},
        Case{"[[ ]]", "\"[[ ]]\""}, Case{"[[a\nb]]", "\"[[a\\nb]]\""}, Case{"[x]", "\"[x]\""}));

class Vault final : public CredentialResolver {
 public:
  Result<json::Value> Resolve(const CredentialReference& reference) override {
    if (reference.identifier == "object") return J("{'a': 1}");
    std::string text = reference.identifier;
    for (const std::string& part : reference.path) text += "/" + part;
    return json::Value(text);
  }
};

std::string WithVault(const char* text, Credentials credentials = Credentials::kResolve) {
  const nodes::State state = SpecState();
  Vault vault;
  const auto value =
      Template::Parse(json::Value(text), credentials).Resolve({state, &vault, "n", nullptr});
  return value ? Text(*value) : std::string(value.error().code.name);
}

TEST(Credentials, are_resolved_whole_and_within_longer_text) {
  EXPECT_EQ(WithVault("[[token]]"), "\"token/secret\"");
  EXPECT_EQ(WithVault("  [[ token # oauth . access_token ]] "), "\"token/oauth/access_token\"");
  EXPECT_EQ(WithVault("Bearer [[token]]"), "\"Bearer token/secret\"");
  EXPECT_EQ(WithVault("[[a]]:[[b]]"), "\"a/secret:b/secret\"");
  EXPECT_EQ(WithVault("[[a]] for {{inputs.name}}"), "\"a/secret for Bob\"");
  EXPECT_EQ(WithVault("[[object]]"), "{\"a\":1}");
}

TEST(Credentials, that_are_no_text_cannot_stand_within_text) {
  EXPECT_EQ(WithVault("x [[object]]"), "graph.credential_path");
}

TEST(Credentials, are_plain_text_in_the_configuration_of_code_nodes) {
  EXPECT_EQ(WithVault("[[token]]", Credentials::kPlainText), "\"[[token]]\"");
  EXPECT_EQ(WithVault("x [[token]] {{inputs.n}}", Credentials::kPlainText), "\"x [[token]] 3\"");
}

TEST(Credentials, need_a_resolver) {
  const nodes::State state;
  const auto value = Template::Parse(json::Value("[[token]]"), Credentials::kResolve)
                         .Resolve({state, nullptr, "call", nullptr});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, errors::kGraphCredentialUnavailable);
  EXPECT_EQ(value.error().message,
            "Credential placeholders require an active resolver. Runnable 'call' attempted to "
            "access 'token'");
}

TEST(StaticCredentials, give_secrets_and_nothing_else) {
  StaticCredentials vault;
  vault.Add("token", "s3cret");
  EXPECT_EQ(Text(*vault.Resolve({"token", {"secret"}})), "\"s3cret\"");
  EXPECT_EQ(vault.Resolve({"other", {"secret"}}).error().message,
            "Credential 'other' was not found in the configured vault");
  EXPECT_EQ(vault.Resolve({"token", {"secret", "x"}}).error().code, errors::kGraphCredentialPath);
  EXPECT_EQ(vault.Resolve({"token", {"oauth"}}).error().code, errors::kGraphCredentialPath);
  EXPECT_EQ(vault.Resolve({"token", {"other"}}).error().message,
            "Credential placeholder requested unsupported payload segment 'other'");
}

TEST(Template, leaves_keys_alone_and_resolves_values_at_any_depth) {
  const nodes::State state = SpecState();
  const Template parsed = Template::Parse(
      J("{'{{a.x}}': '{{a.x}}', 'l': [1, ['{{a.s}}', {'m': 'n={{inputs.n}}'}]], 'k': 'plain'}"),
      Credentials::kResolve);
  EXPECT_EQ(Text(*parsed.Resolve({state, nullptr, "n", nullptr})),
            "{\"{{a.x}}\":5,\"l\":[1,[\"str\",{\"m\":\"n=3\"}]],\"k\":\"plain\"}");
}

TEST(Template, without_placeholders_is_static) {
  EXPECT_TRUE(
      Template::Parse(J("{'a': [1, 'x', {'b': '{ {'}]}"), Credentials::kResolve).is_static());
}

TEST(Template, warns_where_a_path_ends) {
  const nodes::State state = SpecState();
  std::string said;
  const std::function<void(std::string_view)> warn = [&](std::string_view text) { said = text; };
  const Template parsed = Template::Parse(json::Value("x {{ a.d.zz.q }}"), Credentials::kResolve);
  EXPECT_EQ(Text(*parsed.Resolve({state, nullptr, "node", &warn})), "\"x {{ a.d.zz.q }}\"");
  EXPECT_EQ(said,
            "Runnable node could not resolve template '{{ a.d.zz.q }}' at segment 'zz'; leaving "
            "value unchanged.");
}

TEST(Template, falls_back_to_a_node_only_while_the_state_lacks_the_field) {
  nodes::State state;
  state.Set(StateField::kNodeResults, J("{'structured_response': 1}"));
  const Template parsed =
      Template::Parse(json::Value("{{structured_response}}"), Credentials::kResolve);
  EXPECT_EQ(Text(*parsed.Resolve({state, nullptr, "n", nullptr})), "1");
  state.Set(StateField::kStructuredResponse, json::Value(2));
  EXPECT_EQ(Text(*parsed.Resolve({state, nullptr, "n", nullptr})), "2");
}

TEST(Template, refuses_text_beyond_its_limit) {
  nodes::State state;
  state.Set(StateField::kInputs, json::Object{{"big", std::string(1 << 20, 'x')}});
  std::string text;
  for (int i = 0; i < 70; ++i) text += "{{inputs.big}} ";
  const auto value = Template::Parse(json::Value(text), Credentials::kResolve)
                         .Resolve({state, nullptr, "n", nullptr});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, errors::kTemplateTooLarge);
}

TEST(Bind, keeps_open_placeholders_open_and_makes_the_rest_data) {
  const nodes::State outer = SpecState();
  nodes::State inner;
  inner.Set(StateField::kInputs, J("{'n': 99}"));
  inner.Set(StateField::kNodeResults, J("{'later': {'v': 7}}"));
  const Template parsed = Template::Parse(
      J("{'a': '{{inputs.tmpl}}', 'b': '{{later.v}}', 'c': '{{inputs.n}}-{{later.v}}',"
        "'d': 'static'}"),
      Credentials::kResolve);
  const auto bound = parsed.Bind({outer, nullptr, "n", nullptr});
  ASSERT_TRUE(bound);
  EXPECT_EQ(Text(bound->raw()),
            "{\"a\":\"{{inputs.n}}\",\"b\":\"{{later.v}}\",\"c\":\"3-{{later.v}}\",\"d\":"
            "\"static\"}");
  EXPECT_EQ(Text(*bound->Resolve({inner, nullptr, "n", nullptr})),
            "{\"a\":\"{{inputs.n}}\",\"b\":7,\"c\":\"3-7\",\"d\":\"static\"}");
}

TEST(Bind, leaves_credentials_for_later) {
  const nodes::State state = SpecState();
  Vault vault;
  const Scope scope{state, &vault, "n", nullptr};
  const Template parsed =
      Template::Parse(J("['[[token]]', '[[token]] for {{inputs.name}}']"), Credentials::kResolve);
  const auto bound = parsed.Bind(scope);
  ASSERT_TRUE(bound);
  EXPECT_EQ(Text(bound->raw()), R"(["[[token]]","[[token]] for Bob"])");
  EXPECT_EQ(Text(*bound->Resolve(scope)), R"(["token/secret","token/secret for Bob"])");
}

TEST(Template, takes_time_linear_in_texts_made_to_be_slow) {
  nodes::State state;
  for (const char* unit : {"[[", "{{", "{{a", "[[a\n", "{{}} [[ ]] "}) {
    std::string text;
    while (text.size() < 400'000) text += unit;
    const auto value = Template::Parse(json::Value(text), Credentials::kResolve)
                           .Resolve({state, nullptr, "n", nullptr});
    ASSERT_TRUE(value) << unit;
    EXPECT_EQ(value->as_string().size(), text.size());
  }
}

}  // namespace
}  // namespace caisson::graph
