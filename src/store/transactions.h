// SPDX-License-Identifier: Apache-2.0
// A store as its users see it: transactions over rows of some kind. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace caisson::store {

template <typename Rows>
class Transactions {
 public:
  virtual ~Transactions() = default;

  // One transaction; what `work` fails with is returned, and nothing of it is kept then. Writers
  // wait for one another, also between processes; readers wait for nobody.
  template <typename Work>
  auto Write(Work work) -> std::invoke_result_t<Work, Rows&> {
    return Run<std::invoke_result_t<Work, Rows&>>(true, std::move(work));
  }
  // A consistent view of one moment; `work` must not change anything.
  template <typename Work>
  auto Read(Work work) -> std::invoke_result_t<Work, Rows&> {
    return Run<std::invoke_result_t<Work, Rows&>>(false, std::move(work));
  }

 protected:
  virtual Result<void> Transact(bool writes, const std::function<Result<void>(Rows&)>& work) = 0;

 private:
  template <typename Returned, typename Work>
  Returned Run(bool writes, Work work) {
    std::optional<Returned> returned;
    CAISSON_TRY(Transact(writes, [&](Rows& rows) -> Result<void> {
      returned = work(rows);
      if (!*returned) return Fail(returned->error());
      return {};
    }));
    return *std::move(returned);
  }
};

}  // namespace caisson::store
