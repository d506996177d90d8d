// Recording events and waiting for them.
#include "fakes/fake_cuda_event.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_context.h"

namespace sluice::fake_cuda {
namespace {

void RaiseTo(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t now = value.load();
  while (now < to && !value.compare_exchange_weak(now, to)) {
  }
}

bool IsCurrent(const Event& event) {
  return event.record != nullptr &&
         (event.shared == nullptr || event.record->shared == event.shared->recorded.load());
}

bool IsDone(const Event& event) {
  if (event.shared != nullptr) return event.shared->IsFinished(event.shared->recorded.load());
  return event.record == nullptr ||
         event.record->position.stream->done >= event.record->position.sequence;
}

// The host was told that the last record is done.
void SeenDone(const Event& event) {
  if (event.shared != nullptr) event.shared->SeenFinished(event.shared->recorded.load());
  if (IsCurrent(event)) SeenDone(*event.record->position.stream, event.record->position.sequence);
}

}  // namespace

bool SharedEvent::IsFinished(uint64_t record) const {
  return record == 0 || finished[record % kRecent].load() >= record;
}

void SharedEvent::Finish(uint64_t record) { RaiseTo(finished[record % kRecent], record); }

void SharedEvent::SeenFinished(uint64_t record) { RaiseTo(waited, record); }

std::shared_ptr<Event> FindEvent(State& state, cudaEvent_t handle, const char* function) {
  const auto found = state.events.find(reinterpret_cast<uintptr_t>(handle));
  if (found != state.events.end()) return found->second;
  const bool was = state.destroyed_events.contains(reinterpret_cast<uintptr_t>(handle));
  AddMisuse(std::string(function) +
            (was ? " of an event after it was destroyed: " : " of an event that there is not: ") +
            Hex(handle));
  return nullptr;
}

std::shared_ptr<Event> MakeEvent(State& state, unsigned flags) {
  auto event = std::make_shared<Event>();
  event->handle = NewHandle(state);
  event->device = CurrentDevice();
  event->flags = flags;
  state.events[event->handle] = event;
  return event;
}

void Share(Event& event, const std::shared_ptr<SharedMemory>& memory) {
  event.memory = memory;
  // Zeros are a good state: no record.
  event.shared = {memory, reinterpret_cast<SharedEvent*>(memory->data())};
}

cudaError_t StreamWaitEvent(State& state, const std::shared_ptr<Stream>& stream,
                            cudaEvent_t handle) {
  const std::shared_ptr<Event> event = FindEvent(state, handle, "cudaStreamWaitEvent");
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  Operation operation = {.what = "a wait for an event", .is_work = false};
  if (IsCurrent(*event)) operation.after.push_back(event->record->position);
  if (event->shared != nullptr && !IsCurrent(*event)) {
    const uint64_t record = event->shared->recorded.load();
    operation.is_ready = [shared = event->shared, record] { return shared->IsFinished(record); };
    operation.run = [shared = event->shared, record] { shared->SeenFinished(record); };
  }
  if (!operation.after.empty() || operation.is_ready) Enqueue(state, stream, std::move(operation));
  return DeviceError(state, stream->device);
}

namespace {

cudaError_t RecordEvent(State& state, const std::shared_ptr<Stream>& stream,
                        const std::shared_ptr<Event>& event) {
  if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
  auto record = std::make_shared<Record>();
  if (event->shared != nullptr) record->shared = ++event->shared->recorded;
  const uint64_t sequence = Enqueue(
      state, stream,
      {.what = "an event's record", .is_work = false, .run = [record, shared = event->shared] {
         record->time = std::chrono::steady_clock::now();
         if (shared != nullptr) shared->Finish(record->shared);
       }});
  record->position = {stream, sequence};
  if (event->shared != nullptr) {
    stream->exports.push_back({sequence, event->shared, record->shared});
  }
  event->record = record;
  return DeviceError(state, stream->device);
}

cudaError_t EventQuery(State& state, Lock&, const std::shared_ptr<Event>& event) {
  const cudaError_t error = DeviceError(state, event->device);
  if (error != cudaSuccess) return error;
  if (!IsDone(*event)) return cudaErrorNotReady;
  SeenDone(*event);
  return cudaSuccess;
}

cudaError_t EventSynchronize(State& state, Lock& lock, const std::shared_ptr<Event>& event) {
  CountHostWait();
  const std::shared_ptr<Record> record = event->record;
  if (IsCurrent(*event)) {
    WaitUntilDone(lock, record->position);
    SeenDone(*record->position.stream, record->position.sequence);
    if (event->shared != nullptr) event->shared->SeenFinished(record->shared);
  } else {
    while (!IsDone(*event)) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
    }
    SeenDone(*event);
  }
  return DeviceError(state, event->device);
}

cudaError_t ElapsedTime(State& state, float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (ms == nullptr) return cudaErrorInvalidValue;
  const std::shared_ptr<Event> first = FindEvent(state, start, "cudaEventElapsedTime");
  const std::shared_ptr<Event> last = FindEvent(state, end, "cudaEventElapsedTime");
  if (first == nullptr || last == nullptr) return cudaErrorInvalidResourceHandle;
  if (((first->flags | last->flags) & cudaEventDisableTiming) != 0 || first->record == nullptr ||
      last->record == nullptr || first->device != last->device) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!IsDone(*first) || !IsDone(*last)) return cudaErrorNotReady;
  SeenDone(*first);
  SeenDone(*last);
  *ms = std::chrono::duration<float, std::milli>(last->record->time - first->record->time).count();
  return cudaSuccess;
}

