// SPDX-License-Identifier: Apache-2.0
#include "wasm/memory_files.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace caisson::wasm {
namespace {

constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxName = 255;
constexpr unsigned kMaxDepth = 128;

std::unexpected<Errno> No(Errno error) { return std::unexpected(error); }

// The parts between slashes; "." and empty ones are left out, ".." stays.
std::expected<std::vector<std::string_view>, Errno> Split(std::string_view path) {
  if (path.empty()) return No(Errno::kNoEntry);
  if (path.size() > kMaxPath) return No(Errno::kNameTooLong);
  if (path.find('\0') != std::string_view::npos) return No(Errno::kInvalid);
  if (path.front() == '/') return No(Errno::kNotCapable);
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part.size() > kMaxName) return No(Errno::kNameTooLong);
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  return parts;
}

}  // namespace

FileNode::FileNode(bool is_directory, bool is_writable, std::uint64_t number,
                   std::shared_ptr<FileUse> charged)
    : is_directory_(is_directory),
      is_writable_(is_writable),
      number_(number),
      charged_(std::move(charged)) {
  if (charged_) ++charged_->nodes;
}

FileNode::~FileNode() {
  for (const auto& [name, node] : entries_) {
    if (node->parent_ == this) node->parent_ = nullptr;  // else it is shared
  }
  if (!charged_) return;
  --charged_->nodes;
  charged_->bytes -= own_.size();
}

Errno FileNode::Resize(std::uint64_t size) {
  if (!is_writable_ || !charged_) return Errno::kReadOnly;
  if (size > own_.size() && size - own_.size() > charged_->limits.bytes - charged_->bytes) {
    return Errno::kNoSpace;
  }
  charged_->bytes += size;
  charged_->bytes -= own_.size();
  own_.resize(size);
  if (own_.capacity() > 2 * size + kMaxPath) own_.shrink_to_fit();
  return Errno::kSuccess;
}

Errno FileNode::Write(std::uint64_t offset, std::string_view bytes) {
  if (!is_writable_ || !charged_) return Errno::kReadOnly;
  if (bytes.empty()) return Errno::kSuccess;
  const std::uint64_t end = offset + bytes.size();
  if (end < offset) return Errno::kTooBig;
  if (end > own_.size()) {
    if (const Errno error = Resize(end); error != Errno::kSuccess) return error;
  }
  std::ranges::copy(bytes, own_.begin() + static_cast<std::ptrdiff_t>(offset));
  return Errno::kSuccess;
}

bool FileNode::IsWithin(const FileNode& other) const {
  for (const FileNode* node = this; node != nullptr; node = node->parent_) {
    if (node == &other) return true;
  }
  return false;
}

unsigned FileNode::Height() const {
  unsigned most = 0;
  for (const auto& [name, node] : entries_) most = std::max(most, 1 + node->Height());
  return most;
}

unsigned FileNode::Depth() const {
  unsigned depth = 0;
  for (const FileNode* node = parent_; node != nullptr; node = node->parent_) ++depth;
  return depth;
}

FileTree::FileTree(const FileLimits& limits, std::uint64_t first_number)
    : use_(std::make_shared<FileUse>(FileUse{.limits = limits})),
      next_number_(first_number),
      root_(std::make_shared<FileNode>(true, false, next_number_++, nullptr)) {}

FileTree::~FileTree() = default;

void FileTree::Insert(const NodePtr& directory, std::string_view name, NodePtr node) {
  node->parent_ = directory.get();
  directory->entries_.insert_or_assign(std::string(name), std::move(node));
}

void FileTree::Take(FileNode& directory, std::string_view name) {
  const auto at = directory.entries_.find(name);
  at->second->parent_ = nullptr;
  directory.entries_.erase(at);
}

void FileTree::AddDirectory(std::string_view path, bool is_writable) {
  path.remove_prefix(1);
  const auto parts = Split(path);
  if (!parts) return;
  NodePtr at = root_;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const auto next = at->entries_.find((*parts)[i]);
    if (next != at->entries_.end()) {
      at = next->second;
      continue;
    }
    const bool last = i + 1 == parts->size();
    auto made = std::make_shared<FileNode>(true, last && is_writable, next_number_++, nullptr);
    Insert(at, (*parts)[i], made);
    at = std::move(made);
  }
}

void FileTree::Attach(std::string_view name, NodePtr shared) {
  root_->entries_.insert_or_assign(std::string(name), std::move(shared));
}

void FileTree::AddView(std::string_view path, std::string_view bytes) {
  const std::size_t slash = path.rfind('/');
  if (slash != 0) AddDirectory(path.substr(0, slash), false);
  const auto directory =
      slash == 0 ? std::expected<NodePtr, Errno>(root_) : Find(root_, path.substr(1, slash - 1));
  if (!directory) return;
  auto file = std::make_shared<FileNode>(false, false, next_number_++, nullptr);
  file->view_ = bytes;
  Insert(*directory, path.substr(slash + 1), std::move(file));
}

