// What tests of the CUDA device over the fake runtime share: streams that stand still for a while.
#ifndef SLUICE_TESTS_DEVICE_CUDA_HELD_H_
#define SLUICE_TESTS_DEVICE_CUDA_HELD_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <thread>

#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"

namespace sluice {

// Holds up a stream until it is let go.
class Held {
 public:
  explicit Held(cudaStream_t stream) {
    EXPECT_EQ(FakeCudaEnqueue(stream,
                              [go = go_] {
                                while (!go->load()) std::this_thread::yield();
                              }),
              cudaSuccess);
  }
  ~Held() { LetGo(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void LetGo() { go_->store(true); }

 private:
  std::shared_ptr<std::atomic<bool>> go_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_CUDA_HELD_H_
