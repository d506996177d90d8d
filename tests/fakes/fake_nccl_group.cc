// Collecting sends and receives, and launching them as kernels.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda_context.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"
#include "fakes/fake_nccl_comm.h"
#include "nccl.h"

namespace sluice::fake_nccl {
namespace {

using fake_cuda::State;
using fake_cuda::Stream;

// All posts of a group to one communicator.
struct Launch {
  std::shared_ptr<Comm> comm;
  std::vector<std::shared_ptr<Stream>> streams;  // the first is the kernel's
  std::vector<Transfer> transfers;
  std::vector<FakeCudaRange> uses;
};

struct Group {
  int epoch = 0;
  int depth = 0;
  ncclResult_t error = ncclSuccess;  // of a call in it: nothing is launched
  std::vector<Launch> launches;
};

std::atomic<int> open_groups = 0;
std::atomic<int> epoch = 0;  // goes up when groups of before are forgotten

Group& ThisThread() {
  thread_local Group group;
  if (group.epoch != epoch) group = {.epoch = epoch, .launches = {}};
  return group;
}

// 0 if there is no such type.
size_t BytesOf(ncclDataType_t type) {
  static const auto* const bytes = new std::map<ncclDataType_t, size_t>{
      {ncclInt8, 1},    {ncclUint8, 1},    {ncclFloat8e4m3, 1}, {ncclFloat8e5m2, 1},
      {ncclFloat16, 2}, {ncclBfloat16, 2}, {ncclInt32, 4},      {ncclUint32, 4},
      {ncclFloat32, 4}, {ncclInt64, 8},    {ncclUint64, 8},     {ncclFloat64, 8}};
  const auto found = bytes->find(type);
  return found == bytes->end() ? 0 : found->second;
}

struct Post {
  const char* function;
  bool is_send;
  const void* buffer;
  size_t count;
  ncclDataType_t type;
  int peer;
  ncclComm_t comm;
  cudaStream_t stream;
};

Launch& LaunchOf(Group& group, const std::shared_ptr<Comm>& comm) {
  const auto found = std::find_if(group.launches.begin(), group.launches.end(),
                                  [&](const Launch& launch) { return launch.comm == comm; });
  if (found != group.launches.end()) return *found;
  return group.launches.emplace_back(
      Launch{.comm = comm, .streams = {}, .transfers = {}, .uses = {}});
}

ncclResult_t Add(Group& group, const Post& post) {
  const std::shared_ptr<Comm> comm = FindComm(post.comm, post.function);
  if (comm == nullptr) return ncclInvalidArgument;
  const ncclResult_t ready = CheckReady(*comm, post.function);
  if (ready != ncclSuccess) return ready;
  const size_t bytes = post.count * BytesOf(post.type);
  if (BytesOf(post.type) == 0 || post.peer < 0 || post.peer >= comm->ranks) {
    return Misuse(ncclInvalidArgument, std::string(post.function) + " : invalid type or peer " +
                                           std::to_string(post.peer));
  }
  auto [state, lock] = fake_cuda::LockState();
  const std::shared_ptr<Stream> stream = FindStream(state, post.stream, post.function);
  if (stream == nullptr) return ncclInvalidArgument;
  if (stream->device != comm->device) {
    return Misuse(ncclInvalidUsage, std::string(post.function) +
                                        " on a stream of another device than the communicator's");
  }
  const FakeCudaRange range = {post.buffer, bytes};
  std::byte* const data =
      bytes == 0 ? nullptr : DeviceBytes(state, range, comm->device, post.function);
  if (bytes != 0 && data == nullptr) {
    return Fail(ncclInvalidArgument, std::string(post.function) + " : no device memory");
  }
  Launch& launch = LaunchOf(group, comm);
  if (std::find(launch.streams.begin(), launch.streams.end(), stream) == launch.streams.end()) {
    launch.streams.push_back(stream);
  }
  launch.transfers.push_back(
      {.is_send = post.is_send,
       .peer = post.peer,
       .data = data,
       .bytes = bytes,
       .count = post.count,
       .type = post.type,
       .is_registered = IsRegistered(*comm, static_cast<const std::byte*>(post.buffer), bytes)});
  if (bytes != 0) launch.uses.push_back(range);
  return ncclSuccess;
}

// Into how many parts NCCL 2.28 cuts what goes between ranks of a node, one for each channel. It
// begins with this rank's share of all channels, and takes more while a part is that large.
int64_t PartsOf(size_t bytes, int ranks) {
  constexpr int64_t kChannels = 32;
  constexpr size_t kPartBytes = size_t{16} << 20;
  int64_t parts = kChannels;
  while (parts > 1 && parts * ranks > kChannels) parts /= 2;
  while (parts < kChannels && bytes > static_cast<size_t>(parts) * kPartBytes) parts *= 2;
  return parts;
}

// One kernel takes a limited number of parts. NCCL makes several kernels of a larger group, and
// each rank then cuts by its own part of it. A send and its receive can get into kernels that wait
// for each other. Here nobody may come to that.
ncclResult_t CheckPlan(const Launch& launch) {
  // What goes to the n-th rank from this one shares its parts with what comes from the n-th before.
  const int ranks = launch.comm->ranks;
  std::vector<std::vector<int64_t>> sends(static_cast<size_t>(ranks));
  std::vector<std::vector<int64_t>> receives(static_cast<size_t>(ranks));
  for (const Transfer& transfer : launch.transfers) {
    const int away = transfer.peer - launch.comm->rank;
    const int n = ((transfer.is_send ? away : -away) + ranks) % ranks;
    (transfer.is_send ? sends : receives)[static_cast<size_t>(n)].push_back(
        PartsOf(transfer.bytes, ranks));
  }
  int64_t parts = 0;
  for (size_t n = 0; n < sends.size(); ++n) {
    std::vector<int64_t>& more = sends[n].size() > receives[n].size() ? sends[n] : receives[n];
    const std::vector<int64_t>& less = &more == &sends[n] ? receives[n] : sends[n];
    for (size_t i = 0; i < less.size(); ++i) more[i] = std::max(more[i], less[i]);
    for (const int64_t one : more) parts += one;
  }
  const int64_t most = PlanParts();
  if (parts <= most) return ncclSuccess;
  return Misuse(ncclInvalidUsage, "a group of " + std::to_string(launch.transfers.size()) +
                                      " operations in " + std::to_string(parts) +
                                      " parts, where a kernel takes " + std::to_string(most) +
                                      ": NCCL may make several kernels of it that wait for those "
                                      "of other ranks in another order");
}

// What a rank sends to itself is matched within the group, in order.
ncclResult_t CheckSelf(const Launch& launch) {
  std::vector<const Transfer*> sends;
  std::vector<const Transfer*> receives;
  for (const Transfer& transfer : launch.transfers) {
    if (transfer.peer != launch.comm->rank) continue;
    (transfer.is_send ? sends : receives).push_back(&transfer);
  }
  const bool is_matched =
      std::equal(sends.begin(), sends.end(), receives.begin(), receives.end(),
                 [](const Transfer* send, const Transfer* receive) {
                   return send->count == receive->count && send->type == receive->type;
                 });
  if (is_matched) return ncclSuccess;
  return Misuse(ncclInvalidUsage, "an unmatched group: rank " + std::to_string(launch.comm->rank) +
                                      " sends " + std::to_string(sends.size()) +
                                      " message(s) to itself and receives " +
                                      std::to_string(receives.size()) + ", or of other sizes");
}

// Kernels of one communicator run one after the other, whatever their streams; and a kernel for
// several streams comes after what they all have, and before what they will have.
ncclResult_t Enqueue(const Launch& launch) {
  Comm& comm = *launch.comm;
  auto [state, lock] = fake_cuda::LockState();
  // In the background it may come too late, and the streams and memory may be gone.
  if (comm.is_aborted) return ncclInternalError;
  for (const auto& stream : launch.streams) {
    if (stream->is_destroyed) {
      return Misuse(ncclInvalidUsage, "a group's stream was destroyed before the group began");
    }
  }
  auto kernel = std::make_shared<Kernel>(
      Kernel{.comm = launch.comm, .number = ++comm.kernels, .transfers = launch.transfers});
  for (Transfer& transfer : kernel->transfers) {
    const auto peer = static_cast<size_t>(transfer.peer);
    transfer.message = transfer.is_send ? comm.sends[peer]++ : comm.receives[peer]++;
  }
  fake_cuda::Operation operation = {
      .what = "a kernel of NCCL's", .run = [kernel] { Run(*kernel); }, .uses = launch.uses};
  if (comm.last_kernel.stream != nullptr) operation.after.push_back(comm.last_kernel);
  for (size_t i = 1; i < launch.streams.size(); ++i) {
    operation.after.push_back({launch.streams[i], launch.streams[i]->enqueued});
  }
  const std::shared_ptr<Stream>& stream = launch.streams.front();
  comm.last_kernel = {stream, Enqueue(state, stream, std::move(operation))};
  for (size_t i = 1; i < launch.streams.size(); ++i) {
    Enqueue(state, launch.streams[i],
            {.what = "a wait for NCCL", .is_work = false, .after = {comm.last_kernel}});
  }
  return DeviceError(state, comm.device) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t LaunchAll(Group& group) {
  const ncclResult_t error = std::exchange(group.error, ncclSuccess);
  const std::vector<Launch> launches = std::exchange(group.launches, {});
  if (error != ncclSuccess) return error;
  for (const Launch& launch : launches) {
    ncclResult_t verdict = CheckSelf(launch);
    if (verdict == ncclSuccess) verdict = CheckPlan(launch);
    if (verdict != ncclSuccess) return verdict;
  }
  ncclResult_t result = ncclSuccess;
  for (const Launch& launch : launches) {
    const ncclResult_t launched = RunJob(launch.comm, [launch] { return Enqueue(launch); });
    if (result == ncclSuccess || result == ncclInProgress) {
      result = launched == ncclSuccess ? result : launched;
    }
  }
  return result;
}

ncclResult_t Start() {
  if (ThisThread().depth++ == 0) ++open_groups;
  return ncclSuccess;
}

ncclResult_t End() {
  Group& group = ThisThread();
  if (group.depth == 0) return Misuse(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--group.depth > 0) return ncclSuccess;
  --open_groups;
  return LaunchAll(group);
}

ncclResult_t Submit(const Post& post) {
  Group& group = ThisThread();
  ncclResult_t result = CountCall(post.function);
  if (result == ncclSuccess) result = Add(group, post);
  if (group.depth == 0) {
    group.error = result;
    return LaunchAll(group);
  }
  if (result != ncclSuccess) group.error = result;
  return result;
}

}  // namespace

bool IsInGroup() { return ThisThread().depth > 0; }

void CheckNoOpenGroup() {
  // Threads forget theirs when they come again: at the program's end this one's is gone already.
  ++epoch;
  if (open_groups.exchange(0) > 0) fake_cuda::AddMisuse("left: a group never ended");
}

}  // namespace sluice::fake_nccl

namespace fake = sluice::fake_nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  const ncclResult_t failure = fake::CountCall(__func__);
  return failure != ncclSuccess ? failure : fake::Start();
}

ncclResult_t ncclGroupEnd() {
  const sluice::fake_cuda::DeviceSetAgain device;
  const ncclResult_t failure = fake::CountCall(__func__);
  // The group ends all the same, without anything being launched.
  if (failure != ncclSuccess && fake::IsInGroup()) fake::ThisThread().error = failure;
  const ncclResult_t result = fake::End();
  return failure != ncclSuccess ? failure : result;
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return fake::Submit({__func__, true, sendbuff, count, datatype, peer, comm, stream});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return fake::Submit({__func__, false, recvbuff, count, datatype, peer, comm, stream});
}

}  // extern "C"
