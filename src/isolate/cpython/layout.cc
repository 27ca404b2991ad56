// SPDX-License-Identifier: Apache-2.0
#include "isolate/cpython/layout.h"

#include <fmt/format.h>

#include <utility>

#include "base/digest/sha256.h"
#include "isolate/cpython/pins.h"
#include "isolate/cpython/stored_zip.h"

namespace caisson::isolate::cpython {
namespace {

// All below /usr; the paths are those in the tree that is hung in there.
constexpr std::string_view kStdlibPath = "/local/lib/python315.zip";
constexpr std::string_view kSiteDirectory = "/local/lib/site/";
constexpr std::string_view kHarnessDirectory = "/local/lib/caisson/";

// Beyond any number of a guest's own files.
constexpr std::uint64_t kSharedNumbers = std::uint64_t{1} << 32;

bool IsHarness(std::string_view name) { return name.find('/') == std::string_view::npos; }

}  // namespace

std::string_view FindGuestSource(std::string_view name) {
  for (const GuestSource& source : GuestSources()) {
    if (source.name == name) return source.text;
  }
  return {};
}

Result<GuestFiles> MapGuestFiles(const std::string& directory, wasm::CheckedFiles& checked) {
  GuestFiles files;
  CAISSON_ASSIGN(files.stdlib_,
                 wasm::MapArtifact(directory + "/stdlib.zip", pins::kStdlibSha256, checked));
  CAISSON_ASSIGN(files.site_,
                 wasm::MapArtifact(directory + "/site.zip", pins::kSiteSha256, checked));
  CAISSON_ASSIGN(const std::vector<ZipMember> members, ListStoredZip(files.site_.bytes()));
  wasm::FileTree tree({}, kSharedNumbers);
  tree.AddView(kStdlibPath, files.stdlib_.bytes());
  for (const ZipMember& member : members) {
    tree.AddView(fmt::format("{}{}", kSiteDirectory, member.name), member.bytes);
  }
  for (const GuestSource& source : GuestSources()) {
    if (!IsHarness(source.name)) continue;
    tree.AddView(fmt::format("{}{}", kHarnessDirectory, source.name), source.text);
  }
  files.tree_ = tree.root();
  return files;
}

wasm::WasiSystemOptions SystemOptions(std::uint64_t disk_bytes) {
  wasm::WasiSystemOptions options;
  options.arguments = {"python"};
  options.environment = {"HOME=/workspace", "PATH=/usr/bin", "TMPDIR=/tmp", "LANG=C.UTF-8"};
  options.files.bytes = disk_bytes;
  return options;
}

void FillSystem(wasm::WasiSystem& system, const GuestFiles& files) {
  wasm::FileTree& tree = system.files();
  tree.Attach("usr", files.tree());
  tree.AddDirectory("/tmp", true);
  tree.AddDirectory("/workspace", true);
  system.OpenRoot();
}

std::string LayoutDigest() {
  std::string all = fmt::format("layout {}\nstdlib {}\nsite {}\nstack {}\n", kLayoutVersion,
                                pins::kStdlibSha256, pins::kSiteSha256, kGuestStackBytes);
  for (const GuestSource& source : GuestSources()) {
    all += fmt::format("{} {}\n", source.name, digest::Sha256Hex(source.text));
  }
  return digest::Sha256Hex(all);
}

}  // namespace caisson::isolate::cpython
