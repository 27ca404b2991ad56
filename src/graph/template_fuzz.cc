// SPDX-License-Identifier: Apache-2.0
// Any JSON value as a configuration: parsing, resolving and binding its templates must hold what
// template.h promises.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "graph/template.h"
#include "json/reader.h"

namespace caisson::graph {
namespace {

class Echo final : public CredentialResolver {
 public:
  Result<json::Value> Resolve(const CredentialReference& reference) override {
    return json::Value("[[again]] {{inputs.n}} " + reference.identifier);
  }
};

nodes::State FuzzState() {
  nodes::State state;
  state.Set(nodes::StateField::kInputs,
            *json::Read(R"({"n":3,"s":"{{inputs.n}}[[x]]","l":[1],"o":{"k":null},"":1})"));
  state.Set(nodes::StateField::kNodeResults, *json::Read(R"({"a":{"x":1.5},"":{"":0}})"));
  return state;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace
}  // namespace caisson::graph

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson;
  using namespace caisson::graph;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = json::Read(text);
  const json::Value value = document ? *document : json::Value(text);
  const nodes::State state = FuzzState();
  Echo vault;
  const Scope scope{state, &vault, "n", nullptr};
  for (const Credentials mode : {Credentials::kResolve, Credentials::kPlainText}) {
    const Template parsed = Template::Parse(value, mode);
    Require(parsed.raw() == value);
    const auto resolved = parsed.Resolve(scope);
    const auto bound = parsed.Bind(scope);
    Require(resolved.has_value() && bound.has_value());
    // What binding leaves open is resolved later, and nothing that it put in is.
    const auto later = bound->Resolve(scope);
    Require(later.has_value() && *later == *resolved);
    const auto twice = bound->Bind(scope);
    Require(twice.has_value() && twice->raw() == bound->raw());
    if (mode == Credentials::kPlainText) Require(bound->raw() == *resolved);
    if (parsed.is_static()) Require(*resolved == value);
  }
  return 0;
}