// A call about an event: runs `body(state, lock, event)` if there is such an event.
template <class Body>
cudaError_t EventCall(const char* function, cudaEvent_t handle, const Body& body,
                      IfFailed if_failed = IfFailed::kNothing) {
  return Call(function, if_failed, [&] {
    auto [state, lock] = LockState();
    const std::shared_ptr<Event> event = FindEvent(state, handle, function);
    return event == nullptr ? cudaErrorInvalidResourceHandle : body(state, lock, event);
  });
}

cudaError_t CreateEvent(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned kFlags =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool is_shared = (flags & cudaEventInterprocess) != 0;
  if (event == nullptr || (flags & ~kFlags) != 0 ||
      (is_shared && (flags & cudaEventDisableTiming) == 0)) {
    return cudaErrorInvalidValue;
  }
  auto [state, lock] = LockState();
  if (!HasRoomForEvent(state)) return cudaErrorMemoryAllocation;
  const std::shared_ptr<Event> made = MakeEvent(state, flags);
  if (is_shared) {
    const std::shared_ptr<SharedMemory> memory = SharedMemory::Create(sizeof(SharedEvent));
    if (memory == nullptr) return cudaErrorOperatingSystem;
    Share(*made, memory);
  }
  *event = static_cast<cudaEvent_t>(PointerTo(made->handle));
  return cudaSuccess;
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return fake::Call(__func__, [&] { return fake::CreateEvent(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const auto destroy = [](fake::State& state, fake::Lock&, const auto& event) {
    state.destroyed_events.insert(event->handle);
    state.events.erase(event->handle);
    return cudaSuccess;
  };
  return fake::EventCall(__func__, handle, destroy, fake::IfFailed::kDoIt);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  const char* const name = __func__;
  return fake::EventCall(name, handle, [&](fake::State& state, auto&, const auto& event) {
    const auto stream = FindStream(state, stream_handle, name);
    return stream == nullptr ? cudaErrorInvalidResourceHandle
                             : fake::RecordEvent(state, stream, event);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return fake::EventCall(__func__, handle, fake::EventQuery);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return fake::EventCall(__func__, handle, fake::EventSynchronize, fake::IfFailed::kDoIt);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return fake::Call(__func__, [&] {
    auto [state, lock] = fake::LockState();
    return fake::ElapsedTime(state, ms, start, end);
  });
}

}  // extern "C"