std::expected<NodePtr, Errno> FileTree::Find(const NodePtr& base, std::string_view path) const {
  const auto parts = Split(path);
  if (!parts) return No(parts.error());
  std::vector<NodePtr> way = {base};
  for (const std::string_view part : *parts) {
    if (!way.back()->is_directory()) return No(Errno::kNotDirectory);
    if (part == "..") {
      if (way.size() == 1) return No(Errno::kNotCapable);
      way.pop_back();
      continue;
    }
    const auto next = way.back()->entries_.find(part);
    if (next == way.back()->entries_.end()) return No(Errno::kNoEntry);
    way.push_back(next->second);
  }
  if (path.back() == '/' && !way.back()->is_directory()) return No(Errno::kNotDirectory);
  return way.back();
}

std::expected<FileTree::Place, Errno> FileTree::FindPlace(const NodePtr& base,
                                                          std::string_view path) const {
  const auto parts = Split(path);
  if (!parts) return No(parts.error());
  if (parts->empty() || parts->back() == "..") return No(Errno::kInvalid);
  const std::string_view name = parts->back();
  const std::string_view before =
      path.substr(0, static_cast<std::size_t>(name.data() - path.data()));
  auto directory = before.empty() ? std::expected<NodePtr, Errno>(base) : Find(base, before);
  if (!directory) return No(directory.error());
  if (!(*directory)->is_directory()) return No(Errno::kNotDirectory);
  return Place{*std::move(directory), std::string(name), path.back() == '/'};
}

std::expected<NodePtr, Errno> FileTree::MakeNode(const Place& place, bool is_directory) {
  if (!place.directory->is_writable()) return No(Errno::kReadOnly);
  // A directory that was removed while it was open takes nothing in any more.
  if (!place.directory->IsWithin(*root_)) return No(Errno::kNoEntry);
  if (place.directory->Depth() + 1 >= kMaxDepth) return No(Errno::kNameTooLong);
  if (use_->nodes >= use_->limits.nodes) return No(Errno::kNoSpace);
  auto node = std::make_shared<FileNode>(is_directory, true, next_number_++, use_);
  Insert(place.directory, place.name, node);
  return node;
}

std::expected<NodePtr, Errno> FileTree::Create(const NodePtr& base, std::string_view path,
                                               bool is_directory) {
  const auto place = FindPlace(base, path);
  if (!place) return No(place.error());
  if (place->directory->entries_.contains(place->name)) return No(Errno::kExists);
  if (place->must_be_directory && !is_directory) return No(Errno::kIsDirectory);
  return MakeNode(*place, is_directory);
}

Errno FileTree::Remove(const NodePtr& base, std::string_view path, bool is_directory) {
  const auto place = FindPlace(base, path);
  if (!place) return place.error();
  const auto at = place->directory->entries_.find(place->name);
  if (at == place->directory->entries_.end()) return Errno::kNoEntry;
  const FileNode& node = *at->second;
  if (is_directory && !node.is_directory()) return Errno::kNotDirectory;
  if (!is_directory && node.is_directory()) return Errno::kIsDirectory;
  if (!place->directory->is_writable()) return Errno::kReadOnly;
  if (!node.entries_.empty()) return Errno::kNotEmpty;
  Take(*place->directory, place->name);
  return Errno::kSuccess;
}

Errno FileTree::Rename(const NodePtr& from_base, std::string_view from, const NodePtr& to_base,
                       std::string_view to) {
  const auto source = FindPlace(from_base, from);
  if (!source) return source.error();
  const auto target = FindPlace(to_base, to);
  if (!target) return target.error();
  const auto at = source->directory->entries_.find(source->name);
  if (at == source->directory->entries_.end()) return Errno::kNoEntry;
  const NodePtr node = at->second;
  if (!source->directory->is_writable() || !target->directory->is_writable()) {
    return Errno::kReadOnly;
  }
  if (!node->is_directory() && (source->must_be_directory || target->must_be_directory)) {
    return Errno::kNotDirectory;
  }
  if (!target->directory->IsWithin(*root_)) return Errno::kNoEntry;
  if (target->directory->IsWithin(*node)) return Errno::kInvalid;
  if (target->directory->Depth() + 1 + node->Height() >= kMaxDepth) return Errno::kNameTooLong;
  const auto existing = target->directory->entries_.find(target->name);
  if (existing != target->directory->entries_.end()) {
    const FileNode& old = *existing->second;
    if (&old == node.get()) return Errno::kSuccess;
    if (old.is_directory() && !node->is_directory()) return Errno::kIsDirectory;
    if (!old.is_directory() && node->is_directory()) return Errno::kNotDirectory;
    if (!old.entries_.empty()) return Errno::kNotEmpty;
    Take(*target->directory, target->name);
  }
  Take(*source->directory, source->name);
  Insert(target->directory, target->name, node);
  return Errno::kSuccess;
}

}  // namespace caisson::wasm
