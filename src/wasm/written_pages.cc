// SPDX-License-Identifier: Apache-2.0
#include "wasm/written_pages.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace caisson::wasm {
namespace {

constexpr std::size_t kPage = 4096;

// From linux/fs.h of Linux 6.7, which older headers lack.
struct ScanRegion {
  std::uint64_t start, end, categories;
};
struct ScanArgument {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
      category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t kIsFile = 1u << 2;
constexpr std::uint64_t kIsPresent = 1u << 3;
constexpr std::uint64_t kIsSwapped = 1u << 4;

std::uint64_t Address(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

void Add(std::vector<PageRange>& ranges, std::byte* begin, std::size_t bytes) {
  if (!ranges.empty() && ranges.back().begin + ranges.back().bytes == begin) {
    ranges.back().bytes += bytes;
  } else {
    ranges.push_back({begin, bytes});
  }
}

// A private mapping of a file of four pages, the second and fourth written.
class Sample {
 public:
  static constexpr std::size_t kBytes = 4 * kPage;

  Sample() : fd_(memfd_create("caisson-sample", MFD_CLOEXEC)) {
    if (!fd_.valid() || ftruncate(fd_.get(), kBytes) != 0) return;
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_.get(), 0);
    if (at == MAP_FAILED) return;
    begin_ = static_cast<std::byte*>(at);
    const volatile std::byte read = begin_[0];
    static_cast<void>(read);
    begin_[kPage] = begin_[3 * kPage + 7] = std::byte{1};
  }
  ~Sample() {
    if (begin_ != nullptr) munmap(begin_, kBytes);
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  std::byte* begin() const { return begin_; }

 private:
  os::UniqueFd fd_;
  std::byte* begin_ = nullptr;
};

}  // namespace

unsigned long PagemapScanRequest() { return kPagemapScan; }

WrittenPages WrittenPages::Open(PageSearch best) {
  WrittenPages pages;
  if (best == PageSearch::kNone) return pages;
  pages.pagemap_.Reset(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!pages.pagemap_.valid()) return pages;
  for (const PageSearch way : {PageSearch::kScan, PageSearch::kRead}) {
    if (way < best) continue;
    pages.way_ = way;
    if (pages.Works()) return pages;
  }
  pages.way_ = PageSearch::kNone;
  pages.pagemap_.Reset();
  return pages;
}

bool WrittenPages::Works() const {
  const Sample sample;
  if (sample.begin() == nullptr) return false;
  const auto found = Find(sample.begin(), Sample::kBytes);
  return found && found->size() == 2 && (*found)[0].begin == sample.begin() + kPage &&
         (*found)[0].bytes == kPage && (*found)[1].begin == sample.begin() + 3 * kPage &&
         (*found)[1].bytes == kPage;
}

std::optional<std::vector<PageRange>> WrittenPages::Find(std::byte* begin,
                                                         std::size_t bytes) const {
  switch (way_) {
    case PageSearch::kScan:
      return Scan(begin, bytes);
    case PageSearch::kRead:
      return Read(begin, bytes);
    case PageSearch::kNone:
      break;
  }
  return std::nullopt;
}

std::optional<std::vector<PageRange>> WrittenPages::Scan(std::byte* begin,
                                                         std::size_t bytes) const {
  std::vector<PageRange> ranges;
  std::vector<ScanRegion> regions(1024);
  ScanArgument scan{};
  scan.size = sizeof scan;
  scan.start = Address(begin);
  scan.end = scan.start + bytes;
  scan.vec = reinterpret_cast<std::uintptr_t>(regions.data());
  scan.vec_len = regions.size();
  scan.category_inverted = kIsFile;
  scan.category_mask = kIsFile;  // inverted: pages that are not the file's
  scan.category_anyof_mask = kIsPresent | kIsSwapped;
  scan.return_mask = kIsPresent;
  while (scan.start < scan.end) {
    const int count = ioctl(pagemap_.get(), kPagemapScan, &scan);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || scan.walk_end <= scan.start) return std::nullopt;
    for (int i = 0; i < count; ++i) {
      const ScanRegion& region = regions[static_cast<std::size_t>(i)];
      Add(ranges, begin + (region.start - Address(begin)), region.end - region.start);
    }
    scan.start = scan.walk_end;
  }
  return ranges;
}

std::optional<std::vector<PageRange>> WrittenPages::Read(std::byte* begin,
                                                         std::size_t bytes) const {
  std::vector<PageRange> ranges;
  std::array<std::uint64_t, 1024> entries;
  for (std::size_t page = 0; page < bytes / kPage;) {
    const std::size_t wanted = std::min(entries.size(), bytes / kPage - page);
    const auto offset = static_cast<off_t>((Address(begin) / kPage + page) * sizeof entries[0]);
    const ssize_t got = pread(pagemap_.get(), entries.data(), wanted * sizeof entries[0], offset);
    if (got <= 0) return std::nullopt;
    const std::size_t count = static_cast<std::size_t>(got) / sizeof entries[0];
    for (std::size_t i = 0; i < count; ++i) {
      const bool there = (entries[i] >> 62) != 0;  // present or swapped
      const bool of_file = (entries[i] >> 61 & 1) != 0;
      if (there && !of_file) Add(ranges, begin + (page + i) * kPage, kPage);
    }
    page += count;
  }
  return ranges;
}

}  // namespace caisson::wasm
