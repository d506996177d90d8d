// Reading of the last cache's size from folders like the kernel's.
#include "device/cache_share.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "main/own_folder.h"

namespace sluice {
namespace {

class CacheShareTest : public testing::Test {
 protected:
  void AddCache(const std::string& name, const std::string& level, const std::string& size,
                const std::string& cpus) {
    const std::filesystem::path cache = folder_ / name;
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level << '\n';
    std::ofstream(cache / "size") << size << '\n';
    std::ofstream(cache / "shared_cpu_list") << cpus << '\n';
  }

  int64_t Share() const { return CacheShareIn(folder_.string()); }

  const OwnFolder own_;
  const std::filesystem::path folder_ = own_.path();
};

TEST_F(CacheShareTest, TheHighestLevelCounts) {
  AddCache("index0", "1", "32K", "0");
  AddCache("index1", "3", "32768K", "0-1");
  AddCache("index2", "2", "512K", "0");
  EXPECT_EQ(Share(), 16 << 20);
}

TEST_F(CacheShareTest, CpusAreListedInRanges) {
  AddCache("index0", "3", "90M", "0-3,8,10-13");
  EXPECT_EQ(Share(), 10 << 20);
}

TEST_F(CacheShareTest, WhatCannotBeReadIsLeftOut) {
  EXPECT_EQ(Share(), 0);
  AddCache("index0", "2", "1M", "");
  AddCache("index1", "3", "", "0");
  AddCache("index2", "4", "many", "0");
  AddCache("index3", "high", "64M", "0");
  EXPECT_EQ(Share(), 1 << 20);
}

TEST(CacheShareBytesTest, ThisMachineHasSomeCacheButNotItsHosts) {
  EXPECT_GT(CacheShareBytes(), 0);
  EXPECT_LE(CacheShareBytes(), kCacheShareBytesMax);
}

TEST(RanksPerCpuTest, IsAtLeastOneAndGrowsWithTheRanks) {
  EXPECT_EQ(RanksPerCpu(1), 1);
  EXPECT_EQ(RanksPerCpu(int64_t{1} << 20), 2 * RanksPerCpu(int64_t{1} << 19));
}

}  // namespace
}  // namespace sluice
