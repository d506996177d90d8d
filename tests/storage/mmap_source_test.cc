// Mapped files: the contract, and what it takes that a page may be gone.
#include "storage/file/mmap_source.h"

#include <sys/stat.h>
#include <unistd.h>

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
  auto source = MakeMmapSource(storage.directory(), {"a"}, {.poll_bytes_max = 1000});
  ASSERT_TRUE(source.ok()) << source.status();
  SourceRun run(source->get());
  const uint64_t cookie = run.Read(0, 0, 100'000);
  for (int i = 1; i < 100; ++i) {
    ASSERT_EQ(run.Poll(8), 0);
    ASSERT_EQ((*source)->counters().bytes_read, i * 1000);
  }
  ASSERT_TRUE(run.UntilAllEnded());
  run.ExpectBytes(cookie, content);
}

TEST(MmapSourceTest, SurvivesTruncation) {
  const FileStorage storage;
  const std::string content = SourceContent(1, 1 << 20);
  storage.Write("a", content);
  auto source = MakeMmapSource(storage.directory(), {"a"}, {.poll_bytes_max = 100'000});
  ASSERT_TRUE(source.ok()) << source.status();
  SourceRun run(source->get());
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
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back(std::to_string(i));
    storage.Write(names.back(), SourceContent(static_cast<uint64_t>(i), 9000));
  }
  auto source = MakeMmapSource(storage.directory(), names, {.files_max = 2});
  ASSERT_TRUE(source.ok()) << source.status();
  SourceRun run(source->get());
  std::vector<ReadOp> ops;
  for (int i = 0; i < 30; ++i) ops.push_back(run.Op(i % 5, i * 200, 1000));
  ASSERT_TRUE(run.Start(ops).ok());
  if (!run.UntilAllEnded()) return;
  for (const ReadOp& op : ops) {
    const std::string content = SourceContent(static_cast<uint64_t>(op.object), 9000);
    run.ExpectBytes(op.cookie,
                    absl::string_view(content).substr(static_cast<size_t>(op.offset), 1000));
  }
  EXPECT_GT((*source)->counters().opens, 5);
}

TEST(MmapSourceTest, ReadsFilesOnly) {
  const FileStorage storage;
  ASSERT_EQ(mkfifo(storage.Path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(storage.Path("directory").c_str(), 0700), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(MakeMmapSource(storage.directory(), {"../a"}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      MakeMmapSource(storage.directory(), {"a"}, {.poll_bytes_max = 0}).status()));
  auto source = MakeMmapSource(storage.directory(), {"pipe", "directory"}, {});
  ASSERT_TRUE(source.ok()) << source.status();
  SourceRun run(source->get());
  const uint64_t cookies[] = {run.Read(0, 0, 1), run.Read(1, 0, 1)};
  if (!run.UntilAllEnded()) return;
  for (const uint64_t cookie : cookies) {
    EXPECT_TRUE(absl::IsInvalidArgument(run.Outcome(cookie))) << run.Outcome(cookie);
  }
}

}  // namespace
}  // namespace sluice
