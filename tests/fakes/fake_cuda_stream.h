// Streams of the fake CUDA runtime: queues in order, each with a thread that works it off.
#ifndef SLUICE_TESTS_FAKES_FAKE_CUDA_STREAM_H_
#define SLUICE_TESTS_FAKES_FAKE_CUDA_STREAM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_state.h"

namespace sluice::fake_cuda {

struct SharedEvent;

// A point in a stream.
struct Position {
  std::shared_ptr<Stream> stream;
  uint64_t sequence;
};

struct Operation {
  const char* what = "";
  bool is_work = true;                  // or only a wait or a record
  std::function<void()> run = {};       // may be empty
  std::vector<Position> after = {};     // it waits until these are done
  std::function<bool()> is_ready = {};  // and until this says so; may be empty
  std::vector<FakeCudaRange> uses = {};
  cudaError_t failure = cudaSuccess;
  uint64_t sequence = 0;
};

// Who knows that a stream has come to `sequence` knows that another has come to `position`.
struct Link {
  uint64_t sequence;
  Position position;
};

// An event that other processes wait for, recorded at `sequence`.
struct Export {
  uint64_t sequence;
  std::shared_ptr<SharedEvent> event;
  uint64_t generation;
};

struct Capture {
  cudaStreamCaptureMode mode;
  std::thread::id thread;  // that began it
  bool is_valid;
};

struct Stream {
  uintptr_t handle = 0;
  int device = 0;
  bool is_null = false;
  bool is_blocking = false;  // ordered with the null stream
  bool is_destroyed = false;
  bool has_thread = false;
  std::deque<Operation> queue;
  uint64_t enqueued = 0;   // the last operation's number
  uint64_t done = 0;       // all up to this one
  uint64_t seen_done = 0;  // all up to this one, as the host was told
  uint64_t last_work = 0;
  const char* last_work_name = "";
  std::unique_ptr<Capture> capture;  // under way
  std::vector<Link> links;
  std::vector<Export> exports;
  std::condition_variable arrived;
  std::condition_variable advanced;
  std::minstd_rand delays;
};

// The stream of a handle; the current device's null stream for none. Misuse and nullptr if it is
// none or destroyed.
std::shared_ptr<Stream> FindStream(State& state, cudaStream_t handle, const char* function);

// Runs `body(state, lock, stream)` if there is such a stream.
template <class Body>
cudaError_t WithStream(const char* function, cudaStream_t handle, const Body& body) {
  auto [state, lock] = LockState();
  const std::shared_ptr<Stream> stream = FindStream(state, handle, function);
  return stream == nullptr ? cudaErrorInvalidResourceHandle : body(state, lock, stream);
}

// The same as a whole call.
template <class Body>
cudaError_t StreamCall(const char* function, cudaStream_t handle, const Body& body,
                       IfFailed if_failed = IfFailed::kNothing) {
  return Call(function, if_failed, [&] { return WithStream(function, handle, body); });
}

std::shared_ptr<Stream> MakeStream(State& state, int device);
void Destroy(Stream& stream);

// Returns the operation's number. A stream that is being captured drops it. Ranges in `uses` were
// checked.
uint64_t Enqueue(State& state, const std::shared_ptr<Stream>& stream, Operation operation);

// Lets the lock go meanwhile.
void WaitUntilDone(Lock& lock, const Position& position);

// The host was told that the stream has come so far.
void SeenDone(Stream& stream, uint64_t sequence);

// The same, of what other processes were told through events.
void SeenByOthers(State& state);

// Waits for all streams of a device.
void SynchronizeDevice(State& state, Lock& lock, int device);

// What was enqueued on the stream and never seen to be done; or nothing.
bool HasUnseenWork(const Stream& stream);

cudaError_t DeviceError(const State& state, int device);
void SetDeviceError(State& state, int device, cudaError_t error);

}  // namespace sluice::fake_cuda

#endif  // SLUICE_TESTS_FAKES_FAKE_CUDA_STREAM_H_
