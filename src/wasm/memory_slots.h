// SPDX-License-Identifier: Apache-2.0
// Linear memories that begin as a MemoryImage. A slot is a reservation of address space with the
// image mapped copy-on-write at its start; it serves one instance after another. Between two, the
// pages that the last one wrote are copied back from the image, so that the next finds the image to
// the byte and takes no faults for pages that are there already.
//
// A pool belongs to one image. Thread-safe; a slot belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "wasm/memory_image.h"
#include "wasm/written_pages.h"

namespace caisson::wasm {

// All that 32 bits can address, and what an address may have added to it as a constant.
inline constexpr std::uint64_t kSlotReservation = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kSlotGuard = 32u << 20;

class MemorySlot {
 public:
  ~MemorySlot();
  MemorySlot(const MemorySlot&) = delete;
  MemorySlot& operator=(const MemorySlot&) = delete;

  std::byte* data() const { return base_; }
  std::uint64_t size() const { return size_; }
  // The most that it may grow to, for the instance at hand.
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  // Whether growth was refused by that limit since the slot was taken.
  bool growth_refused() const { return growth_refused_; }
  // False when there may be no more.
  bool Grow(std::uint64_t bytes);

 private:
  friend class SlotPool;
  MemorySlot(std::byte* base, std::uint64_t size) : base_(base), size_(size), readable_(size) {}

  std::byte* base_;
  std::uint64_t size_;
  std::uint64_t readable_;  // the high-water mark of size_ since the last reset
  std::uint64_t limit_ = 0;
  bool growth_refused_ = false;
};

struct SlotOptions {
  // Beyond so many written pages the slot drops its own copies instead of copying back, so that one
  // large call does not keep its memory for ever.
  std::size_t most_kept_pages = 8192;
  // Compares the whole memory with the image after each reset; a difference is fatal.
  bool verify = false;
};

struct SlotStats {
  std::uint64_t made = 0;
  std::uint64_t copied_back = 0;  // resets
  std::uint64_t dropped = 0;      // resets by giving all own pages back
  std::uint64_t verified = 0;
  std::uint64_t last_written_pages = 0;
};

class SlotPool {
 public:
  // `search` outlives the pool.
  SlotPool(std::shared_ptr<const MemoryImage> image, const WrittenPages& search,
           const SlotOptions& options)
      : image_(std::move(image)), search_(search), options_(options) {}

  const MemoryImage& image() const { return *image_; }

  // A slot whose memory is the image. Takes a clean one, resets a used one, or makes one. Fails
  // with os.syscall.
  Result<std::unique_ptr<MemorySlot>> Take();
  // Gives a slot back as it is; it is reset by Recover or, at the latest, by Take.
  void Return(std::unique_ptr<MemorySlot> slot);
  // Resets the used slots: for a quiet moment.
  void Recover();
  // Has at least `count` clean slots, with the pages that calls usually write already there.
  Result<void> Prepare(std::size_t count);

  SlotStats stats() const;

 private:
  Result<std::unique_ptr<MemorySlot>> MakeSlot();
  // False: the slot cannot be used again.
  bool Reset(MemorySlot& slot);
  void Populate(MemorySlot& slot);
  void Learn(const std::vector<PageRange>& written, const MemorySlot& slot);

  const std::shared_ptr<const MemoryImage> image_;
  const WrittenPages& search_;
  const SlotOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<MemorySlot>> clean_;
  std::vector<std::unique_ptr<MemorySlot>> used_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> usual_;  // offset, bytes
  SlotStats stats_;
};

}  // namespace caisson::wasm
