// Ranges of files, written by several at once, whichever way their bytes go.
#include "storage/file/file_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "main/own_folder.h"
#include "oracle/sampled.h"
#include "storage/file_storage.h"
#include "storage/forbid_uring.h"
#include "storage/source.h"

namespace sluice {
namespace {

using Random = std::mt19937_64;

int64_t Draw(Random* random, int64_t from, int64_t to) {
  return std::uniform_int_distribution<int64_t>(from, to)(*random);
}

// Writes at once, and answers as `answer` says, which may write itself.
class ScriptedFileIo final : public FileIo {
 public:
  using Answer = std::function<int64_t(const FileCall&)>;
  explicit ScriptedFileIo(Answer answer) : answer_(std::move(answer)) {}

  absl::string_view name() const override { return "scripted"; }
  void Add(const FileCall& call) override { added_.push_back(call); }
  // From now on nothing begins.
  void Break() { broken_ = true; }
  absl::Status Submit() override {
    if (broken_) return absl::InternalError("broken");
    for (const FileCall& call : added_)
      results_.push_back({.tag = call.tag, .value = answer_(call)});
    added_.clear();
    return absl::OkStatus();
  }
  bool Next(FileResult* result) override {
    if (results_.empty()) return false;
    *result = results_.front();
    results_.pop_front();
    return true;
  }
  void Cancel(uint64_t) override {}
  int running() const override { return static_cast<int>(results_.size()); }
  void Wait() override {}
  void Wake() override {}
  int ready_fd() const override { return -1; }

 private:
  const Answer answer_;
  bool broken_ = false;
  std::vector<FileCall> added_;
  std::deque<FileResult> results_;
};

bool IsDirect(int fd) { return (fcntl(fd, F_GETFL) & O_DIRECT) != 0; }

int64_t Pwrite(const FileCall& call, int64_t bytes) {
  const ssize_t written = pwrite(call.fd, call.data, static_cast<size_t>(bytes), call.offset);
  return written < 0 ? -errno : written;
}

// A file that one process has made, and its bytes.
struct Made {
  Made(const FileStorage& storage, int64_t bytes)
      : file(AtomicFile::Create(storage.Path("file")).value()),
        text(static_cast<size_t>(bytes), '\0') {
    EXPECT_TRUE(file.Resize(bytes).ok());
  }
  FileSink::File Described() const { return {file.temporary(), static_cast<int64_t>(text.size())}; }
  void ExpectText() const { EXPECT_TRUE(FileText(file.temporary()) == text); }

  AtomicFile file;
  std::string text;
};

// Blocks of bytes, each at some place in a page.
class Blocks {
 public:
  std::byte* New(int64_t bytes, int64_t in_page) {
    constexpr int64_t kPage = kReadAlignment;
    memory_.emplace_back(static_cast<size_t>(bytes + 2 * kPage));
    std::byte* const data = memory_.back().data();
    const int64_t at = static_cast<int64_t>(reinterpret_cast<uint64_t>(data) % kPage);
    return data + (in_page - at + kPage) % kPage;
  }

