// SPDX-License-Identifier: Apache-2.0
#include "wasm/memory_slots.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "os/syscall_error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace caisson::wasm {
namespace {

bool MapImage(std::byte* base, const MemoryImage& image) {
  return mmap(base, image.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, image.fd(), 0) !=
         MAP_FAILED;
}

}  // namespace

MemorySlot::~MemorySlot() { munmap(base_, kSlotReservation + kSlotGuard); }

bool MemorySlot::Grow(std::uint64_t bytes) {
  if (bytes > limit_ || bytes > kSlotReservation) {
    growth_refused_ = true;
    return false;
  }
  if (bytes > readable_) {
    if (mprotect(base_ + readable_, bytes - readable_, PROT_READ | PROT_WRITE) != 0) {
      growth_refused_ = true;
      return false;
    }
    readable_ = bytes;
  }
  size_ = bytes;
  return true;
}

Result<std::unique_ptr<MemorySlot>> SlotPool::MakeSlot() {
  void* at = mmap(nullptr, kSlotReservation + kSlotGuard, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return os::SyscallError("reserve 4 GiB of address space");
  std::unique_ptr<MemorySlot> slot(new MemorySlot(static_cast<std::byte*>(at), image_->size()));
  if (!MapImage(slot->base_, *image_)) return os::SyscallError("map a memory image");
  const std::lock_guard lock(mutex_);
  ++stats_.made;
  return slot;
}

Result<std::unique_ptr<MemorySlot>> SlotPool::Take() {
  for (;;) {
    std::unique_ptr<MemorySlot> slot;
    bool is_clean = false;
    {
      const std::lock_guard lock(mutex_);
      is_clean = !clean_.empty();
      auto& from = is_clean ? clean_ : used_;
      if (from.empty()) break;
      slot = std::move(from.back());
      from.pop_back();
    }
    if (is_clean || Reset(*slot)) return slot;
  }
  return MakeSlot();
}

void SlotPool::Return(std::unique_ptr<MemorySlot> slot) {
  const std::lock_guard lock(mutex_);
  used_.push_back(std::move(slot));
}

void SlotPool::Recover() {
  for (;;) {
    std::unique_ptr<MemorySlot> slot;
    {
      const std::lock_guard lock(mutex_);
      if (used_.empty()) return;
      slot = std::move(used_.back());
      used_.pop_back();
    }
    if (!Reset(*slot)) continue;
    const std::lock_guard lock(mutex_);
    clean_.push_back(std::move(slot));
  }
}

Result<void> SlotPool::Prepare(std::size_t count) {
  Recover();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (clean_.size() >= count) return {};
    }
    CAISSON_ASSIGN(std::unique_ptr<MemorySlot> slot, MakeSlot());
    Populate(*slot);
    const std::lock_guard lock(mutex_);
    clean_.push_back(std::move(slot));
  }
}

// Only saves faults: where the kernel cannot, they are taken later.
void SlotPool::Populate(MemorySlot& slot) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> usual;
  {
    const std::lock_guard lock(mutex_);
    usual = usual_;
  }
  for (const auto& [offset, bytes] : usual) {
    if (madvise(slot.base_ + offset, bytes, MADV_POPULATE_WRITE) != 0) return;
  }
}

void SlotPool::Learn(const std::vector<PageRange>& written, const MemorySlot& slot) {
  const std::lock_guard lock(mutex_);
  if (!usual_.empty()) return;
  for (const PageRange& range : written) {
    usual_.emplace_back(static_cast<std::uint64_t>(range.begin - slot.base_), range.bytes);
  }
}

bool SlotPool::Reset(MemorySlot& slot) {
  if (slot.readable_ > image_->size()) {
    // New mapping instead of madvise: gives the pages back and takes the access away in one step.
    void* const grown = slot.base_ + image_->size();
    if (mmap(grown, slot.readable_ - image_->size(), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
      return false;
    }
  }
  slot.size_ = slot.readable_ = image_->size();
  slot.growth_refused_ = false;

  const std::optional<std::vector<PageRange>> written = search_.Find(slot.base_, image_->size());
  std::size_t pages = 0;
  if (written) {
    for (const PageRange& range : *written) pages += range.bytes / kPageBytes;
  }
  const bool copy = written && pages <= options_.most_kept_pages;
  if (copy) {
    for (const PageRange& range : *written) {
      std::memcpy(range.begin, image_->bytes().data() + (range.begin - slot.base_), range.bytes);
    }
    Learn(*written, slot);
  } else if (madvise(slot.base_, image_->size(), MADV_DONTNEED) != 0) {
    return false;
  } else {
    Populate(slot);
  }
  if (options_.verify && std::memcmp(slot.base_, image_->bytes().data(), image_->size()) != 0) {
    std::fputs("caisson: a reset memory differs from its image; this must never happen\n", stderr);
    std::abort();
  }
  const std::lock_guard lock(mutex_);
  ++(copy ? stats_.copied_back : stats_.dropped);
  stats_.last_written_pages = pages;
  if (options_.verify) ++stats_.verified;
  return true;
}

SlotStats SlotPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace caisson::wasm
