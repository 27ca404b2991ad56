// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "graph/events.h"
#include "json/writer.h"

namespace caisson::graph {
namespace {

// Between these, in nanoseconds, the shortest text of a number of milliseconds is its digits.
constexpr std::int64_t kLeastFixed = 100;
constexpr std::int64_t kMostFixed = std::int64_t{1} << 49;

// Appends an object, member by member, without making values of what is only written.
class LineWriter {
 public:
  LineWriter(std::string& out, std::size_t most) : out_(out), most_(most) {}

  void Number(std::string_view key, std::int64_t number) {
    Key(key);
    char buffer[24];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  }
  // As Event::ToJson's number of milliseconds.
  void Duration(std::string_view key, std::chrono::nanoseconds duration) {
    Key(key);
    const std::int64_t count = duration.count();
    if (count < kLeastFixed || count > kMostFixed) {
      out_ += json::FormatDouble(static_cast<double>(count) / 1e6);
      return;
    }
    char buffer[24];
    char* end = std::to_chars(buffer, buffer + sizeof buffer, count / 1'000'000).ptr;
    out_.append(buffer, end).push_back('.');
    // Six digits, without the zeros at their end but for a first one.
    end = std::to_chars(buffer, buffer + sizeof buffer, 1'000'000 + count % 1'000'000).ptr;
    while (end > buffer + 2 && end[-1] == '0') --end;
    out_.append(buffer + 1, end);
  }
  void Text(std::string_view key, std::string_view text) {
    Key(key);
    good_ = good_ && json::AppendQuoted(out_, text, most_);
  }
  void True(std::string_view key) {
    Key(key);
    out_ += "true";
  }
  void Texts(std::string_view key, const std::vector<std::string>& texts) {
    Key(key);
    out_ += '[';
    for (const std::string& text : texts) {
      if (out_.back() != '[') out_ += ',';
      good_ = good_ && json::AppendQuoted(out_, text, most_);
    }
    out_ += ']';
  }
  void Value(std::string_view key, const json::Value& value) {
    Key(key);
    good_ = good_ && json::AppendText(out_, value, most_);
  }
  bool Finish() {
    out_ += '}';
    return good_;
  }

 private:
  void Key(std::string_view key) {
    out_ += is_first_ ? "{\"" : ",\"";
    is_first_ = false;
    out_ += key;
    out_ += "\":";
  }

  std::string& out_;
  const std::size_t most_;
  bool is_first_ = true;
  bool good_ = true;
};

void WriteHead(LineWriter& line, const Event& event) {
  line.Text("event", EventKindName(event.kind));
  line.Number("sequence", static_cast<std::int64_t>(event.sequence));
  line.Duration("elapsed_ms", event.elapsed);
  line.Text("run_id", event.run_id);
  if (event.kind == EventKind::kStepStarted || IsOfNode(event.kind)) {
    line.Number("step", event.step);
    line.Text("graph", event.graph_path);
  }
  if (event.nodes != nullptr) line.Texts("nodes", *event.nodes);
}

void WriteNode(LineWriter& line, const Event& event) {
  line.Text("node", event.node_id);
  line.Text("type", event.node_type);
  if (event.attempt != 1) line.Number("attempt", event.attempt);
  if (event.continues) line.True("continues");
  if (event.retry) line.Number("retry_in_ms", event.retry->count());
}

}  // namespace

bool Event::AppendText(std::string& out, std::size_t most) const {
  const std::size_t before = out.size();
  LineWriter line(out, most);
  WriteHead(line, *this);
  if (IsOfNode(kind)) WriteNode(line, *this);
  if (tokens != 0) line.Number("tokens", tokens);
  if (HasDuration(kind)) line.Duration("duration_ms", duration);
  if (data != nullptr) line.Value(DataName(kind), *data);
  if (line.Finish()) return true;
  out.resize(before);
  return false;
}

}  // namespace caisson::graph
