// SPDX-License-Identifier: Apache-2.0
#include "wasm/module_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/digest/sha256.h"
#include "errors/isolate.h"
#include "errors/wasm.h"
#include "os/fd.h"
#include "os/syscall_error.h"
#include "wasm/owned_file.h"

namespace caisson::wasm {
namespace {

// An entry: magic, sha256 (hex) of all that follows, length of the note (8 hex digits), the note,
// the engine's serialized module.
constexpr std::string_view kMagic = "caisson-module-1\n";
constexpr std::size_t kHexDigest = 64;
constexpr std::size_t kLengthDigits = 8;

std::string Entry(std::string_view note, std::string_view code) {
  std::string body = fmt::format("{:08x}", note.size());
  body += note;
  body += code;
  std::string entry(kMagic);
  entry += digest::Sha256Hex(body);
  entry += body;
  return entry;
}

struct Parts {
  std::string_view note;
  std::string_view code;
};

std::optional<Parts> Split(std::string_view entry) {
  if (!entry.starts_with(kMagic)) return std::nullopt;
  entry.remove_prefix(kMagic.size());
  if (entry.size() < kHexDigest + kLengthDigits) return std::nullopt;
  const std::string_view digest = entry.substr(0, kHexDigest);
  const std::string_view body = entry.substr(kHexDigest);
  if (digest::Sha256Hex(body) != digest) return std::nullopt;
  const std::size_t length =
      std::strtoul(std::string(body.substr(0, kLengthDigits)).c_str(), nullptr, 16);
  if (length > body.size() - kLengthDigits) return std::nullopt;
  return Parts{body.substr(kLengthDigits, length), body.substr(kLengthDigits + length)};
}

Result<ModuleHandle> Deserialize(const Engine& engine, std::string_view code) {
  wasmtime_module_t* module = nullptr;
  const ErrorHandle error(wasmtime_module_deserialize(
      engine.get(), reinterpret_cast<const std::uint8_t*>(code.data()), code.size(), &module));
  if (error) return Fail(EngineFailure("A compiled module cannot be loaded", error, nullptr));
  return ModuleHandle(module);
}

Result<std::string> Serialize(const wasmtime_module_t* module) {
  wasm_byte_vec_t bytes;
  const ErrorHandle error(wasmtime_module_serialize(module, &bytes));
  if (error) return Fail(EngineFailure("A compiled module cannot be stored", error, nullptr));
  std::string code(bytes.data, bytes.size);
  wasm_byte_vec_delete(&bytes);
  return code;
}

// Of a large module two files: the code under its own digest, and a reference with that digest
// under the key. The reference comes last, so a crash leaves at worst code that nobody refers to.
std::string CodePath(const std::string& directory, std::string_view digest) {
  return fmt::format("{}/{}.code", directory, digest);
}

bool IsDigest(std::string_view text) {
  return text.size() == kHexDigest &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::unexpected<Status> NotPrepared(std::string_view why) {
  return Fail(errors::kIsolateNotPrepared,
              fmt::format("The compiled code of this runtime is not in the cache: {}. Prepare the "
                          "runtime (caisson runtimes install cpython); that takes some minutes, "
                          "once.",
                          why));
}

}  // namespace

Result<ModuleCache> ModuleCache::Open(const std::string& directory) {
  if (directory.empty()) {
    return Fail(errors::kWasmCache,
                "No place for the module cache: set CAISSON_CACHE_DIR or HOME.");
  }
  const std::filesystem::path path(directory);
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return CacheFailure(directory, error.message());
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return CacheFailure(directory, os::ErrnoText(errno));
  }
  struct stat info{};
  if (stat(directory.c_str(), &info) != 0) return CacheFailure(directory, os::ErrnoText(errno));
  if (!S_ISDIR(info.st_mode)) return CacheFailure(directory, "it is no directory");
  if (info.st_uid != geteuid()) {
    return CacheFailure(directory,
                        fmt::format("it belongs to user {}, not to {}", info.st_uid, geteuid()));
  }
  if ((info.st_mode & 022) != 0) {
    return CacheFailure(
        directory, fmt::format("group or others may write it (mode {:o})", info.st_mode & 07777));
  }
  return ModuleCache(directory);
}

std::string ModuleCache::PathFor(const Engine& engine, std::string_view identity) const {
  const std::string key = fmt::format("{}\n{}", identity, engine.fingerprint());
  return fmt::format("{}/{}.cwasm", directory_, digest::Sha256Hex(key));
}

Result<ModuleHandle> Compile(const Engine& engine, std::string_view binary) {
  wasmtime_module_t* module = nullptr;
  const ErrorHandle error(wasmtime_module_new(
      engine.get(), reinterpret_cast<const std::uint8_t*>(binary.data()), binary.size(), &module));
  if (error) return Fail(EngineFailure("A module cannot be compiled", error, nullptr));
  return ModuleHandle(module);
}

Result<CachedModule> ModuleCache::Load(const Engine& engine, std::string_view identity,
                                       const std::function<Result<ModuleSource>()>& make) const {
  const std::string path = PathFor(engine, identity);
  if (const std::optional<std::string> bytes = ReadOwned(path, kMagic)) {
    if (const std::optional<Parts> parts = Split(*bytes)) {
      if (Result<ModuleHandle> module = Deserialize(engine, parts->code)) {
        return CachedModule{*std::move(module), std::string(parts->note), false};
      }
    }
  }
  CAISSON_ASSIGN(ModuleSource source, make());
  CAISSON_ASSIGN(ModuleHandle module, Compile(engine, source.binary));
  CAISSON_ASSIGN(const std::string code, Serialize(module.get()));
  CAISSON_TRY(WriteOwned(directory_, path, Entry(source.note, code)));
  return CachedModule{std::move(module), std::move(source.note), true};
}

bool ModuleCache::HasMapped(const Engine& engine, std::string_view identity,
                            CheckedFiles& checked) const {
  const std::optional<std::string> digest = ReadOwned(PathFor(engine, identity) + ".ref");
  if (!digest || !IsDigest(*digest)) return false;
  const os::UniqueFd fd = OpenOwned(CodePath(directory_, *digest));
  return fd.valid() && checked.Holds(fd.get(), *digest).value_or(false);
}

Result<ModuleHandle> ModuleCache::LoadMapped(const Engine& engine, std::string_view identity,
                                             CheckedFiles& checked) const {
  const std::optional<std::string> digest = ReadOwned(PathFor(engine, identity) + ".ref");
  if (!digest || !IsDigest(*digest)) {
    return NotPrepared("nothing was compiled for this artifact, engine and processor");
  }
  const os::UniqueFd fd = OpenOwned(CodePath(directory_, *digest));
  if (!fd.valid()) return NotPrepared("the file with the code is missing or not ours alone");
  CAISSON_ASSIGN(const bool holds, checked.Holds(fd.get(), *digest));
  if (!holds) return NotPrepared("the file with the code is damaged");
  // By the descriptor: the very file that was checked.
  const std::string path = fmt::format("/proc/self/fd/{}", fd.get());
  wasmtime_module_t* module = nullptr;
  const ErrorHandle error(wasmtime_module_deserialize_file(engine.get(), path.c_str(), &module));
  if (error) return Fail(EngineFailure("A compiled module cannot be loaded", error, nullptr));
  return ModuleHandle(module);
}

Result<void> ModuleCache::CompileMapped(const Engine& engine, std::string_view identity,
                                        std::string_view binary) const {
  CAISSON_ASSIGN(const ModuleHandle module, Compile(engine, binary));
  CAISSON_ASSIGN(const std::string code, Serialize(module.get()));
  const std::string digest = digest::Sha256Hex(code);
  CAISSON_TRY(WriteOwned(directory_, CodePath(directory_, digest), code));
  return WriteOwned(directory_, PathFor(engine, identity) + ".ref", digest);
}

}  // namespace caisson::wasm
