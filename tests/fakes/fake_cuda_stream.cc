// Queues, their threads, and what the host knows of them.
#include "fakes/fake_cuda_stream.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_event.h"
#include "fakes/fake_cuda_memory.h"

namespace sluice::fake_cuda {
namespace {

void Sleep(int64_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

// Events of other processes cannot wake this one.
void PollUntil(const std::function<bool()>& is_ready) {
  constexpr int64_t kLongestUs = 200;
  for (int64_t pause = 10; !is_ready(); pause = std::min(2 * pause, kLongestUs)) Sleep(pause);
}

void Carry(State& state, Lock& lock, Stream& stream, const Operation& operation) {
  for (const Position& position : operation.after) WaitUntilDone(lock, position);
  const bool is_alive = DeviceError(state, stream.device) == cudaSuccess;
  const int longest_delay = is_alive ? state.config.delay_us : 0;
  lock.unlock();
  if (operation.is_ready && is_alive) PollUntil(operation.is_ready);
  if (longest_delay > 0) {
    Sleep(std::uniform_int_distribution<int64_t>(0, longest_delay)(stream.delays));
  }
  lock.lock();
  if (operation.failure != cudaSuccess) SetDeviceError(state, stream.device, operation.failure);
  // Events come to pass also after a failure, or others would wait for ever.
  const bool is_skipped = operation.is_work && DeviceError(state, stream.device) != cudaSuccess;
  lock.unlock();
  if (operation.run && !is_skipped) operation.run();
  lock.lock();
}

void Work(const std::shared_ptr<Stream>& stream) {
  auto [state, lock] = LockState();
  while (true) {
    stream->arrived.wait(lock, [&] { return !stream->queue.empty() || stream->is_destroyed; });
    if (stream->queue.empty()) return;
    // What it holds is let go before others learn that it is done.
    uint64_t sequence = 0;
    {
      const Operation operation = std::move(stream->queue.front());
      stream->queue.pop_front();
      sequence = operation.sequence;
      Carry(state, lock, *stream, operation);
    }
    stream->done = sequence;
    stream->advanced.notify_all();
  }
}

// Work on the null stream comes after all earlier work on blocking streams, and before their later
// work.
void OrderWithNullStream(State& state, const Stream& stream, Operation& operation) {
  if (stream.is_null) {
    for (const auto& [handle, other] : state.streams) {
      if (other->is_blocking && other->device == stream.device) {
        operation.after.push_back({other, other->enqueued});
      }
    }
  } else if (stream.is_blocking) {
    const auto& null_stream = state.devices[static_cast<size_t>(stream.device)].null_stream;
    if (null_stream != nullptr) operation.after.push_back({null_stream, null_stream->enqueued});
  }
}

}  // namespace

std::shared_ptr<Stream> MakeStream(State& state, int device) {
  auto stream = std::make_shared<Stream>();
  stream->handle = NewHandle(state);
  stream->device = device;
  stream->delays.seed(static_cast<uint32_t>(state.config.seed * 7919 + stream->handle));
  state.streams[stream->handle] = stream;
  return stream;
}

void Destroy(Stream& stream) {
  stream.is_destroyed = true;
  stream.arrived.notify_all();
}

std::shared_ptr<Stream> FindStream(State& state, cudaStream_t handle, const char* function) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    const int device = CurrentDevice();
    std::shared_ptr<Stream>& stream = state.devices[static_cast<size_t>(device)].null_stream;
    if (stream == nullptr) {
      stream = MakeStream(state, device);
      stream->is_null = true;
    }
    return stream;
  }
  if (handle == cudaStreamPerThread) {
    AddMisuse(std::string(function) + " of cudaStreamPerThread, which this fake does not have");
    return nullptr;
  }
  const auto found = state.streams.find(reinterpret_cast<uintptr_t>(handle));
  if (found != state.streams.end() && !found->second->is_destroyed) return found->second;
  AddMisuse(std::string(function) +
            (found == state.streams.end() ? " of a stream that there is not: "
                                          : " of a stream after it was destroyed: ") +
            Hex(handle));
  return nullptr;
}

uint64_t Enqueue(State& state, const std::shared_ptr<Stream>& stream, Operation operation) {
  if (stream->capture != nullptr) return stream->enqueued;
  operation.sequence = ++stream->enqueued;
  OrderWithNullStream(state, *stream, operation);
  std::erase_if(operation.after,
                [&](const Position& position) { return position.stream == stream; });
  for (const Position& position : operation.after) {
    stream->links.push_back({operation.sequence, position});
  }
  if (operation.is_work) {
    operation.failure = NextOperationFailure(stream->device);
    stream->last_work = operation.sequence;
    stream->last_work_name = operation.what;
  }
  for (const FakeCudaRange& range : operation.uses) {
    AddUse(state, range.pointer, {stream, operation.sequence, operation.what});
  }
  if (!stream->has_thread) {
    stream->has_thread = true;
    std::thread(Work, stream).detach();
  }
  stream->queue.push_back(std::move(operation));
  stream->arrived.notify_one();
  return stream->enqueued;
}

void WaitUntilDone(Lock& lock, const Position& position) {
  Stream& stream = *position.stream;
  stream.advanced.wait(lock, [&] { return stream.done >= position.sequence; });
}

void SeenDone(Stream& stream, uint64_t sequence) {
  if (sequence <= stream.seen_done) return;
  stream.seen_done = sequence;
  const auto later = [&](const auto& entry) { return entry.sequence > sequence; };
  const auto passed = std::stable_partition(stream.links.begin(), stream.links.end(), later);
  const std::vector<Link> seen(passed, stream.links.end());
  stream.links.erase(passed, stream.links.end());
  std::erase_if(stream.exports, [&](const Export& entry) { return !later(entry); });
  for (const Link& link : seen) SeenDone(*link.position.stream, link.position.sequence);
}

void SeenByOthers(State& state) {
  for (const auto& [handle, stream] : state.streams) {
    uint64_t sequence = 0;
    for (const Export& entry : stream->exports) {
      if (entry.event->waited.load() >= entry.generation) sequence = entry.sequence;
    }
    SeenDone(*stream, sequence);
  }
}

void SynchronizeDevice(State& state, Lock& lock, int device) {
  std::vector<Position> positions;
  for (const auto& [handle, stream] : state.streams) {
    if (stream->device == device) positions.push_back({stream, stream->enqueued});
  }
  for (const Position& position : positions) {
    WaitUntilDone(lock, position);
    SeenDone(*position.stream, position.sequence);
  }
}

bool HasUnseenWork(const Stream& stream) { return stream.last_work > stream.seen_done; }

cudaError_t DeviceError(const State& state, int device) {
  const auto index = static_cast<size_t>(device);
  return index < state.devices.size() ? state.devices[index].error : cudaSuccess;
}

void SetDeviceError(State& state, int device, cudaError_t error) {
  const auto index = static_cast<size_t>(device);
  if (index < state.devices.size()) state.devices[index].error = error;
}

}  // namespace sluice::fake_cuda
