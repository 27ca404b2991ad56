// SPDX-License-Identifier: Apache-2.0
// The JSON form of a progress. Its readers check types; a progress that was tampered with may end a
// run in an error, no more.
#include <limits>
#include <utility>

#include "errors/graph.h"
#include "graph/progress.h"

namespace caisson::graph {
namespace {

constexpr int kFormat = 1;
constexpr int kMaxDepth = 64;  // of subgraphs; workflow::Compile allows 32

std::unexpected<Status> Wrong(std::string_view what) {
  return Fail(errors::kGraphEvent, "the progress of a run: " + std::string(what));
}

json::Value ToJson(const GraphProgress& graph) {
  json::Object finished;
  for (const auto& [id, update] : graph.finished) finished.Set(id, update.ToJson());
  json::Object answers;
  for (const auto& [id, given] : graph.answers) answers.Set(id, json::Array(given));
  json::Object inside;
  for (const auto& [id, inner] : graph.inside) inside.Set(id, ToJson(inner));
  return json::Object{{"state", graph.state.ToJson()},
                      {"delta", graph.delta.ToJson()},
                      {"steps", graph.steps},
                      {"current", json::Array(graph.current.begin(), graph.current.end())},
                      {"finished", std::move(finished)},
                      {"answers", std::move(answers)},
                      {"inside", std::move(inside)}};
}

Result<const json::Value*> Member(const json::Value& value, std::string_view name,
                                  json::Value::Kind kind) {
  const json::Value* member = value.Find(name);
  if (member != nullptr && member->kind() == kind) return member;
  return Wrong("its member '" + std::string(name) + "' is missing or of another type");
}

Result<std::int64_t> Count(const json::Value& value, std::string_view name) {
  CAISSON_ASSIGN(const json::Value* member, Member(value, name, json::Value::Kind::kInt));
  if (member->as_int() < 0) return Wrong("its member '" + std::string(name) + "' is negative");
  return member->as_int();
}

Result<nodes::State> StateMember(const json::Value& value, std::string_view name) {
  CAISSON_ASSIGN(const json::Value* member, Member(value, name, json::Value::Kind::kObject));
  return StateFromJson(*member);
}

Result<GraphProgress> GraphFromJson(const json::Value& value, int depth) {
  using Kind = json::Value::Kind;
  if (depth > kMaxDepth) return Wrong("subgraphs are nested too deeply");
  GraphProgress graph;
  CAISSON_ASSIGN(graph.state, StateMember(value, "state"));
  CAISSON_ASSIGN(graph.delta, StateMember(value, "delta"));
  CAISSON_ASSIGN(const std::int64_t steps, Count(value, "steps"));
  if (steps > std::numeric_limits<int>::max() - 1) return Wrong("it has too many steps");
  graph.steps = static_cast<int>(steps);
  CAISSON_ASSIGN(const json::Value* current, Member(value, "current", Kind::kArray));
  for (const json::Value& id : current->as_array()) {
    if (!id.is_string()) return Wrong("an id in 'current' is no text");
    graph.current.push_back(id.as_string());
  }
  CAISSON_ASSIGN(const json::Value* finished, Member(value, "finished", Kind::kObject));
  for (const auto& [id, update] : finished->as_object()) {
    CAISSON_ASSIGN(Update read, StateFromJson(update));
    graph.finished.emplace(id, std::move(read));
  }
  CAISSON_ASSIGN(const json::Value* answers, Member(value, "answers", Kind::kObject));
  for (const auto& [id, given] : answers->as_object()) {
    if (!given.is_array()) return Wrong("the answers to a node are no list");
    graph.answers.emplace(id, given.as_array());
  }
  CAISSON_ASSIGN(const json::Value* inside, Member(value, "inside", Kind::kObject));
  for (const auto& [id, inner] : inside->as_object()) {
    CAISSON_ASSIGN(GraphProgress read, GraphFromJson(inner, depth + 1));
    graph.inside.emplace(id, std::move(read));
  }
  return graph;
}

Result<std::vector<Question>> QuestionsFromJson(const json::Value& list) {
  std::vector<Question> questions;
  for (const json::Value& item : list.as_array()) {
    const json::Value* path = item.Find("node_path");
    const json::Value* value = item.Find("value");
    if (path == nullptr || !path->is_string() || value == nullptr) {
      return Wrong("a question has no node_path or value");
    }
    questions.push_back({path->as_string(), *value});
  }
  return questions;
}

}  // namespace

json::Value Progress::ToJson() const {
  json::Array questions;
  for (const Question& question : questions_) {
    questions.push_back(json::Object{{"node_path", question.node_path}, {"value", question.value}});
  }
  return json::Object{{"format", kFormat},
                      {"sequence", sequence_},
                      {"phase", static_cast<int>(phase_)},
                      {"questions", std::move(questions)},
                      {"visits", usage_.visits},
                      {"tokens", usage_.tokens},
                      {"isolate_ns", static_cast<std::int64_t>(usage_.isolate_time.count())},
                      {"root", graph::ToJson(root_)}};
}

Result<Progress> Progress::FromJson(const json::Value& value) {
  using Kind = json::Value::Kind;
  CAISSON_ASSIGN(const std::int64_t format, Count(value, "format"));
  if (format > kFormat) {
    return Fail(errors::kGraphNewer,
                "the progress of a run has the format " + std::to_string(format) +
                    ", but this version knows formats up to " + std::to_string(kFormat) +
                    "; go on with the version that wrote it, or a later one");
  }
  Progress progress;
  CAISSON_ASSIGN(const std::int64_t sequence, Count(value, "sequence"));
  progress.sequence_ = static_cast<std::uint64_t>(sequence);
  CAISSON_ASSIGN(const std::int64_t phase, Count(value, "phase"));
  if (phase > static_cast<int>(Phase::kFinished)) return Wrong("its phase is unknown");
  progress.phase_ = static_cast<Phase>(phase);
  CAISSON_ASSIGN(const json::Value* questions, Member(value, "questions", Kind::kArray));
  CAISSON_ASSIGN(progress.questions_, QuestionsFromJson(*questions));
  CAISSON_ASSIGN(progress.usage_.visits, Count(value, "visits"));
  CAISSON_ASSIGN(progress.usage_.tokens, Count(value, "tokens"));
  CAISSON_ASSIGN(const std::int64_t isolate, Count(value, "isolate_ns"));
  progress.usage_.isolate_time = std::chrono::nanoseconds(isolate);
  CAISSON_ASSIGN(const json::Value* root, Member(value, "root", Kind::kObject));
  CAISSON_ASSIGN(progress.root_, GraphFromJson(*root, 1));
  return progress;
}

}  // namespace caisson::graph
