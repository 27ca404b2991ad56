// SPDX-License-Identifier: Apache-2.0
#include "vault/key.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "errors/vault.h"
#include "os/fd.h"
#include "os/run_program.h"
#include "os/write_all.h"

namespace caisson::vault {
namespace {

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kDigits = 2 * Key::kBytes;

std::unexpected<Status> Wrong(std::string message) {
  return Fail(Status{.code = errors::kVaultKey,
                     .message = std::move(message),
                     .details = "caisson secrets new-key FILE makes one"});
}

std::string_view Strip(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

void Wipe(std::string& text) { sodium_memzero(text.data(), text.size()); }

Result<std::string> ReadKeyFile(const std::string& path) {
  const os::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    return Wrong("the key file " + path + " cannot be read: " + std::strerror(errno));
  }
  struct stat info{};
  if (fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077u) != 0) {
    return Fail(Status{.code = errors::kVaultKey,
                       .message = "others than its owner may use the key file " + path,
                       .details = "chmod 600 it; if others may have read it, make a new key and "
                                  "change to that (caisson secrets rotate-key)"});
  }
  std::string text(kMaxText, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Wrong("the key file " + path + " cannot be read: " + std::strerror(errno));
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

Result<std::string> RunKeyCommand(const std::string& command) {
  auto end = os::RunProgram({.arguments = {"timeout", "60", "sh", "-c", command}});
  if (!end) return Wrong("the key command cannot be run: " + end.error().message);
  if (!end->succeeded()) {
    return Wrong("the key command failed: it " + ToText(end->status) +
                 (end->messages.empty() ? "" : ": " + end->messages));
  }
  return std::move(end->output);
}

Result<std::string> ReadKeyText(std::string_view place) {
  if (place.starts_with("env:")) {
    const std::string name(place.substr(4));
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return Wrong("the environment variable " + name + " is not set");
    return std::string(value);
  }
  if (place.starts_with("@")) return ReadKeyFile(std::string(place.substr(1)));
  if (place.starts_with("cmd:")) return RunKeyCommand(std::string(place.substr(4)));
  // It may be a key itself: it is not repeated.
  return Wrong("the place of the vault's key must be env:VARIABLE, @FILE or cmd:COMMAND");
}

}  // namespace

void Key::Free::operator()(unsigned char* bytes) const { sodium_free(bytes); }

Result<Key> Key::Empty() {
  if (sodium_init() < 0) return Wrong("libsodium cannot be used");
  Key key;
  key.bytes_.reset(static_cast<unsigned char*>(sodium_malloc(kBytes)));
  if (key.bytes_ == nullptr) return Wrong("no locked memory can be had for the key");
  return key;
}

Result<Key> Key::Random() {
  CAISSON_ASSIGN(Key key, Empty());
  randombytes_buf(key.bytes_.get(), kBytes);
  return key;
}

Result<Key> Key::Parse(std::string_view text) {
  text = Strip(text);
  CAISSON_ASSIGN(Key key, Empty());
  std::size_t length = 0;
  const char* end = nullptr;
  if (text.size() != kDigits ||
      sodium_hex2bin(key.bytes_.get(), kBytes, text.data(), text.size(), nullptr, &length, &end) !=
          0 ||
      length != kBytes) {
    return Wrong("the vault's key must be " + std::to_string(kDigits) + " hexadecimal digits");
  }
  return key;
}

std::string Key::ToText() const {
  std::string text(kDigits + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_.get(), kBytes);
  text.pop_back();
  return text;
}

Result<Key> ReadKey(std::string_view place) {
  CAISSON_ASSIGN(std::string text, ReadKeyText(place));
  auto key = Key::Parse(text);
  Wipe(text);
  return key;
}

Result<void> WriteNewKey(const std::string& path) {
  CAISSON_ASSIGN(const Key key, Key::Random());
  const os::UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) {
    return Fail(
        Status{.code = errors::kVaultKey,
               .message = "the key file " + path + " cannot be made: " + std::strerror(errno),
               .details = "name a file that does not exist yet, where you may write"});
  }
  std::string text = key.ToText() + "\n";
  const int error = os::WriteAll(file.get(), text);
  Wipe(text);
  if (error == 0 && fsync(file.get()) == 0) return {};
  return Wrong("the key file " + path +
               " cannot be written: " + std::strerror(error != 0 ? error : errno));
}

}  // namespace caisson::vault
