// SPDX-License-Identifier: Apache-2.0
// Files, through the client and the real agent program. The machine sees the test's own folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "agent/agent_under_test.h"
#include "agent/client.h"
#include "agent/connection.h"
#include "errors/agent.h"

namespace caisson::agent {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// From now on this thread, and what it starts, has no openat2(2), as below gVisor.
void LoseOpenat2() {
  std::array<sock_filter, 4> program = {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

// Whether the agent's kernel has openat2.
class FilesTest : public testing::TestWithParam<bool> {
 protected:
  FilesTest() {
    std::thread([this] {
      if (!GetParam()) LoseOpenat2();
      agent_.emplace();
    }).join();
    folder_ = agent_->folder() + "/files";
    fs::create_directory(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  Result<std::uint64_t> Put(const std::string& path, std::string_view text,
                            std::optional<std::uint32_t> mode = {}) {
    CAISSON_ASSIGN(Upload upload, Upload::Start(agent_->Connect(), {path, mode}));
    CAISSON_TRY(upload.Write(text));
    return upload.Commit();
  }
  Result<std::string> Get(const std::string& path) {
    CAISSON_ASSIGN(Download download, Download::Start(agent_->Connect(), path));
    std::string text;
    for (;;) {
      CAISSON_ASSIGN(const std::string_view piece, download.Next());
      if (piece.empty()) return text;
      text += piece;
    }
  }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static ErrorCode CodeOf(const auto& result) { return result ? ErrorCode{} : result.error().code; }
  // Of everything in the folder, hidden or not.
  std::size_t CountNames() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::optional<AgentUnderTest> agent_;
  std::string folder_;
};
INSTANTIATE_TEST_SUITE_P(Kernel, FilesTest, testing::Bool(), [](const auto& has) {
  return has.param ? "with_openat2" : "without_openat2";
});

TEST_P(FilesTest, puts_and_gets_what_was_put) {
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i) + '\0';
  const auto size = Put(Path("file"), text);
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(*size, text.size());
  EXPECT_TRUE(Read(Path("file")) == text);
  const auto got = Get(Path("file"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == text);
  EXPECT_EQ(Put(Path("empty"), ""), 0U);
  EXPECT_EQ(Get(Path("empty")), "");
}

TEST_P(FilesTest, tells_the_size_before_the_bytes) {
  ASSERT_TRUE(Put(Path("file"), "12345"));
  const auto download = Download::Start(agent_->Connect(), Path("file"));
  ASSERT_TRUE(download);
  EXPECT_EQ(download->info().size, 5U);
  EXPECT_EQ(download->info().type, FileType::kFile);
}

TEST_P(FilesTest, makes_missing_parents) {
  ASSERT_TRUE(Put(Path("a/b/c/file"), "text"));
  EXPECT_EQ(Read(Path("a/b/c/file")), "text");
  EXPECT_EQ(fs::status(Path("a/b")).permissions(), fs::perms(0755));
}

TEST_P(FilesTest, sets_the_mode_and_keeps_that_of_what_it_replaces) {
  ASSERT_TRUE(Put(Path("file"), "1"));
  EXPECT_EQ(fs::status(Path("file")).permissions(), fs::perms(0644));
  ASSERT_TRUE(Put(Path("file"), "2", 0750));
  EXPECT_EQ(fs::status(Path("file")).permissions(), fs::perms(0750));
  ASSERT_TRUE(Put(Path("file"), "3"));
  EXPECT_EQ(fs::status(Path("file")).permissions(), fs::perms(0750));
  EXPECT_EQ(Read(Path("file")), "3");
}

TEST_P(FilesTest, replaces_a_file_in_one_step_and_only_when_all_has_come) {
  ASSERT_TRUE(Put(Path("file"), "before"));
  auto upload = Upload::Start(agent_->Connect(), {Path("file"), {}});
  ASSERT_TRUE(upload);
  ASSERT_TRUE(upload->Write("after"));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(Read(Path("file")), "before");
  ASSERT_TRUE(upload->Commit());
  EXPECT_EQ(Read(Path("file")), "after");
}

TEST_P(FilesTest, leaves_nothing_of_an_upload_that_is_given_up) {
  {
    auto upload = Upload::Start(agent_->Connect(), {Path("file"), {}});
    ASSERT_TRUE(upload);
    ASSERT_TRUE(upload->Write("part"));
    EXPECT_EQ(CountNames(), 1U);
  }
  for (int i = 0; i < 500 && CountNames() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(CountNames(), 0U);
}

TEST_P(FilesTest, refuses_paths_that_are_not_absolute_or_not_possible) {
  EXPECT_EQ(CodeOf(Put("relative", "")), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Get("relative")), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Get("")), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Get(std::string("/etc/pass\0wd", 12))), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Get("/" + std::string(5000, 'a'))), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Put("/" + std::string(300, 'a'), "")), errors::kAgentBadRequest);
}

TEST_P(FilesTest, tells_what_is_not_there) {
  EXPECT_EQ(CodeOf(Get(Path("missing"))), errors::kAgentNotFound);
  EXPECT_EQ(CodeOf(Stat(agent_->Connect(), {Path("missing")})), errors::kAgentNotFound);
  EXPECT_EQ(CodeOf(List(agent_->Connect(), {Path("missing")})), errors::kAgentNotFound);
  EXPECT_EQ(CodeOf(Remove(agent_->Connect(), {Path("missing")})), errors::kAgentNotFound);
  ASSERT_TRUE(Put(Path("file"), ""));
  EXPECT_EQ(CodeOf(Get(Path("file/below"))), errors::kAgentNotADirectory);
  EXPECT_EQ(CodeOf(Put(Path("file/below"), "")), errors::kAgentNotADirectory);
  EXPECT_EQ(CodeOf(List(agent_->Connect(), {Path("file")})), errors::kAgentNotADirectory);
}

TEST_P(FilesTest, refuses_directories_fifos_sockets_and_devices_without_hanging) {
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  Path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const std::string& path :
       {folder_, Path("fifo"), Path("socket"), std::string("/dev/zero")}) {
    EXPECT_EQ(CodeOf(Get(path)), errors::kAgentNotAFile) << path;
    EXPECT_EQ(CodeOf(Put(path, "x")), errors::kAgentNotAFile) << path;
  }
  EXPECT_EQ(CodeOf(Put(folder_ + "/", "x")), errors::kAgentNotAFile);
  EXPECT_EQ(CodeOf(Put("/", "x")), errors::kAgentNotAFile);
  EXPECT_EQ(CodeOf(Put(folder_ + "/..", "x")), errors::kAgentNotAFile);
  const auto refused = Get(Path("fifo"));
  EXPECT_EQ(refused.error().message,
            Path("fifo") + " is a FIFO; only regular files are read and written");
}

