// Memory that is used again.
#include "sync/shelf.h"

#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace sluice::bench {
namespace {

constexpr size_t kPage = 4096;

TEST(ShelfTest, GivesBackWhatWasPutThere) {
  Shelf shelf;
  MappedMemory memory = shelf.Take(2 * kPage);
  ASSERT_NE(memory, nullptr);
  std::memset(memory.get(), 1, 2 * kPage);
  const std::byte* const data = memory.get();
  shelf.Put(std::move(memory));
  EXPECT_EQ(shelf.pieces(), 1);
  EXPECT_EQ(shelf.Take(kPage).get(), data);
  EXPECT_EQ(shelf.pieces(), 0);
}

TEST(ShelfTest, TheSmallestThatIsLargeEnough) {
  Shelf shelf;
  shelf.Stock(1, 4 * kPage);
  shelf.Stock(1, 3 * kPage);
  shelf.Stock(1, 2 * kPage);
  ASSERT_EQ(shelf.pieces(), 3);
  const MappedMemory memory = shelf.Take(3 * kPage);
  EXPECT_EQ(memory.get_deleter().bytes, 3 * kPage);
  EXPECT_EQ(shelf.pieces(), 2);
}

TEST(ShelfTest, WhatDoesNotFitIsNotKept) {
  for (const size_t kept : {1, 9}) {
    Shelf shelf;
    shelf.Stock(2, kept * kPage);
    const MappedMemory memory = shelf.Take(4 * kPage);
    EXPECT_EQ(memory.get_deleter().bytes, 4 * kPage);
    EXPECT_EQ(shelf.pieces(), 0);
  }
}

TEST(ShelfTest, KeepsTheLastOnesThatCame) {
  Shelf shelf;
  shelf.Stock(5, kPage);
  EXPECT_EQ(shelf.pieces(), 3);
  shelf.Put(MappedMemory());
  EXPECT_EQ(shelf.pieces(), 3);
}

TEST(ShelfTest, SaysWhereMemoryEnds) {
  Shelf shelf;
  EXPECT_EQ(shelf.Take(size_t{1} << 60), nullptr);
  shelf.Stock(3, size_t{1} << 60);
  EXPECT_EQ(shelf.pieces(), 0);
}

}  // namespace
}  // namespace sluice::bench
