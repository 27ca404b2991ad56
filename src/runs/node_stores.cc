// SPDX-License-Identifier: Apache-2.0
#include "runs/node_stores.h"

#include <utility>

#include "graph/messages.h"
#include "json/reader.h"
#include "json/writer.h"
#include "runs/record.h"

namespace caisson::runs {
namespace {

Result<std::string> SpaceText(const nodes::ItemKey& key) {
  return json::Write(json::Array(key.space.begin(), key.space.end()));
}

Result<std::optional<json::Value>> Read(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  CAISSON_ASSIGN(json::Value value, json::Read(*text));
  return value;
}

}  // namespace

Result<nodes::StoredBlob> StoredBlobs::Put(std::string_view content, std::string_view name,
                                           std::string_view mime_type) {
  const store::StoredFile file{"atc_" + graph::RandomUuid(), std::string(name),
                               std::string(mime_type), std::string(content), Now()};
  CAISSON_TRY(store_.Write([&](store::WorkflowRows& rows) { return rows.InsertFile(file); }));
  return nodes::StoredBlob{file.id, "caisson:file/" + file.id};
}

Result<std::optional<json::Value>> StoredItems::Get(const nodes::ItemKey& key) {
  CAISSON_ASSIGN(const std::string space, SpaceText(key));
  CAISSON_ASSIGN(const auto text, store_.Read([&](store::WorkflowRows& rows) {
    return rows.FindItem(space, key.key);
  }));
  return Read(text);
}

Result<void> StoredItems::Update(const nodes::ItemKey& key, const Change& change) {
  CAISSON_ASSIGN(const std::string space, SpaceText(key));
  return store_.Write([&](store::WorkflowRows& rows) -> Result<void> {
    CAISSON_ASSIGN(const auto text, rows.FindItem(space, key.key));
    CAISSON_ASSIGN(const auto before, Read(text));
    CAISSON_ASSIGN(const json::Value after, change(before ? &*before : nullptr));
    CAISSON_ASSIGN(const std::string written, json::Write(after));
    return rows.PutItem(space, key.key, written, Now());
  });
}

}  // namespace caisson::runs
