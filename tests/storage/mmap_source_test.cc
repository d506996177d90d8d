// Mapped files: the contract, and what it takes that a page may be gone.
#include "storage/file/mmap_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/file_storage.h"
#include "storage/source_contract.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

absl::StatusOr<ContractSource> MakeMapped(const std::vector<ContractObject>& objects,
                                          const MmapSourceOptions& options) {
  const auto storage = std::make_shared<FileStorage>();
  absl::StatusOr<std::unique_ptr<Source>> source =
      MakeMmapSource(storage->directory(), storage->Write(objects), options);
  if (!source.ok()) return source.status();
  return ContractSource{.storage = storage, .source = *std::move(source)};
}

INSTANTIATE_TEST_SUITE_P(
    Mmap, SourceContract,
    testing::Values(ContractStorage{"Mmap", [](const std::vector<ContractObject>& objects,
                                               int) { return MakeMapped(objects, {}); }},
                    ContractStorage{"MmapLittleByLittle",
                                    [](const std::vector<ContractObject>& objects, int) {
                                      return MakeMapped(objects, {.poll_bytes_max = 10'007});
                                    }}),
    ContractStorageName);

TEST(MmapSourceTest, CopiesLittleInOnePoll) {
  const FileStorage storage;
  const std::string content = SourceContent(1, 100'000);
  storage.Write("a", content);
  auto source = MakeMmapSource(storage.directory(), {"a"}, {.poll_bytes_max = 1000}).value();
  SourceRun run(source.get());
  const uint64_t cookie = run.Read(0, 0, 100'000);
  for (int i = 1; i < 100; ++i) {
    ASSERT_EQ(run.Poll(8), 0);
    ASSERT_EQ(source->counters().bytes_read, i * 1000);
  }
  ASSERT_TRUE(run.UntilAllEnded());
  run.ExpectBytes(cookie, content);
}

TEST(MmapSourceTest, SurvivesTruncation) {
  const FileStorage storage;
  const std::string content = SourceContent(1, 1 << 20);
  storage.Write("a", content);
  auto source = MakeMmapSource(storage.directory(), {"a"}, {.poll_bytes_max = 100'000}).value();
  SourceRun run(source.get());
  const uint64_t under_way = run.Read(0, 0, 1 << 20);
  EXPECT_EQ(run.Poll(8), 0);
  ASSERT_EQ(truncate(storage.Path("a").c_str(), 10'000), 0);
  const uint64_t gone = run.Read(0, 500'000, 1000);
  const uint64_t cut = run.Read(0, 9000, 2000);  // its last page is there, and ends in zeros
  const uint64_t left = run.Read(0, 9000, 1000);
  if (!run.UntilAllEnded()) return;
  for (const uint64_t cookie : {under_way, gone, cut}) {
    EXPECT_TRUE(absl::IsDataLoss(run.Outcome(cookie))) << run.Outcome(cookie);
  }
  run.ExpectBytes(left, absl::string_view(content).substr(9000, 1000));
}

TEST(MmapSourceTest, UnmapsTheLongestUnusedFileBeyondItsLimit) {
  const FileStorage storage;
  std::vector<std::string> names, contents;
  for (int i = 0; i < 5; ++i) {
    names.push_back(std::to_string(i));
    contents.push_back(SourceContent(static_cast<uint64_t>(i), 9000));
    storage.Write(names.back(), contents.back());
  }
  auto source = MakeMmapSource(storage.directory(), names, {.files_max = 2}).value();
  SourceRun run(source.get());
  std::vector<ReadOp> ops;
  for (int i = 0; i < 30; ++i) ops.push_back(run.Op(i % 5, i * 200, 1000));
  if (!run.Finish(ops)) return;
  run.ExpectAll(ops, contents);
  EXPECT_GT(source->counters().opens, 5);
}

// Reads that may be lent what they ask for.
class LendingTest : public testing::Test {
 protected:
  void Open(const std::vector<std::string>& names, const MmapSourceOptions& options = {}) {
    auto source = MakeMmapSource(storage_.directory(), names, options).value();
    source_ = std::move(source);
    EXPECT_TRUE(source_->lends());
  }
  // The event of one read, which ends in one Poll.
  ReadEvent Read(int object, int64_t offset, int64_t bytes) {
    const ReadOp op = {.object = object,
                       .offset = offset,
                       .bytes = bytes,
                       .data = memory_.data(),
                       .cookie = 3,
                       .may_lend = true};
    memory_.fill(std::byte{0x77});
    ReadEvent event;
    EXPECT_TRUE(source_->Start({&op, 1}).ok());
    EXPECT_EQ(source_->Poll({&event, 1}).value_or(0), 1);
    EXPECT_EQ(event.cookie, 3u);
    return event;
  }
  static std::string Text(const std::byte* data, size_t bytes) {
    return {reinterpret_cast<const char*>(data), bytes};
  }

  const FileStorage storage_;
  std::unique_ptr<Source> source_;
  alignas(kReadAlignment) std::array<std::byte, 8192> memory_;
};

TEST_F(LendingTest, ALoanIsThereAsLongAsAnybodyHasIt) {
  const std::string content = SourceContent(1, 100'000);
  storage_.Write("a", content);
  Open({"a"});
  ReadEvent first = Read(0, 50'001, 4'000);
  const ReadEvent second = Read(0, 54'001, 4'000);
  ASSERT_NE(first.lender, nullptr);
  EXPECT_EQ(first.lent + 4'000, second.lent);
  EXPECT_EQ(memory_[0], std::byte{0x77});
  EXPECT_EQ(source_->counters().requests, 2);
  EXPECT_EQ(source_->counters().bytes_read, 8'000);
  source_ = nullptr;
  EXPECT_EQ(Text(second.lent, 4'000), content.substr(54'001, 4'000));
  EXPECT_TRUE(second.lender->Check(100'000).ok());
  EXPECT_TRUE(absl::IsDataLoss(second.lender->Check(100'001)));
}

TEST_F(LendingTest, ARangeThatIsNotThereIsDataLoss) {
  storage_.Write("a", "0123456789");
  storage_.Write("empty", "");
  Open({"a", "empty"});
  EXPECT_TRUE(absl::IsDataLoss(Read(0, 5, 6).status));
  EXPECT_TRUE(absl::IsDataLoss(Read(1, 0, 1).status));
  ASSERT_EQ(truncate(storage_.Path("a").c_str(), 7), 0);
  EXPECT_TRUE(absl::IsDataLoss(Read(0, 5, 4).status));
  const ReadEvent left = Read(0, 5, 2);
  EXPECT_TRUE(left.status.ok()) << left.status;
  EXPECT_EQ(Text(left.lent, 2), "56");
}

// The file is mapped anew: what was mapped has zeros, whatever the file has since.
TEST_F(LendingTest, APageThatWentIsZerosForItsBorrowersAlone) {
  const std::string content = SourceContent(1, 20'000);
  storage_.Write("a", content);
  Open({"a"});
  const ReadEvent lent = Read(0, 8'192, 4'096);
  ASSERT_NE(lent.lender, nullptr);
  ASSERT_EQ(truncate(storage_.Path("a").c_str(), 0), 0);
  EXPECT_EQ(Text(lent.lent, 4'096), std::string(4'096, '\0'));
  storage_.Write("a", content);
  EXPECT_TRUE(absl::IsDataLoss(lent.lender->Check(1))) << lent.lender->Check(1);
  const ReadEvent again = Read(0, 8'192, 4'096);
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(Text(again.lent, 4'096), content.substr(8'192, 4'096));
  EXPECT_TRUE(again.lender->Check(20'000).ok());
}

// Two files may be mapped at once, and half as many more while they are lent. Others are copied.
TEST_F(LendingTest, CopiesWhereTooManyFilesAreLent) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) {
    names.push_back(std::to_string(i));
    storage_.Write(names.back(), SourceContent(static_cast<uint64_t>(i), 5'000));
  }
  Open(names, {.files_max = 2});
  std::vector<ReadEvent> held;
  int lent = 0;
  for (int i = 0; i < 8; ++i) {
    held.push_back(Read(i, 100, 4'000));
    ASSERT_TRUE(held.back().status.ok()) << held.back().status;
    const bool is_lent = held.back().lender != nullptr;
    lent += is_lent ? 1 : 0;
    EXPECT_EQ(Text(is_lent ? held.back().lent : memory_.data(), 4'000),
              SourceContent(static_cast<uint64_t>(i), 5'000).substr(100, 4'000));
  }
  EXPECT_EQ(lent, 3);
  // A file that is lent already is lent again, at the same place.
  const ReadEvent again = Read(0, 200, 10);
  EXPECT_EQ(again.lent, held[0].lent + 100);
  held.clear();
  EXPECT_NE(Read(7, 0, 10).lender, nullptr);
}

TEST(MmapSourceTest, ReadsFilesOnly) {
  const FileStorage storage;
  ASSERT_EQ(mkfifo(storage.Path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(storage.Path("directory").c_str(), 0700), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(MakeMmapSource(storage.directory(), {"../a"}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      MakeMmapSource(storage.directory(), {"a"}, {.poll_bytes_max = 0}).status()));
  auto source = MakeMmapSource(storage.directory(), {"pipe", "directory"}, {}).value();
  SourceRun run(source.get());
  const uint64_t cookies[] = {run.Read(0, 0, 1), run.Read(1, 0, 1)};
  if (!run.UntilAllEnded()) return;
  for (const uint64_t cookie : cookies) {
    EXPECT_TRUE(absl::IsInvalidArgument(run.Outcome(cookie))) << run.Outcome(cookie);
  }
}

}  // namespace
}  // namespace sluice