TEST_P(FilesTest, follows_links_and_keeps_them) {
  ASSERT_TRUE(Put(Path("target"), "old"));
  fs::create_symlink("target", Path("relative"));
  fs::create_symlink(Path("target"), Path("absolute"));
  fs::create_symlink("not/yet/there", Path("dangling"));
  ASSERT_TRUE(Put(Path("relative"), "new"));
  EXPECT_EQ(Get(Path("absolute")), "new");
  ASSERT_TRUE(Put(Path("absolute"), "newer"));
  EXPECT_EQ(Read(Path("target")), "newer");
  EXPECT_TRUE(fs::is_symlink(Path("relative")));
  ASSERT_TRUE(Put(Path("dangling"), "made"));
  EXPECT_EQ(Read(Path("not/yet/there")), "made");
  fs::create_symlink("circle", Path("circle"));
  EXPECT_EQ(CodeOf(Get(Path("circle"))), errors::kAgentRefused);
  EXPECT_EQ(CodeOf(Put(Path("circle"), "")), errors::kAgentRefused);
}

TEST_P(FilesTest, never_reaches_the_agents_own_descriptors) {
  for (const char* path : {"/proc/self/fd/0", "/proc/1/fd/3", "/proc/self/exe", "/proc/1/root/etc",
                           "/proc/self/cwd/etc/passwd"}) {
    EXPECT_EQ(CodeOf(Get(path)), errors::kAgentRefused) << path;
    EXPECT_EQ(CodeOf(Put(path, "x")), errors::kAgentRefused) << path;
  }
}

TEST_P(FilesTest, reads_files_of_proc_whose_size_nobody_knows) {
  const auto download = Download::Start(agent_->Connect(), "/proc/version");
  ASSERT_TRUE(download);
  EXPECT_EQ(download->info().size, std::nullopt);
  EXPECT_TRUE(Get("/proc/version")->starts_with("Linux version"));
}

TEST_P(FilesTest, tells_when_a_file_becomes_shorter_while_it_is_read) {
  const std::string path = Path("file");
  ASSERT_TRUE(Put(path, std::string(20'000'000, 'x')));
  auto download = Download::Start(agent_->Connect(), path);
  ASSERT_TRUE(download);
  ASSERT_TRUE(download->Next());
  fs::resize_file(path, 1000);
  Result<std::string_view> piece = "";
  do {
    piece = download->Next();
  } while (piece && !piece->empty());
  EXPECT_EQ(CodeOf(piece), errors::kAgentFileFailed);
}

