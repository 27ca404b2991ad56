// SPDX-License-Identifier: Apache-2.0
#include "isolate/worker/frame_text.h"

#include "base/error_catalogue.h"

namespace caisson::isolate {

void PutStatus(FrameWriter& writer, const Status& status) {
  writer.Text(status.code.name, kMaxNameBytes);
  writer.Text(status.message, kMaxMessageBytes);
  writer.Text(status.details, kMaxMessageBytes);
  for (std::uint32_t part :
       {status.span.line, status.span.column, status.span.end_line, status.span.end_column}) {
    writer.U32(part);
  }
}

Status GetStatus(BodyReader& reader) {
  Status status;
  // The catalogue's own constant: a code's name must outlive the status.
  status.code = ErrorCode{FindError(ErrorCode{reader.Text(kMaxNameBytes)}).code};
  status.message = ToValidUtf8(reader.Text(kMaxMessageBytes));
  status.details = ToValidUtf8(reader.Text(kMaxMessageBytes));
  status.span.line = reader.U32();
  status.span.column = reader.U32();
  status.span.end_line = reader.U32();
  status.span.end_column = reader.U32();
  return status;
}

}  // namespace caisson::isolate
