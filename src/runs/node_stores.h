// SPDX-License-Identifier: Apache-2.0
// What nodes keep beyond their run, in the store of the runs: files for people, and the long-term
// items of workflows. Thread-safe.
#pragma once

#include "nodes/blobs.h"
#include "nodes/items.h"
#include "store/workflows.h"

namespace caisson::runs {

// The URL of a file is "caisson:file/<id>"; `caisson runs file` gives it out.
class StoredBlobs final : public nodes::Blobs {
 public:
  explicit StoredBlobs(store::WorkflowStore& store) : store_(store) {}
  Result<nodes::StoredBlob> Put(std::string_view content, std::string_view name,
                                std::string_view mime_type) override;

 private:
  store::WorkflowStore& store_;
};

class StoredItems final : public nodes::Items {
 public:
  explicit StoredItems(store::WorkflowStore& store) : store_(store) {}
  Result<std::optional<json::Value>> Get(const nodes::ItemKey& key) override;
  Result<void> Update(const nodes::ItemKey& key, const Change& change) override;

 private:
  store::WorkflowStore& store_;
};

}  // namespace caisson::runs
