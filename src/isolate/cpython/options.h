// SPDX-License-Identifier: Apache-2.0
// What the CPython runtime is made of and where its parts are. The same options, word for word, for
// whoever prepares the runtime and for the workers that use what was prepared.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace caisson::isolate::cpython {

struct CPythonOptions {
  std::string directory;  // python.wasm, stdlib.zip, site.zip; empty: DefaultDirectory()
  std::string cache_dir;  // code and snapshots; empty: wasm::DefaultCacheDir()
  // Prepared interpreters, each with more imported than the one before it. A run takes the first
  // that has all modules which its source imports, else the one with the most of them.
  std::vector<std::string> sets = {"base", "pandas", "science"};
  // Snapshots are made per tenant: hash seeds are in them.
  std::string tenant;
  // An older snapshot is made anew, and with it the hash seed.
  std::chrono::hours max_snapshot_age{24 * 30};
  std::uint64_t max_snapshot_bytes = std::uint64_t{2} << 30;  // of all on disk
  // wasm::CheckedFiles::stamps of a process that has loaded the same: those files are not read
  // again to compute their digests.
  std::vector<std::string> checked;
  // Compares each reset memory with its image; for tests, since it costs milliseconds.
  bool verify_resets = false;
};

// $CAISSON_DATA_DIR/cpython, else the path known at build time.
std::string DefaultDirectory();
// Whether its files are there at all; their bytes are not checked.
bool HasArtifact(const CPythonOptions& options);

// One word more for a command line that was made before the stamp was known.
std::string CheckedWord(const std::string& stamp);
// For a command line: what OptionsFromWords gets back.
std::vector<std::string> WordsFromOptions(const CPythonOptions& options);
// Fails with cli.usage.
Result<CPythonOptions> OptionsFromWords(const std::vector<std::string>& words);

// All sets that there are, the smallest first.
const std::vector<std::string>& KnownSets();

}  // namespace caisson::isolate::cpython
