// SPDX-License-Identifier: Apache-2.0
// ChunkingStrategyNode: documents cut into overlapping pieces, counted in characters.
#include <algorithm>

#include "errors/nodes.h"
#include "json/truth.h"
#include "nodes/families.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

constexpr std::size_t kMostChunks = 200'000;  // of all documents of a visit

enum : std::size_t { kSourceKey, kDocumentsField, kChunkSize, kChunkOverlap, kPreserve };
constexpr Field kFields[] = {
    {.name = "source_result_key",
     .kind = FieldKind::kString,
     .default_json = "\"document_loader\""},
    {.name = "documents_field", .kind = FieldKind::kString, .default_json = "\"documents\""},
    {.name = "chunk_size", .kind = FieldKind::kIntOrString, .default_json = "800"},
    {.name = "chunk_overlap", .kind = FieldKind::kIntOrString, .default_json = "80"},
    {.name = "preserve_metadata_keys", .kind = FieldKind::kStringList, .nullable = true},
};

Result<void> CheckOverlap(std::span<const json::Value> values) {
  const json::Value& size = values[kChunkSize];
  const json::Value& overlap = values[kChunkOverlap];
  if (size.is_integer() && overlap.is_integer() && overlap.ToDouble() >= size.ToDouble()) {
    return Fail(errors::kNodesConfig,
                "$.config.chunk_overlap: chunk_overlap must be smaller than chunk_size");
  }
  return {};
}

struct Document {
  std::string id;
  std::string content;
  json::Value metadata = json::Object();
  json::Value source;
};

std::unexpected<Status> BadDocument(std::size_t index, std::string_view what) {
  return NodeFailed("document " + std::to_string(index) + " " + std::string(what));
}

Result<Document> ReadDocument(const json::Value& value, std::size_t index) {
  if (!value.is_object()) return BadDocument(index, "must be an object");
  Document document;
  for (const auto& [key, member] : value.as_object()) {
    if (key == "metadata") {
      if (!member.is_object()) return BadDocument(index, "has metadata that are no object");
      document.metadata = member;
    } else if (key == "source") {
      if (!member.is_string() && !member.is_null()) {
        return BadDocument(index, "has a source that is no string");
      }
      document.source = member;
    } else if (key != "id" && key != "content") {
      return BadDocument(index, "has an unknown field '" + key + "'");
    } else if (!member.is_string()) {
      return BadDocument(index, "has a field '" + key + "' that is no string");
    }
  }
  const json::Value* id = value.Find("id");
  const json::Value* content = value.Find("content");
  if (id == nullptr || content == nullptr) return BadDocument(index, "needs an id and a content");
  document.id = id->as_string();
  document.content = Strip(content->as_string());
  if (!document.content.empty()) return document;
  return NodeFailed("Document content cannot be empty after trimming whitespace");
}

Result<std::vector<Document>> Documents(const Visit& visit) {
  const json::Value* results = visit.state.Find(StateField::kNodeResults);
  const auto member = [](const json::Value* object, const json::Value& key) {
    return object != nullptr && key.is_string() ? object->Find(key.as_string()) : nullptr;
  };
  const json::Value* source = member(results, visit.fields[kSourceKey]);
  const json::Value* found = member(source, visit.fields[kDocumentsField]);
  if (found == nullptr) found = member(results, visit.fields[kDocumentsField]);
  if (found == nullptr || !json::Truth(*found)) {
    return NodeFailed("ChunkingStrategyNode requires at least one document");
  }
  if (!found->is_array()) return NodeFailed("documents payload must be a list");
  std::vector<Document> documents;
  for (const json::Value& value : found->as_array()) {
    CAISSON_ASSIGN(Document document, ReadDocument(value, documents.size()));
    documents.push_back(std::move(document));
  }
  return documents;
}

Result<std::int64_t> Number(const json::Value& value, std::string_view name) {
  CAISSON_ASSIGN(const json::Value number, PyInt(value));
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  if (number.is_int() && number.as_int() > -kFar && number.as_int() < kFar) return number.as_int();
  return NodeFailed(std::string(name) + " is out of range: " + PyStr(number));
}

