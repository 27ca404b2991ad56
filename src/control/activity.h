// SPDX-License-Identifier: Apache-2.0
// Who uses which sandbox right now, and since when nobody has. A running command, an open stream, a
// tunnel, a preview request and an attached terminal hold a Use; an idle sandbox has none. Kept in
// memory: after a restart everything counts as just used. Times are those of the clock that it is
// given, which must not jump. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "store/store.h"

namespace caisson::control {

class Activity;

// Holds a sandbox in use as long as it lives. The Activity must outlive it.
class Use {
 public:
  Use(Activity& activity, std::string sandbox);
  Use(Use&& other) noexcept;
  Use& operator=(Use&&) = delete;
  ~Use();

 private:
  Activity* activity_;
  std::string sandbox_;
};

class Activity {
 public:
  using Clock = std::function<store::Milliseconds()>;
  explicit Activity(Clock now) : now_(std::move(now)) {}

  // Since when nobody has used it; a sandbox that is seen for the first time was used just now.
  // Empty while somebody does.
  std::optional<store::Milliseconds> IdleSince(const std::string& sandbox);
  bool InUse(const std::string& sandbox);
  // Counts as a use that is over at once.
  void Touch(const std::string& sandbox);
  void Forget(const std::string& sandbox);

 private:
  friend class Use;
  struct Entry {
    int users = 0;
    store::Milliseconds last = 0;
  };
  void Begin(const std::string& sandbox);
  void End(const std::string& sandbox);

  Clock now_;
  std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace caisson::control
