// SPDX-License-Identifier: Apache-2.0
// The run's stores as one visit sees them: what it puts there has placeholders in place of the
// secrets that it resolved, as what it returns has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/redaction.h"
#include "nodes/blobs.h"
#include "nodes/items.h"

namespace caisson::graph {

// `inner` and `secrets` outlive it; `inner` may be null, and then nothing is to be called.
class RedactedBlobs final : public nodes::Blobs {
 public:
  RedactedBlobs(nodes::Blobs* inner, const SecretKeeper& secrets)
      : inner_(inner), secrets_(secrets) {}
  Result<nodes::StoredBlob> Put(std::string_view content, std::string_view name,
                                std::string_view mime_type) override {
    return inner_->Put(secrets_.Redact(std::string(content)), secrets_.Redact(std::string(name)),
                       secrets_.Redact(std::string(mime_type)));
  }

 private:
  nodes::Blobs* inner_;
  const SecretKeeper& secrets_;
};

class RedactedItems final : public nodes::Items {
 public:
  RedactedItems(nodes::Items* inner, const SecretKeeper& secrets)
      : inner_(inner), secrets_(secrets) {}
  Result<std::optional<json::Value>> Get(const nodes::ItemKey& key) override {
    return inner_->Get(Shown(key));
  }
  Result<void> Update(const nodes::ItemKey& key, const Change& change) override {
    return inner_->Update(Shown(key), [&](const json::Value* value) -> Result<json::Value> {
      CAISSON_ASSIGN(json::Value changed, change(value));
      return secrets_.Redact(std::move(changed));
    });
  }

 private:
  nodes::ItemKey Shown(nodes::ItemKey key) const {
    for (std::string& name : key.space) name = secrets_.Redact(std::move(name));
    key.key = secrets_.Redact(std::move(key.key));
    return key;
  }

  nodes::Items* inner_;
  const SecretKeeper& secrets_;
};

}  // namespace caisson::graph
