// Events of the fake CUDA runtime: points in streams, and those that processes share.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_EVENT_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_EVENT_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"
#include "fakes/fake_shared_memory.h"

namespace sluice::fake_cuda {

// An event's state where processes share it. Records are numbered, 0 being none.
struct SharedEvent {
  static constexpr uint64_t kRecent = 64;
  std::atomic<uint64_t> recorded = 0;
  std::atomic<uint64_t> waited = 0;  // the last record of which somebody knows that it is done
  std::array<std::atomic<uint64_t>, kRecent> finished = {};

  bool IsFinished(uint64_t record) const;
  void Finish(uint64_t record);
  void SeenFinished(uint64_t record);
};

struct Record {
  Position position;
  std::chrono::steady_clock::time_point time;  // set when it is done
  uint64_t shared = 0;                         // its number if the event is shared
};

struct Event {
  uintptr_t handle = 0;
  int device = 0;
  unsigned flags = 0;
  bool is_imported = false;
  bool is_exported = false;              // others may open it as long as it is there
  std::shared_ptr<Record> record;        // this process's last one
  std::shared_ptr<SharedMemory> memory;  // of an interprocess event
  std::shared_ptr<SharedEvent> shared;   // in that memory
};

// Misuse and nullptr if there is none.
std::shared_ptr<Event> FindEvent(State& state, cudaEvent_t handle, const char* function);
std::shared_ptr<Event> MakeEvent(State& state, unsigned flags);

// Whether the process may have one more.
inline bool HasRoomForEvent(const State& state) {
  return state.events.size() < state.config.events_max + state.events_before;
}

// Makes the event one that processes share, in this memory.
void Share(Event& event, const std::shared_ptr<SharedMemory>& memory);

cudaError_t StreamWaitEvent(State& state, const std::shared_ptr<Stream>& stream,
                            cudaEvent_t handle);

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_EVENT_H_
