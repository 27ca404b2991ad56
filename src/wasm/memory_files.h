// SPDX-License-Identifier: Apache-2.0
// The file system of one instance: a tree in memory, some files of it read-only views of host
// bytes, some directories writable up to a quota. Nothing of the host's files is in it. No links,
// no permissions, no other times than that of the last change. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "wasm/wasi_errno.h"

namespace caisson::wasm {

struct FileLimits {
  std::uint64_t bytes = 64u << 20;  // of all writable files
  std::uint32_t nodes = 4096;       // files and directories that the guest made
  std::uint32_t descriptors = 256;  // open at once
};

// What of the limits is used. Nodes keep it up to date until the last descriptor has let go of
// them.
struct FileUse {
  FileLimits limits;
  std::uint64_t bytes = 0;
  std::uint32_t nodes = 0;
};

class FileNode;
using NodePtr = std::shared_ptr<FileNode>;

class FileNode {
 public:
  FileNode(bool is_directory, bool is_writable, std::uint64_t number,
           std::shared_ptr<FileUse> charged);
  ~FileNode();
  FileNode(const FileNode&) = delete;
  FileNode& operator=(const FileNode&) = delete;

  bool is_directory() const { return is_directory_; }
  bool is_writable() const { return is_writable_; }  // a directory: what is in it may change
  std::uint64_t number() const { return number_; }
  std::string_view bytes() const { return is_writable_ ? std::string_view(own_) : view_; }
  const std::map<std::string, NodePtr, std::less<>>& entries() const { return entries_; }
  std::uint64_t changed() const { return changed_; }
  void set_changed(std::uint64_t nanoseconds) { changed_ = nanoseconds; }

  // Files. Fail with kReadOnly, kNoSpace, kTooBig.
  Errno Write(std::uint64_t offset, std::string_view bytes);
  Errno Resize(std::uint64_t size);

 private:
  friend class FileTree;
  bool IsWithin(const FileNode& other) const;  // other itself included
  unsigned Height() const;
  unsigned Depth() const;

  const bool is_directory_;
  const bool is_writable_;
  const std::uint64_t number_;
  const std::shared_ptr<FileUse> charged_;  // null: part of the tree from the start
  std::uint64_t changed_ = 0;
  std::string own_;
  std::string_view view_;
  std::map<std::string, NodePtr, std::less<>> entries_;
  FileNode* parent_ = nullptr;  // null: the root, or removed
};

class FileTree {
 public:
  // Nodes are numbered from `first_number` on; two trees of which one is attached to the other need
  // ranges of their own.
  explicit FileTree(const FileLimits& limits, std::uint64_t first_number = 1);
  ~FileTree();
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  const NodePtr& root() const { return root_; }
  const FileUse& use() const { return *use_; }

  // For the host, before the guest runs; absolute paths, missing parents are made (read-only).
  void AddView(std::string_view path, std::string_view bytes);  // the bytes outlive the tree
  void AddDirectory(std::string_view path, bool is_writable);

  // Hangs the root of another tree in, under one name of our root. It is not copied: any number of
  // trees, of any number of threads, may share it, as nobody can change what is not writable.
  void Attach(std::string_view name, NodePtr shared);

  // `path` relative to `base` and never above it (kNotCapable).
  std::expected<NodePtr, Errno> Find(const NodePtr& base, std::string_view path) const;
  std::expected<NodePtr, Errno> Create(const NodePtr& base, std::string_view path,
                                       bool is_directory);
  Errno Remove(const NodePtr& base, std::string_view path, bool is_directory);
  Errno Rename(const NodePtr& from_base, std::string_view from, const NodePtr& to_base,
               std::string_view to);

 private:
  struct Place {
    NodePtr directory;
    std::string name;
    bool must_be_directory = false;  // the path ends in a slash
  };
  std::expected<Place, Errno> FindPlace(const NodePtr& base, std::string_view path) const;
  std::expected<NodePtr, Errno> MakeNode(const Place& place, bool is_directory);
  void Insert(const NodePtr& directory, std::string_view name, NodePtr node);
  static void Take(FileNode& directory, std::string_view name);

  std::shared_ptr<FileUse> use_;
  std::uint64_t next_number_;
  NodePtr root_;
};

}  // namespace caisson::wasm
