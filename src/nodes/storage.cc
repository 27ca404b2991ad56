// SPDX-License-Identifier: Apache-2.0
// FileUploadNode and GraphStoreAppendMessageNode: what outlives a run.
#include "json/truth.h"
#include "nodes/blobs.h"
#include "nodes/families.h"
#include "nodes/item_space.h"
#include "nodes/items.h"
#include "nodes/python_text.h"

namespace caisson::nodes {
namespace {

enum : std::size_t { kFileContent, kFileName, kMimeType };
constexpr Field kFileFields[] = {
    {.name = "content", .kind = FieldKind::kString, .required = true},
    {.name = "filename", .kind = FieldKind::kString, .required = true},
    {.name = "mime_type",
     .kind = FieldKind::kString,
     .default_json = "\"application/octet-stream\""},
};

Result<json::Value> RunFileUpload(const Visit& visit) {
  for (std::size_t i = 0; i < std::size(kFileFields); ++i) {
    if (visit.fields[i].is_string()) continue;
    return NodeFailed(std::string(kFileFields[i].name) + " must be a string, not " +
                      std::string(PyType(visit.fields[i])));
  }
  CAISSON_ASSIGN(Blobs* const blobs, visit.host.BlobStore());
  CAISSON_ASSIGN(const StoredBlob stored, blobs->Put(visit.fields[kFileContent].as_string(),
                                                     visit.fields[kFileName].as_string(),
                                                     visit.fields[kMimeType].as_string()));
  return json::Object{{"attachment_id", stored.id}, {"download_url", stored.download_url}};
}

enum : std::size_t { kNamespace, kKey, kRole, kContent };
constexpr Field kAppendFields[] = {
    {.name = "namespace",
     .kind = FieldKind::kStringList,
     .default_json = "[\"agent_chat_history\"]"},
    {.name = "key", .kind = FieldKind::kString, .required = true},
    {.name = "role", .kind = FieldKind::kString, .default_json = "\"assistant\""},
    {.name = "content", .kind = FieldKind::kString, .required = true},
};

// Empty when it is no key: not resolved, or of a type that is none.
std::string KeyText(const json::Value& key) {
  if (!key.is_string() && !key.is_number() && !key.is_bool()) return "";
  const std::string text(Strip(PyStr(key)));
  return text.find("{{") != std::string::npos || text.find("}}") != std::string::npos ? "" : text;
}

// One more; what is no number counts as 0.
Result<json::Value> NextVersion(const json::Value* version) {
  if (version == nullptr) return json::Value(1);
  if (version->is_bool()) return json::Value(version->as_bool() ? 2 : 1);
  if (version->is_double()) return json::Value(version->as_double() + 1);
  if (!version->is_integer()) return json::Value(1);
  if (version->is_int() && version->as_int() < std::numeric_limits<std::int64_t>::max()) {
    return json::Value(version->as_int() + 1);
  }
  return NodeFailed("the version of the stored history is too large: " + PyStr(*version));
}

Result<json::Value> Appended(const json::Value* stored, const json::Value& message) {
  json::Object history =
      stored != nullptr && stored->is_object() ? stored->as_object() : json::Object();
  CAISSON_ASSIGN(json::Value version, NextVersion(history.Find("version")));
  history.Set("version", std::move(version));
  json::Value& messages = history["messages"];
  if (!messages.is_array()) messages = json::Array();
  messages.mutable_array().push_back(message);
  return json::Value(std::move(history));
}

json::Value NotWritten(const Visit& visit, const std::string& why) {
  visit.host.Log(LogLevel::kWarning, "GraphStoreAppendMessageNode '" + visit.name + "': " + why);
  return json::Object{{"history_written", false}};
}

Result<json::Value> RunAppend(const Visit& visit) {
  CAISSON_ASSIGN(Items* const items, visit.host.ItemStore());
  const std::string key = KeyText(visit.fields[kKey]);
  if (key.empty()) {
    return NotWritten(visit, "invalid key after resolution: " + PyRepr(visit.fields[kKey]));
  }
  if (!json::Truth(visit.fields[kContent])) {
    return NotWritten(visit, "empty content after resolution.");
  }
  const json::Value message =
      json::Object{{"role", visit.fields[kRole]}, {"content", visit.fields[kContent]}};
  CAISSON_TRY(items->Update({ItemSpace(visit.state, visit.fields[kNamespace]), key},
                            [&](const json::Value* stored) { return Appended(stored, message); }));
  return json::Object{{"history_written", true}};
}

}  // namespace

extern constexpr NodeType kFileUploadNode{"FileUploadNode", kFileFields, RunFileUpload, nullptr,
                                          Need::kBlobs};
extern constexpr NodeType kGraphStoreAppendMessageNode{"GraphStoreAppendMessageNode", kAppendFields,
                                                       RunAppend, nullptr, Need::kItems};

}  // namespace caisson::nodes
