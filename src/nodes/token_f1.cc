// SPDX-License-Identifier: Apache-2.0
// TokenF1MetricsNode: how much the words of a prediction and of its reference have in common.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kNormalize, kPredictionsKey, kReferencesKey };
constexpr Field kFields[] = {
    {.name = "normalize", .kind = FieldKind::kBool, .default_json = "true"},
    {.name = "predictions_key", .kind = FieldKind::kString, .default_json = "\"predictions\""},
    {.name = "references_key", .kind = FieldKind::kString, .default_json = "\"references\""},
};

using Counts = std::map<std::string, std::size_t, std::less<>>;

struct Tokens {
  Counts counts;
  std::size_t total = 0;
};

// The runs of characters of `text` that are in no gap.
Tokens Split(std::string_view text, bool (*is_gap)(std::uint32_t)) {
  Tokens tokens;
  std::size_t begin = 0;
  for (std::size_t position = 0; begin < text.size();) {
    const std::size_t here = position;
    const bool gap = position >= text.size() || is_gap(NextCharacter(text, position));
    if (!gap) continue;
    if (here > begin) {
      ++tokens.counts[std::string(text.substr(begin, here - begin))];
      ++tokens.total;
    }
    begin = std::max(position, here);
    if (here >= text.size()) break;
  }
  return tokens;
}

Tokens TokensOf(const json::Value& value, bool normalize) {
  const std::string text = PyStr(value);
  if (!normalize) return Split(text, IsSpace);
  return Split(Lower(text), [](std::uint32_t character) { return !IsWordCharacter(character); });
}

double Score(const Tokens& prediction, const Tokens& reference) {
  std::size_t common = 0;
  for (const auto& [token, count] : prediction.counts) {
    const auto found = reference.counts.find(token);
    if (found != reference.counts.end()) common += std::min(count, found->second);
  }
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / static_cast<double>(prediction.total);
  const double recall = static_cast<double>(common) / static_cast<double>(reference.total);
  return 2 * precision * recall / (precision + recall);
}

// As sum() of CPython 3.12 adds floats: with what rounding loses carried along.
double Sum(const std::vector<double>& values) {
  double sum = 0;
  double lost = 0;
  for (const double value : values) {
    const double next = sum + value;
    lost += std::abs(sum) >= std::abs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  return lost != 0 && std::isfinite(lost) ? sum + lost : sum;
}

const json::Value* InputList(const Visit& visit, std::size_t field) {
  const json::Value* inputs = visit.state.Find(StateField::kInputs);
  const json::Value& key = visit.fields[field];
  const json::Value* found =
      inputs != nullptr && key.is_string() ? inputs->Find(key.as_string()) : nullptr;
  return found != nullptr && found->is_array() ? found : nullptr;
}

Result<json::Value> RunTokenF1(const Visit& visit) {
  const json::Value* predictions = InputList(visit, kPredictionsKey);
  const json::Value* references = InputList(visit, kReferencesKey);
  if (predictions == nullptr || references == nullptr) {
    return NodeFailed("TokenF1MetricsNode expects predictions and references lists");
  }
  const std::size_t count = predictions->as_array().size();
  if (count != references->as_array().size()) {
    return NodeFailed("TokenF1MetricsNode expects predictions and references of same length");
  }
  const bool normalize = json::Truth(visit.fields[kNormalize]);
  std::vector<double> scores;
  scores.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    scores.push_back(Score(TokensOf(predictions->as_array()[i], normalize),
                           TokensOf(references->as_array()[i], normalize)));
  }
  const double corpus = count == 0 ? 0 : Sum(scores) / static_cast<double>(count);
  return json::Object{{"metric_name", "token_f1"},
                      {"corpus_score", corpus},
                      {"per_item", json::Array(scores.begin(), scores.end())}};
}

}  // namespace

extern constexpr NodeType kTokenF1MetricsNode{"TokenF1MetricsNode", kFields, RunTokenF1};

}  // namespace caisson::nodes
