// SPDX-License-Identifier: Apache-2.0
#include "machine/microvm/command_line.h"

#include <fmt/format.h>

#include <initializer_list>

#include "machine/microvm/boot_files.h"

namespace caisson::machine::microvm {
namespace {

// QEMU's translations of guest code, per machine.
constexpr int kTranslationMebibytes = 32;

// Five levels of page tables make every miss of an emulated processor's translations longer, and
// "fast" string instructions are emulated byte by byte, where the kernel else moves words.
constexpr const char* kEmulatedProcessor = "max,la57=off,erms=off,fsrm=off";

}  // namespace

std::string MemoryFile(const Plan& plan) {
  if (plan.shares_memory) return "/run/memory";
  if (!plan.base.empty()) return std::string(kInsideBase) + "/memory";
  return std::string(kInsideOwn) + "/boot-memory";
}

namespace {

void Add(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

void AddDisks(std::vector<std::string>& words) {
  Add(words,
      {"-drive",
       fmt::format("id=image,file={},format=raw,if=none,readonly=on,file.locking=off",
                   kInsideImage),
       "-device", "virtio-blk-device,drive=image", "-drive",
       fmt::format("id=disk,file={}/disk.img,format=raw,if=none,discard=unmap,"
                   "file.locking=off,cache=writeback",
                   kInsideOwn),
       // A host's disk that is full is an error of the guest's, which else would stand still.
       "-device", "virtio-blk-device,drive=disk,werror=report,rerror=report"});
}

void AddNetwork(std::vector<std::string>& words, int tap) {
  // Without what depends on the host's end: a copy has another one.
  Add(words, {"-netdev", fmt::format("tap,id=network,fd={},vhost=off", tap), "-device",
              "virtio-net-device,netdev=network,csum=off,gso=off,guest_csum=off,guest_tso4=off,"
              "guest_tso6=off,guest_ufo=off,guest_ecn=off,host_tso4=off,host_tso6=off,"
              "host_ufo=off,host_ecn=off,mrg_rxbuf=off"});
}

}  // namespace

std::string KernelCommand(const Plan& plan) {
  // No file of firmware and no keyboard is asked for; a first process that ends is the machine's
  // end (QEMU has -no-reboot).
  std::string text =
      "quiet loglevel=1 console=ttyS0 8250.nr_uarts=1 reboot=t panic=-1 i8042.noaux i8042.nokbd "
      "random.trust_cpu=on mitigations=off ipv6.disable=1 cgroup_no_v1=all "
      // Pages that copies share stay small; what hardens the guest against itself is its own
      // affair.
      "transparent_hugepage=madvise lsm=landlock,yama audit=0 nowatchdog kfence.sample_interval=0 "
      "rcupdate.rcu_expedited=1";
  if (plan.accelerator == Accelerator::kTcg) {
    // The emulated machine has nothing that the kernel could measure its time stamp counter by (it
    // hangs after "Unable to calibrate against PIT"). It is the host's counter, whose pace we know.
    text += fmt::format(" tsc_early_khz={} lpj={} no_timer_check tsc=reliable", plan.tsc_khz,
                        plan.tsc_khz * 4);
    // On every allocation and every call, which emulation makes dear.
    text += " init_on_alloc=0 randomize_kstack_offset=off";
  }
  if (plan.trial) text += std::string(" ") + kTrialOption;
  return text;
}

std::string KindOfComputer(Accelerator accelerator) {
  Plan plan;
  plan.accelerator = accelerator;
  return fmt::format("{} {} {}", NameOf(accelerator), kEmulatedProcessor, KernelCommand(plan));
}

std::vector<std::string> QemuCommand(const Plan& plan, const QemuDescriptors& fds) {
  const bool tcg = plan.accelerator == Accelerator::kTcg;
  const std::uint64_t mebibytes = plan.ram_bytes >> 20;
  std::vector<std::string> words = {
      plan.qemu,
      "-M",
      "microvm,rtc=on,isa-serial=on,pic=on,pit=on,auto-kernel-cmdline=on,memory-backend=memory",
      "-accel",
      tcg ? fmt::format("tcg,tb-size={},thread=multi", kTranslationMebibytes) : "kvm",
      "-cpu",
      tcg ? kEmulatedProcessor : "host",
      "-m",
      fmt::format("{}M", mebibytes),
      "-smp",
      std::to_string(plan.processors),
      "-object",
      fmt::format("memory-backend-file,id=memory,size={}M,mem-path={},share=on", mebibytes,
                  MemoryFile(plan)),
      "-nodefaults",
      "-no-user-config",
      "-nographic",
      "-no-reboot",
      "-sandbox",
      "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
      "-chardev",
      fmt::format("socket,id=monitor,fd={}", fds.monitor),
      "-mon",
      "chardev=monitor,mode=control",
      "-serial",
      plan.base.empty() ? fmt::format("file:{}", kConsoleFile) : "null"};
  // What goes on has its kernel in memory.
  if (plan.base.empty()) {
    const std::string boot = kInsideBoot;
    Add(words, {"-kernel", boot + "/vmlinuz", "-initrd", boot + "/initrd", "-append",
                KernelCommand(plan)});
  }
  if (plan.trial) return words;
  AddDisks(words);
  Add(words, {"-device", "virtio-serial-device", "-chardev",
              fmt::format("socket,id=agent,fd={}", fds.port), "-device",
              "virtserialport,chardev=agent,name=agent", "-device", "virtio-rng-device"});
  if (plan.network) AddNetwork(words, fds.tap);
  if (!plan.base.empty()) Add(words, {"-incoming", "defer"});
  return words;
}

}  // namespace caisson::machine::microvm
