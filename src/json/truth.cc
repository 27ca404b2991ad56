// SPDX-License-Identifier: Apache-2.0
#include "json/truth.h"

namespace caisson::json {

bool Truth(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return false;
    case Value::Kind::kBool:
      return value.as_bool();
    case Value::Kind::kInt:
      return value.as_int() != 0;
    case Value::Kind::kBigInt:
      return true;
    case Value::Kind::kDouble:
      return value.as_double() != 0;
    case Value::Kind::kString:
      return !value.as_string().empty();
    case Value::Kind::kArray:
      return !value.as_array().empty();
    case Value::Kind::kObject:
      return !value.as_object().empty();
  }
  return false;
}

}  // namespace caisson::json