TEST_P(FilesTest, tells_of_a_full_disk_and_leaves_nothing) {
  RunIn(*agent_, "mount -t tmpfs -o size=1m tmpfs " + folder_);
  const auto put = Put(Path("file"), std::string(5'000'000, 'x'));
  EXPECT_EQ(CodeOf(put), errors::kAgentNoSpace);
  EXPECT_EQ(RunIn(*agent_, "ls -A " + folder_).output, "");
  ASSERT_TRUE(Put(Path("file"), "fits"));
}

// The pieces come through a pipe or not, in frames of any size, and the host stops at any place.
TEST_P(FilesTest, takes_pieces_of_any_size) {
  std::string text;
  auto upload = Upload::Start(agent_->Connect(), {Path("file"), {}});
  ASSERT_TRUE(upload);
  for (std::size_t size = 1; size < 3'000'000; size = size * 3 + 1) {
    std::string piece;
    while (piece.size() < size) piece += std::to_string(piece.size() * size) + '\n';
    ASSERT_TRUE(upload->Write(piece));
    text += piece;
  }
  EXPECT_EQ(*upload->Commit(), text.size());
  EXPECT_TRUE(Read(Path("file")) == text);
}

TEST_P(FilesTest, leaves_nothing_of_an_upload_whose_host_dies_within_a_frame) {
  const os::UniqueFd host = agent_->Connect();
  const std::string request = Encode(PutRequest{Path("file"), {}});
  const auto send = [&](FrameType type, std::size_t size, std::string_view payload) {
    const FrameHeader header = MakeFrameHeader(type, size);
    ASSERT_EQ(::send(host.get(), header.bytes, kFrameHeaderBytes, 0), kFrameHeaderBytes);
    ASSERT_EQ(::send(host.get(), payload.data(), payload.size(), 0), payload.size());
  };
  send(FrameType::kPut, request.size(), request);
  send(FrameType::kData, 200'000, std::string(150'000, 'x'));
  for (int i = 0; i < 500 && CountNames() == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(CountNames(), 1U);
  ::shutdown(host.get(), SHUT_RDWR);
  for (int i = 0; i < 500 && CountNames() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(CountNames(), 0U);
}

TEST_P(FilesTest, refuses_other_frames_within_an_upload) {
  const os::UniqueFd host = agent_->Connect();
  Connection connection(os::UniqueFd(::dup(host.get())));
  ASSERT_TRUE(connection.SendMessage(FrameType::kPut, PutRequest{Path("file"), {}}));
  ASSERT_TRUE(connection.Expect(FrameType::kOk));
  ASSERT_TRUE(connection.Send(FrameType::kData, std::string(100'000, 'x')));
  ASSERT_TRUE(connection.Send(FrameType::kStdin, "x"));
  EXPECT_EQ(CodeOf(connection.Expect(FrameType::kEnd)), errors::kAgentBadRequest);
  for (int i = 0; i < 500 && CountNames() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(CountNames(), 0U);
}

TEST_P(FilesTest, tells_what_a_read_only_file_system_refuses) {
  RunIn(*agent_, "mount -t tmpfs -o ro tmpfs " + folder_);
  EXPECT_EQ(CodeOf(Put(Path("file"), "x")), errors::kAgentRefused);
  EXPECT_EQ(CodeOf(Put(Path("new/file"), "x")), errors::kAgentRefused);
}

TEST_P(FilesTest, describes_files_and_links) {
  ASSERT_TRUE(Put(Path("file"), "12345", 0600));
  fs::create_symlink("file", Path("link"));
  const auto file = Stat(agent_->Connect(), {Path("file")});
  ASSERT_TRUE(file);
  EXPECT_EQ(file->type, FileType::kFile);
  EXPECT_EQ(file->size, 5U);
  EXPECT_EQ(file->mode, 0600U);
  EXPECT_EQ(file->uid, 0U);
  EXPECT_GT(file->modified_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(Stat(agent_->Connect(), {Path("link")})->type, FileType::kFile);
  const auto link = Stat(agent_->Connect(), {Path("link"), false});
  EXPECT_EQ(link->type, FileType::kLink);
  EXPECT_EQ(link->link_target, "file");
  EXPECT_EQ(Stat(agent_->Connect(), {"/dev/null"})->type, FileType::kDevice);
  EXPECT_EQ(Stat(agent_->Connect(), {"/"})->type, FileType::kDirectory);
}

TEST_P(FilesTest, lists_a_directory_by_name_up_to_a_bound) {
  for (int i = 0; i < 1000; ++i) std::ofstream(Path("file" + std::to_string(1000 + i))) << i;
  fs::create_symlink("target", Path("a link"));
  fs::create_directory(Path("folder"));
  const auto all = List(agent_->Connect(), {folder_});
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->entries.size(), 1002U);
  EXPECT_FALSE(all->truncated);
  EXPECT_EQ(all->entries[0].name, "a link");
  EXPECT_EQ(all->entries[0].info.link_target, "target");
  EXPECT_EQ(all->entries[1].name, "file1000");
  EXPECT_EQ(all->entries[1].info.size, 1U);
  EXPECT_EQ(all->entries.back().info.type, FileType::kDirectory);
  const auto some = List(agent_->Connect(), {folder_, 10});
  EXPECT_EQ(some->entries.size(), 10U);
  EXPECT_TRUE(some->truncated);
  fs::create_directory(Path("folder"));
  EXPECT_EQ(List(agent_->Connect(), {Path("folder")})->entries.size(), 0U);
}

TEST_P(FilesTest, removes_files_and_links_but_not_what_links_lead_to) {
  ASSERT_TRUE(Put(Path("file"), ""));
  fs::create_symlink("file", Path("link"));
  EXPECT_EQ(Remove(agent_->Connect(), {Path("link")}), 1U);
  EXPECT_TRUE(fs::exists(Path("file")));
  EXPECT_EQ(Remove(agent_->Connect(), {Path("file")}), 1U);
  EXPECT_FALSE(fs::exists(Path("file")));
}

TEST_P(FilesTest, removes_a_directory_with_all_that_is_in_it_only_when_told_so) {
  fs::create_directories(Path("outside"));
  ASSERT_TRUE(Put(Path("outside/file"), ""));
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Put(Path("tree/" + std::to_string(i % 7) + "/" + std::to_string(i)), ""));
  }
  fs::create_directory_symlink(Path("outside"), Path("tree/3/link"));
  EXPECT_EQ(CodeOf(Remove(agent_->Connect(), {Path("tree")})), errors::kAgentNotEmpty);
  const auto removed = Remove(agent_->Connect(), {Path("tree/"), true});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 300U + 7 + 1 + 1);
  EXPECT_FALSE(fs::exists(Path("tree")));
  EXPECT_TRUE(fs::exists(Path("outside/file")));
  EXPECT_EQ(Remove(agent_->Connect(), {Path("outside"), false}).error().code,
            errors::kAgentNotEmpty);
}

TEST_P(FilesTest, removes_a_directory_of_any_depth_with_few_descriptors) {
  os::UniqueFd at(::open(folder_.c_str(), O_PATH));
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    at.Reset(::openat(at.get(), "d", O_PATH));
  }
  const auto removed = Remove(agent_->Connect(), {Path("d"), true});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 3000U);
}

