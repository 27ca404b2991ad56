// SPDX-License-Identifier: Apache-2.0
#include "block/list_pieces.h"

#include <utility>

namespace caisson::block {
namespace {

class Cutter {
 public:
  explicit Cutter(std::size_t piece_bytes) : piece_bytes_(piece_bytes) {}

  void Add(std::string_view item) {
    const char* end = item.data() + item.size();
    if (begin_ != nullptr && static_cast<std::size_t>(end - begin_) > piece_bytes_) Cut();
    if (begin_ == nullptr) begin_ = item.data();
    end_ = end;
  }

  void Cut() {
    if (begin_ != nullptr) pieces_.emplace_back(begin_, end_);
    begin_ = nullptr;
  }

  std::vector<std::string_view> Finish() {
    Cut();
    return std::move(pieces_);
  }

 private:
  std::size_t piece_bytes_;
  const char* begin_ = nullptr;  // of the piece that grows
  const char* end_ = nullptr;
  std::vector<std::string_view> pieces_;
};

}  // namespace

Result<ScannedText> ScanInPieces(std::string_view text, std::size_t piece_bytes,
                                 const json::ReadOptions& options) {
  Cutter cutter(piece_bytes);
  CAISSON_ASSIGN(json::ScanReport report,
                 json::Scan(text, options, [&cutter](const json::ScannedChild& child) {
                   if (child.key.empty()) cutter.Add(child.text);
                   return true;
                 }));
  ScannedText scanned{report, {}};
  if (report.kind == json::Value::Kind::kArray) scanned.pieces = cutter.Finish();
  return scanned;
}

}  // namespace caisson::block
