// SPDX-License-Identifier: Apache-2.0
// What the virtual machines of one driver use together: the state directory, the boot files, images
// as EROFS, and how machines are started and taken away. Needs root. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "images/store.h"
#include "machine/local.h"
#include "machine/microvm/boot_files.h"
#include "machine/microvm/empty_disks.h"
#include "machine/microvm/plan.h"
#include "machine/slot.h"
#include "machine/state.h"
#include "os/fd.h"
#include "os/run_program.h"

namespace caisson::machine::microvm {

// A template that shall be there before anybody asks for it.
struct PreparedShape {
  std::string image;  // name or id
  double cpus = 1;
  std::uint64_t memory_bytes = 256ull << 20;
};

struct MicrovmOptions {
  std::string state;   // directory; absolute, ours alone
  std::string cache;   // templates and images as EROFS; empty: in `state`
  std::string images;  // the store's
  std::string kernel;  // what FetchKernel has left
  std::string agent;   // programs and a library of ours
  std::string init;
  std::string vmm;
  std::string preload;
  std::string qemu;  // program; empty: qemu-system-x86_64 in PATH
  bool allow_emulation = false;
  bool try_kvm = true;
  // How long a machine may take to boot, by the host's clock.
  std::chrono::milliseconds boot_patience{90'000};
  // Of templates (templates.h): what they may take, the least recently used go first; and how long
  // a request waits for one that is being made.
  std::size_t max_templates = 16;
  std::uint64_t max_template_bytes = 8ull << 30;
  std::chrono::milliseconds template_patience{20'000};
  std::vector<PreparedShape> prepared;
  // Machines that wait for their name, of each kind that was asked for lately.
  std::size_t waiting = 2;
  std::function<void(const Status&)> not_prepared;  // one of them could not be made
};

// What of a machine decides about which template it can go on from.
struct Shape {
  std::string image;  // id
  std::uint64_t memory_bytes = 0;
  unsigned processors = 1;
  bool network = false;
  auto operator<=>(const Shape&) const = default;
};
unsigned ProcessorsOf(double cpus);

// What a machine is started from.
struct Origin {
  std::string base;       // a directory with memory and state; empty: it boots
  bool has_disk = false;  // this disk was mounted when they were saved; a template has had none
};

// One machine's directory, record and process.
struct Slot : SlotBase {
  os::UniqueFd process;  // its pidfd, while it runs
  TapPlace tap;          // of one that waits; without the descriptor

  std::string own() const { return directory + "/own"; }
  std::string disk() const { return directory + "/own/disk.img"; }
  // Memory and state that a machine goes on from, or has been saved to; not the guest's to write.
  std::string saved() const { return directory + "/saved"; }
  // The same of a machine that is paused in memory, for copies of it.
  std::string frozen() const { return directory + "/frozen"; }
  // There while it stands still without its agent having done its part; says why.
  std::string unquiet() const { return directory + "/unquiet"; }
  bool Lives() const { return process.valid() && !HasEnded(process.get()); }
};

// One of machines below QEMU; what is virtual is another with another monitor.
class Yard {
 public:
  static Result<std::unique_ptr<Yard>> Open(const MicrovmOptions& options, SharedParts parts);
  virtual ~Yard() = default;

  const MicrovmOptions& options() const { return options_; }
  const StateDirectory& state() const { return state_; }
  const images::Store& store() const { return store_; }
  Networks& networks() const { return *parts_.networks; }
  Accelerator accelerator() const { return accelerator_; }
  // What was saved goes on only with what has the same.
  virtual std::string boot_id() const { return boot_.id; }
  // The program and its version, of which templates are.
  virtual std::string monitor() const { return options_.qemu + " " + qemu_version_; }
  // Whether saving needs no copy of what a machine went on from.
  virtual bool saves_whole() const { return false; }
  std::string TemplatesDirectory() const { return options_.cache + "/vm-templates"; }
  std::string ImagesDirectory() const { return options_.cache + "/vm-images"; }

  // An empty slot with directory and cgroups. On failure nothing is left.
  Result<std::unique_ptr<Slot>> NewSlot(const std::string& image, const MachineSpec& spec);
  // Starts what the slot's record says. `named`: it is told who it is. Returns when its processors
  // run.
  Result<void> Start(Slot& slot, const Origin& origin, bool named);
  // Starts one that will wait for its name, from a template, and returns when it does.
  Result<void> StartWaiting(Slot& slot, const std::string& base);
  // Gives it name, limits and rules, as its record says by now, and lets it run.
  Result<void> Begin(Slot& slot);
  // Boots one that becomes a template.
  Result<void> StartTemplate(Slot& slot);
  // Ends its processes and takes cgroups and network back.
  Result<void> Stop(Slot& slot);
  Result<void> Remove(Slot& slot);
  Result<std::vector<std::unique_ptr<Slot>>> Adopt();

  // An empty disk with a file system, for a guest.
  Result<void> MakeDisk(std::uint64_t bytes, const std::string& file);
  // Removes images as EROFS that are not in the store any more: no machine has such a one.
  void CleanImages();
  // The machine may write files in its directory and make none: whoever has taken QEMU over shall
  // not lead us elsewhere. Gives it one, makes one that it has, takes one back for good.
  static Result<void> GiveTo(const std::string& path, const Slot& slot);
  static Result<void> NewFile(const std::string& path, const Slot& slot, std::uint64_t bytes);
  static Result<void> TakeBack(const std::string& path);

 protected:
  Yard(MicrovmOptions options, SharedParts parts, images::Store store, StateDirectory state)
      : options_(std::move(options)),
        parts_(std::move(parts)),
        store_(std::move(store)),
        state_(std::move(state)) {}
  // Makes what all machines need.
  Result<void> Furnish();
  // The programs of the monitor, found and looked at.
  virtual Result<void> FindMonitor();
  // Once the boot files are there.
  virtual Result<void> ChooseAccelerator();
  // Boots a kernel and our first program, which says that it came up and ends. Once per boot of the
  // host, since one whose KVM hangs takes its time; empty, or why it does not.
  Result<std::string> WhyNoKvm();
  // Inside of the walls that every machine has.
  virtual Result<void> TryKvm() const;
  // Fails unless the program's output has the word of our first program within a time limit.
  static Result<void> RunTrial(const os::Program& program);
  virtual Result<TapPlace> MakeNetwork(const Slot&) { return networks().MakeTap(); }
  virtual Result<BootFiles> MakeBoot(const std::string& directory) const;
  // What is its monitor's own in a plan, and of files.
  virtual Result<void> Complete(Plan& plan, const Slot& slot, const TapPlace& tap) const;
  // Its processors run.
  virtual Result<void> AfterStart(const Slot&) { return {}; }
  void UseKvm() { accelerator_ = Accelerator::kKvm; }
  // Beside the memory of a machine, for its monitor and what stands beside it.
  virtual std::uint64_t reserve() const;
  const BootFiles& boot() const { return boot_; }

 private:
  Result<std::string> ErofsOf(const images::Image& image);
  Result<Plan> PlanOf(Slot& slot, const Origin& origin, bool named, const TapPlace& tap);
  Result<void> Launch(Slot& slot, Plan plan, const TapPlace& tap);
  Result<void> Limit(Slot& slot, const Plan& plan);
  Result<void> RunWalledTrial(const std::string& directory, const Groups& groups) const;
  Result<std::unique_ptr<Slot>> AdoptOne(const std::string& name);

  MicrovmOptions options_;
  SharedParts parts_;
  images::Store store_;
  StateDirectory state_;
  BootFiles boot_;
  Accelerator accelerator_ = Accelerator::kTcg;
  std::string qemu_version_;
  std::uint64_t tsc_khz_ = 0;
  std::mutex images_mutex_;
  std::optional<EmptyDisks> disks_;
};

// How much memory QEMU has for a machine whose commands have so much.
std::uint64_t RamBytes(std::uint64_t memory_bytes);
// Where a record keeps MaxFileBytes, as of the machine's start.
inline constexpr const char* kMaxFileMember = "max_file_bytes";
// Up to what size the disk of a machine can grow while it runs, which was started with `spec`: no
// file that QEMU writes may be larger.
std::uint64_t MaxFileBytes(const MachineSpec& spec);

}  // namespace caisson::machine::microvm
