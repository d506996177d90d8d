// The thread that makes the last call to a communicator: whether there is one, and when it is over.
#include "transport/nccl/nccl_ending.h"

#include <pthread.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device/device.h"
#include "fakes/fake_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "sluice/nccl.h"
#include "transport/cuda_contract.h"
#include "transport/thread_ranks.h"

namespace sluice {
namespace {

using testing::IsEmpty;

// While one lives, no thread can be started: its stack would take all addresses there are.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

std::atomic<bool> may_return = false;
std::atomic<std::thread::id> caller;

ncclResult_t StuckCall(ncclComm_t) {
  caller = std::this_thread::get_id();
  while (!may_return) std::this_thread::yield();
  return ncclSuccess;
}

TEST(NcclEndingTest, IsOverWhenTheCallHasComeBack) {
  FakeCudaConfigure({.devices = 1});
  may_return = false;
  const auto ending = NcclEnding::Create();
  ASSERT_TRUE(ending.ok()) << ending.status();
  EXPECT_TRUE((*ending)->over()) << "nothing is under way";
  // A thread that is there already makes the call.
  const NoThreads none;
  (*ending)->Start(StuckCall, nullptr, 0);
  EXPECT_FALSE((*ending)->over());
  may_return = true;
  while (!(*ending)->over()) std::this_thread::yield();
  EXPECT_NE(caller.load(), std::this_thread::get_id());
}

TEST(NcclEndingTest, CanBeLeftBeforeTheCallAndDuringIt) {
  FakeCudaConfigure({.devices = 1});
  may_return = false;
  EXPECT_TRUE(NcclEnding::Create().ok());
  auto ending = NcclEnding::Create();
  ASSERT_TRUE(ending.ok()) << ending.status();
  (*ending)->Start(StuckCall, nullptr, 0);
  ending->reset();
  may_return = true;
}

// There may be none for the end either, which may wait for other ranks for ever.
TEST(NcclEndingTest, WithoutAThreadNothingIsOpened) {
  FakeCudaConfigure({.devices = 2});
  std::vector<absl::Status> outcomes(2);
  std::atomic<int> ready = 0;
  std::atomic<int> over = 0;
  std::thread limiter([&] {
    while (ready < 2) std::this_thread::yield();
    const NoThreads none;
    ready = 3;
    while (over < 2) std::this_thread::yield();
  });
  const std::shared_ptr<TransportMaker> maker =
      *MakeNcclTransport(nullptr, {.timeout = absl::Minutes(2)});
  OnThreads({0, 0}, [&](std::unique_ptr<Fabric> fabric) {
    const std::unique_ptr<Device> device = MakeStreamOnlyDevice(fabric->rank());
    ++ready;
    while (ready < 3) std::this_thread::yield();
    outcomes[static_cast<size_t>(fabric->rank())] =
        maker->Open(fabric.get(), device.get()).status();
    ++over;
  });
  limiter.join();
  for (const absl::Status& outcome : outcomes) {
    EXPECT_THAT(outcome, Fails(absl::StatusCode::kResourceExhausted, "rank 0: no thread"));
  }
  EXPECT_THAT(FakeCudaCheckClean(), IsEmpty());
}

}  // namespace
}  // namespace sluice