TEST_P(FilesTest, refuses_to_remove_the_root_dots_and_mount_points) {
  EXPECT_EQ(CodeOf(Remove(agent_->Connect(), {"/", true})), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Remove(agent_->Connect(), {folder_ + "/.", true})), errors::kAgentBadRequest);
  EXPECT_EQ(CodeOf(Remove(agent_->Connect(), {folder_ + "/..", true})), errors::kAgentBadRequest);
  RunIn(*agent_, "mkdir -p " + Path("a/mount") + " && mount -t tmpfs tmpfs " + Path("a/mount") +
                     " && touch " + Path("a/mount/file"));
  EXPECT_EQ(CodeOf(Remove(agent_->Connect(), {Path("a"), true})), errors::kAgentRefused);
  EXPECT_EQ(RunIn(*agent_, "ls " + Path("a/mount")).output, "file\n");
}

TEST_P(FilesTest, serves_others_while_large_files_move) {
  ASSERT_TRUE(Put(Path("large"), std::string(64 << 20, 'x')));
  auto slow = Download::Start(agent_->Connect(), Path("large"));
  ASSERT_TRUE(slow && slow->Next());  // and reads no further
  std::jthread mover([this] { ASSERT_EQ(Get(Path("large"))->size(), 64U << 20); });
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(Ping(agent_->Connect()));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 500ms);
  }
}

}  // namespace
}  // namespace caisson::agent
