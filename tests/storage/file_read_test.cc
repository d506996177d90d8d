// Which bytes of a file a read asks for.
#include "storage/file/file_read.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace sluice {
namespace {

using Step = FileRead::Step;

FileRead Begun(int64_t offset, int64_t bytes, int64_t alignment) {
  FileRead read;
  read.Begin({.offset = offset, .bytes = bytes}, alignment);
  return read;
}

TEST(FileReadTest, AsksForWhatIsWantedWithoutAlignment) {
  FileRead read = Begun(1000, 300, 1);
  EXPECT_EQ(read.offset(), 1000);
  EXPECT_EQ(read.bytes(), 300u);
  EXPECT_EQ(read.skew(), 0);
  EXPECT_EQ(read.Advance(100), Step::kMore);
  EXPECT_EQ(read.offset(), 1100);
  EXPECT_EQ(read.bytes(), 200u);
  EXPECT_EQ(read.Advance(200), Step::kDone);
}

TEST(FileReadTest, RoundsToTheAlignment) {
  const FileRead read = Begun(1000, 300, 512);
  EXPECT_EQ(read.offset(), 512);
  EXPECT_EQ(read.bytes(), 1024u);
  EXPECT_EQ(read.skew(), 488);
}

TEST(FileReadTest, IsDoneOnceTheWantedBytesAreThere) {
  // The file ends within the last block.
  EXPECT_EQ(Begun(4096, 5000, 4096).bytes(), 8192u);
  EXPECT_EQ(Begun(4096, 5000, 4096).Advance(5000), Step::kDone);
  EXPECT_EQ(Begun(4096, 5000, 4096).Advance(4999), Step::kEnd);
  EXPECT_EQ(Begun(4096, 5000, 4096).Advance(4096), Step::kMore);
}

TEST(FileReadTest, EndsWhereTheFileDoes) {
  EXPECT_EQ(Begun(0, 10, 1).Advance(0), Step::kEnd);
  EXPECT_EQ(Begun(0, 10, 512).Advance(0), Step::kEnd);
  EXPECT_EQ(Begun(5000, 10, 4096).Advance(903), Step::kEnd);
}

TEST(FileReadTest, CutsWhatOneCallCannotRead) {
  constexpr int64_t kBytes = (int64_t{5} << 30) + 12345;
  FileRead read = Begun(777, kBytes, 4096);
  int64_t sum = 0;
  int calls = 0;
  Step step = Step::kMore;
  for (; step == Step::kMore && calls < 100; ++calls) {
    EXPECT_EQ(read.offset() % 4096, 0);
    EXPECT_EQ(read.bytes() % 4096, 0u);
    sum += read.bytes();
    step = read.Advance(read.bytes());
  }
  EXPECT_EQ(step, Step::kDone);
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(sum, ReadRoom(777, kBytes, 4096));
}

}  // namespace
}  // namespace sluice
