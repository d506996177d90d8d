// sluice.h in a program of C++, which links libsluice.so alone: nothing is thrown through a call.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "sluice/sluice.h"

namespace {

static_assert(std::is_trivially_copyable_v<sluice_stream_options>);
static_assert(std::is_standard_layout_v<sluice_tensor>);
static_assert(std::is_same_v<decltype(sluice_poll(nullptr)), int32_t>);

sluice_status ThrowingAdd(void* self, const void*, size_t, int64_t, int64_t*) {
  if (*static_cast<int*>(self) == 0) throw std::runtime_error("overboard");
  throw 17;  // NOLINT: what is no exception is caught, too
}

sluice_status Unused(void*, const void*, size_t, const void*, size_t) { return SLUICE_ABORTED; }
sluice_status UnusedGet(void*, const void*, size_t, double, sluice_reply*) {
  return SLUICE_ABORTED;
}
sluice_status UnusedCompareSet(void*, const void*, size_t, const void*, size_t, const void*, size_t,
                               sluice_reply*) {
  return SLUICE_ABORTED;
}
sluice_status UnusedList(void*, const void*, size_t, sluice_reply*) { return SLUICE_ABORTED; }

TEST(HeaderTest, WhatAStoreThrowsIsAStatus) {
  int what = 0;
  sluice_store_calls calls = SLUICE_STORE_CALLS_INIT;
  calls.self = &what;
  calls.set = Unused;
  calls.get = UnusedGet;
  calls.add = ThrowingAdd;
  calls.compare_set = UnusedCompareSet;
  calls.list = UnusedList;
  sluice_store* store = nullptr;
  ASSERT_EQ(sluice_store_create(&calls, &store), SLUICE_OK);
  int64_t sum = 5;
  EXPECT_EQ(sluice_store_add(store, "key", 1, &sum), SLUICE_INTERNAL);
  EXPECT_NE(std::string(sluice_last_error()).find("overboard"), std::string::npos);
  EXPECT_EQ(sum, 0);
  what = 1;
  EXPECT_EQ(sluice_store_add(store, "key", 1, &sum), SLUICE_INTERNAL);
  EXPECT_NE(std::string(sluice_last_error()).find("unknown kind"), std::string::npos);
  sluice_store_destroy(store);
}

sluice_status ThrowingGenerator(void*, int64_t, void*, int64_t, int64_t*) {
  throw std::runtime_error("overboard");
}

TEST(HeaderTest, WhatAGeneratorThrowsEndsTheStream) {
  sluice_local* local = nullptr;
  ASSERT_EQ(sluice_local_create(2, &local), SLUICE_OK);
  const auto run = [local](int32_t rank) {
    sluice_session* session = nullptr;
    ASSERT_EQ(sluice_local_session(local, rank, nullptr, &session), SLUICE_OK);
    sluice_stream_options options = SLUICE_STREAM_OPTIONS_INIT;
    options.generate = ThrowingGenerator;
    options.generator_items = 4;
    options.item_bytes = 8;
    options.no_exchange = 1;
    sluice_stream* stream = nullptr;
    ASSERT_EQ(sluice_stream_open(session, &options, &stream), SLUICE_OK) << sluice_last_error();
    sluice_lease* lease = nullptr;
    EXPECT_LT(sluice_stream_next(stream, &lease), 0);
    EXPECT_NE(std::string(sluice_last_error()).find("overboard"), std::string::npos)
        << sluice_last_error();
    EXPECT_EQ(lease, nullptr);
    EXPECT_EQ(sluice_stream_close(stream), SLUICE_OK);
    EXPECT_EQ(sluice_session_close(session), SLUICE_OK);
    EXPECT_EQ(sluice_session_destroy(session), SLUICE_OK);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  sluice_local_destroy(local);
}

TEST(HeaderTest, EachThreadHasItsText) {
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        int32_t dtype = 0;
        const std::string name = "type" + std::to_string(t);
        EXPECT_EQ(sluice_dtype_parse(name.c_str(), &dtype), SLUICE_INVALID_ARGUMENT);
        EXPECT_NE(std::string(sluice_last_error()).find(name), std::string::npos);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HeaderTest, InitMacrosInitialize) {
  const sluice_half half = SLUICE_HALF_INIT;
  EXPECT_EQ(half.size, sizeof half);
  EXPECT_EQ(half.memory.count, 0);
  const sluice_event event = SLUICE_EVENT_INIT;
  EXPECT_EQ(event.size, sizeof event);
}

}  // namespace