bool IsKept(const json::Value& preserved, const std::string& key) {
  if (preserved.is_null()) return true;
  if (preserved.is_string()) return preserved.as_string().find(key) != std::string::npos;
  return preserved.is_array() &&
         std::ranges::find(preserved.as_array(), json::Value(key)) != preserved.as_array().end();
}

// Where each character of `text` begins, and the end.
std::vector<std::size_t> Starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t position = 0; position < text.size();) {
    starts.push_back(position);
    NextCharacter(text, position);
  }
  starts.push_back(text.size());
  return starts;
}

// A bound of a slice as Python reads it: from the end when negative, never outside.
std::size_t SliceBound(std::int64_t bound, std::size_t length) {
  const auto end = static_cast<std::int64_t>(length);
  if (bound < 0) bound += end;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(bound, 0, end));
}

class Cutter {
 public:
  Cutter(std::int64_t size, std::int64_t overlap, const json::Value& preserved)
      : size_(size), overlap_(overlap), preserved_(preserved) {}

  Result<void> Cut(const Document& document) {
    const std::vector<std::size_t> starts = Starts(document.content);
    const std::size_t length = starts.size() - 1;
    const auto limit = static_cast<std::int64_t>(length);
    std::int64_t start = 0;
    for (std::int64_t index = 0; start < limit; ++index) {
      const std::int64_t end = std::min(start + size_, limit);
      const std::size_t from = SliceBound(start, length);
      const std::size_t to = std::max(from, SliceBound(end, length));
      CAISSON_TRY(
          Add(document, index,
              std::string_view(document.content).substr(starts[from], starts[to] - starts[from])));
      if (end == limit) break;
      // Where the peer never ends.
      if (end - overlap_ <= start) {
        return NodeFailed(
            "chunk_overlap must be smaller than chunk_size, and chunk_size greater than 0: " +
            std::to_string(overlap_) + " and " + std::to_string(size_));
      }
      start = end - overlap_;
    }
    return {};
  }

  json::Array Take() { return std::move(chunks_); }

 private:
  Result<void> Add(const Document& document, std::int64_t index, std::string_view piece) {
    if (chunks_.size() >= kMostChunks) {
      return NodeFailed("the documents have more than " + std::to_string(kMostChunks) +
                        " chunks; cut them into larger ones, or give fewer documents at once");
    }
    const std::string_view content = Strip(piece);
    if (content.empty()) {
      return NodeFailed("Chunk content cannot be empty after trimming whitespace");
    }
    json::Object metadata{
        {"document_id", document.id}, {"chunk_index", index}, {"source", document.source}};
    for (const auto& [key, value] : document.metadata.as_object()) {
      if (IsKept(preserved_, key)) metadata.Set(key, value);
    }
    chunks_.emplace_back(json::Object{{"id", document.id + "-chunk-" + std::to_string(index)},
                                      {"document_id", document.id},
                                      {"index", index},
                                      {"content", content},
                                      {"metadata", std::move(metadata)}});
    return {};
  }

  const std::int64_t size_;
  const std::int64_t overlap_;
  const json::Value& preserved_;
  json::Array chunks_;
};

Result<json::Value> RunChunking(const Visit& visit) {
  CAISSON_ASSIGN(const auto documents, Documents(visit));
  CAISSON_ASSIGN(const std::int64_t size, Number(visit.fields[kChunkSize], "chunk_size"));
  CAISSON_ASSIGN(const std::int64_t overlap, Number(visit.fields[kChunkOverlap], "chunk_overlap"));
  Cutter cutter(size, overlap, visit.fields[kPreserve]);
  for (const Document& document : documents) CAISSON_TRY(cutter.Cut(document));
  return json::Object{{"chunks", cutter.Take()}};
}

}  // namespace

extern constexpr NodeType kChunkingStrategyNode{"ChunkingStrategyNode", kFields, RunChunking,
                                                CheckOverlap};

}  // namespace caisson::nodes