 private:
  std::deque<std::vector<std::byte>> memory_;
};

// Begins the write once the text has its bytes.
void Begin(FileSink* sink, Made* made, Blocks* blocks, int64_t offset, int64_t bytes,
           int64_t in_page, uint64_t cookie, Random* random) {
  std::byte* const data = blocks->New(bytes, in_page);
  for (int64_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((*random)());
  std::memcpy(made->text.data() + offset, data, static_cast<size_t>(bytes));
  const absl::Status status =
      sink->Begin({.offset = offset, .bytes = bytes, .data = data, .cookie = cookie});
  EXPECT_TRUE(status.ok()) << status;
}

// Takes what ends until nothing is outstanding. The failures come back.
std::vector<absl::Status> Finish(FileSink* sink) {
  std::vector<absl::Status> failures;
  WriteEvent written;
  while (sink->outstanding() > 0) {
    EXPECT_TRUE(sink->Submit().ok());
    while (sink->Next(&written)) {
      if (!written.status.ok()) failures.push_back(written.status);
    }
    std::this_thread::yield();
  }
  return failures;
}

using MakeSink = std::function<std::unique_ptr<FileSink>(std::vector<FileSink::File>)>;

// Two sinks write ranges that meet within pages, in any order, and leave some out.
void WriteRandomRanges(const MakeSink& make, const std::string& parent, Random* random) {
  const FileStorage storage(parent);
  const int64_t size = Draw(random, 1, 600'000);
  Made made(storage, size);
  Blocks blocks;
  struct Range {
    int64_t offset;
    int64_t bytes;
  };
  std::vector<Range> ranges;
  for (int64_t at = 0; at < size;) {
    int64_t end = at + Draw(random, 1, Draw(random, 0, 1) == 0 ? 5000 : 150'000);
    if (Draw(random, 0, 1) == 0) end = end / kReadAlignment * kReadAlignment;
    end = std::clamp<int64_t>(end, at + 1, size);
    ranges.push_back({at, end - at});
    at = end;
  }
  std::shuffle(ranges.begin(), ranges.end(), *random);
  const std::unique_ptr<FileSink> one = make({made.Described()});
  const std::unique_ptr<FileSink> other = make({made.Described()});
  FileSink* const sinks[] = {one.get(), other.get()};
  uint64_t cookie = 0;
  std::vector<absl::Status> failures;
  for (const Range& range : ranges) {
    if (Draw(random, 0, 9) == 0) continue;  // a gap
    FileSink* const sink = sinks[Draw(random, 0, 1)];
    const bool congruent = Draw(random, 0, 3) > 0;
    Begin(sink, &made, &blocks, range.offset, range.bytes,
          congruent ? range.offset % kReadAlignment : Draw(random, 0, kReadAlignment - 1), ++cookie,
          random);
    if (Draw(random, 0, 3) == 0) {
      EXPECT_TRUE(sink->Submit().ok());
    }
    if (Draw(random, 0, 20) == 0) failures = Finish(sink);
    ASSERT_TRUE(failures.empty()) << failures[0];
  }
  for (FileSink* const sink : sinks) {
    failures = Finish(sink);
    ASSERT_TRUE(failures.empty()) << failures[0];
    EXPECT_TRUE(sink->Sync().ok());
  }
  made.ExpectText();
}

std::unique_ptr<FileSink> MakeBest(std::vector<FileSink::File> files) {
  return FileSink::Make(std::move(files)).value();
}

void TryRandomRanges(const MakeSink& make) {
  const uint64_t seed = oracle::FirstSeed();
  for (int i = 0; i < oracle::Sampled(40); ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", try ", i));
    Random random(seed + static_cast<uint64_t>(i));
    const bool in_memory = i % 4 == 0 && std::filesystem::is_directory("/dev/shm");
    WriteRandomRanges(make, in_memory ? "/dev/shm" : "", &random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(FileSinkTest, RandomRangesOfTwoLandWhereTheyBelong) { TryRandomRanges(MakeBest); }

TEST(FileSinkTest, ThreadsWriteWhereUringIsForbidden) {
  bool forbidden = false;
  std::thread([&] {
    forbidden = ForbidUring();
    if (forbidden) TryRandomRanges(MakeBest);
  }).join();
  if (!forbidden) GTEST_SKIP() << "no seccomp";
}

TEST(FileSinkTest, CallsThatEndEarlyGoOn) {
  Random random(oracle::FirstSeed());
  const auto answer = [&random](const FileCall& call) -> int64_t {
    switch (Draw(&random, 0, 5)) {
      case 0:
        return -EINTR;
      case 1:
        return -EAGAIN;
      case 2:
        // A file system may refuse any of these.
        if (IsDirect(call.fd)) return Draw(&random, 0, 1) == 0 ? -EINVAL : -EOPNOTSUPP;
        return Pwrite(call, Draw(&random, 1, call.bytes));
      case 3: {
        const int64_t pages = call.bytes / kReadAlignment;
        if (IsDirect(call.fd)) return Pwrite(call, Draw(&random, 1, pages) * kReadAlignment);
        return Pwrite(call, Draw(&random, 1, call.bytes));
      }
      default:
        return Pwrite(call, call.bytes);
    }
  };
  TryRandomRanges([&](std::vector<FileSink::File> files) {
    return std::make_unique<FileSink>(std::move(files), std::make_unique<ScriptedFileIo>(answer),
                                      3);
  });
}

TEST(FileSinkTest, AnErrorNamesTheFileAndEndsNoOtherWrite) {
  for (const int64_t value : {int64_t{-ENOSPC}, int64_t{-EIO}, int64_t{0}}) {
    const FileStorage storage;
    Made made(storage, 100'000);
    FileSink sink({made.Described()}, std::make_unique<ScriptedFileIo>([&](const FileCall& call) {
                    return call.offset >= 50'000 ? value : Pwrite(call, call.bytes);
                  }),
                  4);
    Random random(1);
    Blocks blocks;
    Begin(&sink, &made, &blocks, 10, 30'000, 10, 1, &random);
    Begin(&sink, &made, &blocks, 60'000, 30'000, 60'000 % kReadAlignment, 2, &random);
    const std::vector<absl::Status> failures = Finish(&sink);
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_TRUE(absl::StrContains(failures[0].message(), made.file.temporary())) << failures[0];
    EXPECT_EQ(FileText(made.file.temporary()).substr(0, 50'000), made.text.substr(0, 50'000));
  }
}

TEST(FileSinkTest, WhatIsCancelledEndsSoAndIsNotWritten) {
  const FileStorage storage;
  Made made(storage, 100'000);
  int calls = 0;
  FileSink sink({made.Described()}, std::make_unique<ScriptedFileIo>([&](const FileCall& call) {
                  ++calls;
                  return Pwrite(call, call.bytes);
                }),
                1);
  Random random(1);
  Blocks blocks;
  for (uint64_t i = 0; i < 3; ++i) {
    Begin(&sink, &made, &blocks, static_cast<int64_t>(i) * 8192, 4096, 0, i, &random);
  }
  EXPECT_TRUE(sink.Submit().ok());
  sink.Cancel();
  const std::vector<absl::Status> failures = Finish(&sink);
  EXPECT_EQ(failures.size(), 2u);
  EXPECT_EQ(calls, 1);
  for (const absl::Status& failure : failures) EXPECT_TRUE(absl::IsCancelled(failure));
}

// A write that was only begun, one that the system has answered half, and one that waits.
TEST(FileSinkTest, AfterACancelNothingStartsAndAllEnds) {
  const FileStorage storage;
  Made made(storage, 100'000);
  int calls = 0;
  FileSink sink({made.Described()}, std::make_unique<ScriptedFileIo>([&](const FileCall& call) {
                  ++calls;
                  return Pwrite(call, call.bytes / 2);
                }),
                2);
  Random random(1);
  Blocks blocks;
  Begin(&sink, &made, &blocks, 0, 100, 1, 0, &random);
  EXPECT_TRUE(sink.Submit().ok());
  Begin(&sink, &made, &blocks, 8192, 100, 1, 1, &random);
  Begin(&sink, &made, &blocks, 16384, 100, 1, 2, &random);
  sink.Cancel();
  WriteEvent event;
  int ended = 0;
  for (; sink.Next(&event); ++ended) EXPECT_TRUE(absl::IsCancelled(event.status)) << event.status;
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(sink.outstanding(), 0);
  EXPECT_EQ(calls, 2);
  const std::byte byte{};
  EXPECT_TRUE(absl::IsCancelled(sink.Begin({.bytes = 1, .data = &byte})));
}

TEST(FileSinkTest, AnErrorOfTheSystemEndsAllWrites) {
  const FileStorage storage;
  Made made(storage, 100'000);
  auto io = std::make_unique<ScriptedFileIo>(
      [](const FileCall& call) { return Pwrite(call, call.bytes); });
  ScriptedFileIo* const script = io.get();
  FileSink sink({made.Described()}, std::move(io), 2);
  Random random(1);
  Blocks blocks;
  for (uint64_t i = 0; i < 3; ++i) {
    Begin(&sink, &made, &blocks, static_cast<int64_t>(i) * 8192, 100, 1, i, &random);
    if (i == 0) {
      EXPECT_TRUE(sink.Submit().ok());
    }
  }
  script->Break();
  EXPECT_TRUE(absl::IsInternal(sink.Submit()));
  WriteEvent event;
  int failed = 0;
  while (sink.Next(&event)) failed += absl::IsInternal(event.status) ? 1 : 0;
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(sink.outstanding(), 0);
}

TEST(FileSinkTest, HoldsOneDescriptorAFileAndOneMore) {
  const FileStorage storage;
  std::vector<Made> made;
  std::vector<FileSink::File> files;
  for (int i = 0; i < 8; ++i) {
    made.emplace_back(storage, 8192);
    files.push_back(made.back().Described());
  }
  FileSink sink(files, std::make_unique<ScriptedFileIo>([](const FileCall& call) {
                  return Pwrite(call, call.bytes);
                }),
                4);
  const auto descriptors = [] { return NamesIn("/proc/self/fd").size(); };
  const size_t before = descriptors();
  Blocks blocks;
  const std::byte* const data = blocks.New(8192, 0);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(sink.Begin({.object = i, .bytes = 8192, .data = data}).ok());
    EXPECT_TRUE(Finish(&sink).empty());
  }
  EXPECT_LE(descriptors(), before + 8 + 1);
}

TEST(FileSinkTest, AFileOfAnotherLengthOrKindIsNotWrittenTo) {
  const FileStorage storage;
  const Made made(storage, 10);
  const std::byte byte{};
  FileSink longer({{made.file.temporary(), 11}}, std::make_unique<ScriptedFileIo>(nullptr), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(longer.Begin({.bytes = 1, .data = &byte})));
  std::filesystem::create_symlink(made.file.temporary(), storage.Path("link"));
  FileSink link({{storage.Path("link"), 10}}, std::make_unique<ScriptedFileIo>(nullptr), 1);
  EXPECT_FALSE(link.Begin({.bytes = 1, .data = &byte}).ok());
  EXPECT_EQ(longer.outstanding() + link.outstanding(), 0);
}

TEST(FileSinkTest, WholePagesGoPastThePageCacheAndNoPageBothWays) {
  const FileStorage storage;
  const int64_t page = kReadAlignment;
  Made made(storage, 40 * page);
  const int probe = open(made.file.temporary().c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (probe < 0) GTEST_SKIP() << "a file system that knows the page cache alone";
  close(probe);
  struct Seen {
    bool direct;
    int64_t first;  // pages
    int64_t last;
  };
  std::vector<Seen> seen;
  FileSink sink({made.Described()}, std::make_unique<ScriptedFileIo>([&](const FileCall& call) {
                  seen.push_back({IsDirect(call.fd), call.offset / page,
                                  (call.offset + call.bytes - 1) / page});
                  return Pwrite(call, call.bytes);
                }),
                16);
  Random random(1);
  Blocks blocks;
  Begin(&sink, &made, &blocks, page / 2, 9 * page, page / 2 % kReadAlignment, 0, &random);
  Begin(&sink, &made, &blocks, 9 * page + page / 2, 10 * page, page / 2 % kReadAlignment, 1,
        &random);
  Begin(&sink, &made, &blocks, 20 * page, 20 * page, 0, 2, &random);
  EXPECT_TRUE(Finish(&sink).empty());
  made.ExpectText();
  int64_t direct_pages = 0;
  for (const Seen& call : seen) {
    if (!call.direct) continue;
    direct_pages += call.last - call.first + 1;
    for (const Seen& other : seen) {
      EXPECT_TRUE(other.direct || other.last < call.first || other.first > call.last);
    }
  }
  EXPECT_EQ(direct_pages, 8 + 9 + 20);
}

}  // namespace
}  // namespace sluice
