// SPDX-License-Identifier: Apache-2.0
// What a run hands on while it runs, checked: whoever receives it may put the texts into a document
// or a line of his own without looking at them.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::block {

enum class DeliveryKind : std::uint8_t { kDone, kPart, kDebug, kWarning, kStdout, kStderr };

struct Delivery {
  DeliveryKind kind = DeliveryKind::kDone;
  // Valid until Take returns. kStdout, kStderr: UTF-8. Else JSON without raw line ends: of kDone
  // and kDebug a value, of kWarning the members of an object, of kPart the items of a list. A kDone
  // whose `parts` is not 0 holds the last items of that list, or nothing. Members and items stand
  // without the brackets around them.
  std::string_view text;
  bool final = true;        // kDone
  std::uint64_t parts = 0;  // kDone
};

enum class Taken : std::uint8_t {
  kYes,
  kGone,     // nobody wants it any more: the run is to be cancelled
  kTooLate,  // the receiver took so long that the wall clock of the run is over
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // In order, on the thread of the run. While it blocks, the script soon blocks too.
  virtual Taken Take(const Delivery& delivery) = 0;
};

}  // namespace caisson::block
