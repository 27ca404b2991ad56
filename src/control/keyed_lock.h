// SPDX-License-Identifier: Apache-2.0
// One mutex for each name that is in use. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace caisson::control {

class KeyedLocks {
 public:
  class Held {
   public:
    Held(KeyedLocks& locks, const std::string& name)
        : locks_(locks), name_(name), mutex_(locks.Take(name)), lock_(*mutex_) {}
    // Not held, when somebody else holds it.
    Held(KeyedLocks& locks, const std::string& name, std::try_to_lock_t)
        : locks_(locks), name_(name), mutex_(locks.Take(name)), lock_(*mutex_, std::try_to_lock) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      if (lock_) lock_.unlock();
      lock_.release();
      mutex_.reset();
      locks_.Drop(name_);
    }
    explicit operator bool() const { return lock_.owns_lock(); }

   private:
    KeyedLocks& locks_;
    std::string name_;
    std::shared_ptr<std::mutex> mutex_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  std::shared_ptr<std::mutex> Take(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto& entry = locks_[name];
    if (!entry) entry = std::make_shared<std::mutex>();
    return entry;
  }
  void Drop(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto entry = locks_.find(name);
    if (entry != locks_.end() && entry->second.use_count() == 1) locks_.erase(entry);
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::mutex>> locks_;
};

}  // namespace caisson::control
