// Pages that go while they are mapped, and whose signal is whose.
#include "storage/file/bus_guard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "storage/file_storage.h"

namespace sluice {
namespace {

constexpr int64_t kPage = 4096;

// A mapping of four pages, of which the file has only the first.
class BusGuardTest : public testing::Test {
 protected:
  BusGuardTest() {
    storage_.Write("a", std::string(4 * kPage, 'x'));
    const int fd = open(storage_.Path("a").c_str(), O_RDWR | O_CLOEXEC);
    data_ = static_cast<std::byte*>(mmap(nullptr, 4 * kPage, PROT_READ, MAP_SHARED, fd, 0));
    EXPECT_EQ(ftruncate(fd, kPage), 0);
    close(fd);
    // Each death test begins anew: what is set before the first guard is what it passes on to.
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  ~BusGuardTest() override { munmap(data_, 4 * kPage); }

  int At(int64_t page) const {
    return static_cast<int>(*static_cast<volatile std::byte*>(data_ + page * kPage));
  }

  const FileStorage storage_;
  std::byte* data_;
};

using BusGuardDeathTest = BusGuardTest;

TEST_F(BusGuardTest, APageThatIsGoneReadsAsZeros) {
  const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data_, 4 * kPage);
  ASSERT_NE(guard, nullptr);
  EXPECT_EQ(At(0), 'x');
  EXPECT_FALSE(guard->tripped());
  EXPECT_EQ(At(2), 0);
  EXPECT_TRUE(guard->tripped());
  EXPECT_EQ(At(0), 'x');
}

TEST_F(BusGuardTest, ManyThreadsFindManyGuards) {
  std::vector<std::unique_ptr<BusGuard>> others;
  std::atomic<bool> stop{false};
  const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data_, 4 * kPage);
  std::thread churn([&] {
    const std::vector<std::byte> elsewhere(64 * kPage);
    while (!stop) {
      for (int i = 0; i < 200; ++i) others.push_back(BusGuard::Watch(elsewhere.data() + i, 1));
      others.clear();
    }
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int64_t page = 1; page < 4; ++page) EXPECT_EQ(At(page), 0);
    });
  }
  for (std::thread& reader : readers) reader.join();
  stop = true;
  churn.join();
  EXPECT_TRUE(guard->tripped());
}

// What is not watched ends the program, as it did before.
TEST_F(BusGuardDeathTest, OtherPagesAreTheKernels) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);  // a sanitizer has its own
        const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data_, 2 * kPage);
        At(1);
        At(3);
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(BusGuardDeathTest, OtherPagesAreThoseOfTheHandlerBefore) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, [](int) { _exit(42); });
        const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data_, 2 * kPage);
        At(1);
        At(3);
        _exit(0);
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(BusGuardDeathTest, ASignalThatWasSentGoesOn) {
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);
        const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data_, 4 * kPage);
        raise(SIGBUS);
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(BusGuardDeathTest, AHandlerThatIsSetLaterIsLeftAlone) {
  EXPECT_EXIT(
      {
        const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data_, kPage);
        signal(SIGBUS, [](int) { _exit(42); });
        _exit(BusGuard::Watch(data_, kPage) == nullptr ? 7 : 0);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace sluice
