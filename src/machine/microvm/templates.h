// SPDX-License-Identifier: Apache-2.0
// Machines that were booted once and saved before they had a disk and before anybody used them:
// <directory>/<key>/ has memory, state and template.json. New machines go on from them,
// copy-on-write, with a disk of their own. No code of a user has run in one, so that they are
// everybody's. They are made one after the other, in the background; all of them together take no
// more than was said: the one that was not used for the longest time goes first, and never one that
// a machine goes on from, which would free nothing. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/status.h"
#include "machine/microvm/yard.h"

namespace caisson::machine::microvm {

class Templates {
 public:
  // As long as one lives, the directory is there.
  class Held {
   public:
    Held(Templates& templates, std::string key);
    Held(Held&& other) noexcept;
    Held& operator=(Held&&) = delete;
    ~Held();
    const std::string& directory() const { return directory_; }

   private:
    Templates* templates_;
    std::string key_;
    std::string directory_;
  };

  explicit Templates(Yard& yard) : yard_(yard) {}
  ~Templates();
  Templates(const Templates&) = delete;
  Templates& operator=(const Templates&) = delete;

  // Removes what was not finished, is for other boot files, or of an image that is gone; then
  // begins to make those that shall be prepared. Once, before anything else.
  void Begin();
  // The template for such machines. Has one made when there is none, or when it is not what was
  // written, and waits for it as long as MicrovmOptions say. Fails with machine.preparing when that
  // is over: it is made all the same, and whoever asks again finds it. Else with
  // machine.vm_failed, machine.agent_lost, machine.no_image; machine.full when every other
  // template is in use and this one would be too much.
  Result<Held> Get(const Shape& shape);
  // The same of one that is there, which is not waited for.
  std::optional<Held> Find(const Shape& shape);

 private:
  enum class State : std::uint8_t { kNone, kFound, kWaits, kIsMade, kReady };
  struct Entry {
    State state = State::kNone;  // kFound: an earlier helper's, not looked at yet
    Shape shape;
    std::uint64_t bytes = 0;
    std::int64_t used = 0;  // when, by the host's clock
    int holds = 0;
    std::uint64_t attempts = 0;
    Status failure;  // of the last one
  };

  std::string KeyOf(const Shape& shape) const;
  std::string DirectoryOf(const std::string& key) const;
  void Clean();
  void Adopt(const std::string& key);
  void Ask(const std::string& key, Entry& entry, const Shape& shape);
  Held Hold(const std::string& key, Entry& entry);
  void Release(const std::string& key);
  void Work(const std::stop_token& stop);
  void Prepare();
  Result<void> Make(const std::string& key, const Shape& shape, const std::stop_token& stop);
  Result<void> Check(const std::string& directory) const;
  Result<void> Build(const Shape& shape, const std::string& directory, const std::stop_token& stop);
  Result<void> Save(Slot& slot, const Shape& shape, const std::string& directory);
  Result<void> MakeRoom(const std::string& key, std::uint64_t bytes);
  bool IsInUse(const std::string& key, const Entry& entry) const;

  Yard& yard_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;
  std::size_t waiters_ = 0;
  std::jthread worker_;
};

}  // namespace caisson::machine::microvm
