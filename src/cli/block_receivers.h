// SPDX-License-Identifier: Apache-2.0
// What `caisson block run` does with what a run hands on: results to standard output, everything
// else to standard error; or all of it into one document; or the lines of block serve.
#pragma once

#include <string>

#include "base/status.h"
#include "block/outcome.h"
#include "block/receiver.h"
#include "cli/console.h"

namespace caisson::cli {

class BlockPrinter : public block::Receiver {
 public:
  // What is left to print once the run is over. Fails with cli.file_unwritable, also for what could
  // not be printed before.
  virtual Result<void> Finish(const block::BlockOutcome& outcome) = 0;
};

// One JSON a line per result. A list in parts is one line like any other, once it is complete.
class ResultPrinter final : public BlockPrinter {
 public:
  ResultPrinter(Console& console, bool debug) : console_(console), debug_(debug) {}
  block::Taken Take(const block::Delivery& delivery) override;
  Result<void> Finish(const block::BlockOutcome& outcome) override;

 private:
  Result<void> PrintResult(const block::Delivery& delivery);

  Console& console_;
  const bool debug_;
  std::string parts_;  // items of the list that is not complete
  Result<void> printed_;
};

// {"results":[{"final","result"}],"debug":[],"warnings":[],"stdout","stderr","end":{the outcome}}
class ReportPrinter final : public BlockPrinter {
 public:
  explicit ReportPrinter(Console& console) : console_(console) {}
  block::Taken Take(const block::Delivery& delivery) override;
  Result<void> Finish(const block::BlockOutcome& outcome) override;

 private:
  Console& console_;
  std::string parts_;
  std::string results_;
  std::string debug_;
  std::string warnings_;
  std::string stdout_;
  std::string stderr_;
};

// The lines of docs/block-protocol.md, with the id "run".
class FramePrinter final : public BlockPrinter {
 public:
  explicit FramePrinter(Console& console) : console_(console) {}
  block::Taken Take(const block::Delivery& delivery) override;
  Result<void> Finish(const block::BlockOutcome& outcome) override;

 private:
  Console& console_;
  Result<void> printed_;
};

}  // namespace caisson::cli
