// sluice-smpi-messages: how many messages each rank sends in each stage of a session's life.
//
// Every rank hands a part of one tensor on to the next rank. So payload is one message per rank.
// What is left says how control grows with the number of ranks. For smpirun: all ranks are one
// process. The linker puts functions that count in the place of MPI's (--wrap). Prints JSON.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sluice/mpi.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/mpi/mpi_retired.h"

namespace {

struct Counts {
  int64_t control = 0;
  int64_t payload = 0;
};

Counts& OwnCounts() {
  static auto& counts = *new std::vector<Counts>;
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  counts.resize(static_cast<size_t>(size));
  return counts[static_cast<size_t>(rank)];
}

void Count(int tag) {
  Counts& counts = OwnCounts();
  ++(tag < sluice::kMpiChannelTagBase ? counts.control : counts.payload);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names.
extern "C" int __real_MPI_Issend(const void* data, int count, MPI_Datatype type, int dst, int tag,
                                 MPI_Comm comm, MPI_Request* request);
extern "C" int __wrap_MPI_Issend(const void* data, int count, MPI_Datatype type, int dst, int tag,
                                 MPI_Comm comm, MPI_Request* request) {
  Count(tag);
  return __real_MPI_Issend(data, count, type, dst, tag, comm, request);
}
extern "C" int __real_MPI_Isend(const void* data, int count, MPI_Datatype type, int dst, int tag,
                                MPI_Comm comm, MPI_Request* request);
extern "C" int __wrap_MPI_Isend(const void* data, int count, MPI_Datatype type, int dst, int tag,
                                MPI_Comm comm, MPI_Request* request) {
  Count(tag);
  return __real_MPI_Isend(data, count, type, dst, tag, comm, request);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

constexpr int64_t kElements = 1024;  // of each rank

// What the ranks together have done in one stage.
struct Stage {
  std::string name;
  int64_t control_max = 0;
  double control_mean = 0;
  int64_t payload_max = 0;
  double us = 0;  // until the last rank was through
};

// Each stage begins on all ranks at once. The barriers between are MPI's own and not counted.
class Stages {
 public:
  void Begin() {
    MPI_Barrier(MPI_COMM_WORLD);
    begin_ = OwnCounts();
    begin_s_ = MPI_Wtime();
  }
  void End(const char* name) {
    double us = (MPI_Wtime() - begin_s_) * 1e6;
    const Counts end = OwnCounts();
    const std::vector<int64_t> own = {end.control - begin_.control, end.payload - begin_.payload};
    std::vector<int64_t> most(2);
    int64_t sum = 0;
    int size = 0;
    Stage stage;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(own.data(), most.data(), 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(own.data(), &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&us, &stage.us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    stage.name = name;
    stage.control_max = most[0];
    stage.payload_max = most[1];
    stage.control_mean = static_cast<double>(sum) / size;
    stages_.push_back(stage);
  }
  std::string Json(int ranks) const {
    return absl::StrCat("{\"ranks\": ", ranks, ", \"stages\": [\n",
                        absl::StrJoin(stages_, ",\n",
                                      [](std::string* out, const Stage& stage) {
                                        absl::StrAppend(out, "  {\"stage\": \"", stage.name,
                                                        "\", \"control_max\": ", stage.control_max,
                                                        ", \"control_mean\": ", stage.control_mean,
                                                        ", \"payload_max\": ", stage.payload_max,
                                                        ", \"us\": ", stage.us, "}");
                                      }),
                        "\n]}\n");
  }

 private:
  Counts begin_;
  double begin_s_ = 0;
  std::vector<Stage> stages_;
};

sluice::TransferSpec ToTheNext(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  sluice::TensorTransfer tensor;
  tensor.name = "part";
  tensor.shape = {size * kElements};
  tensor.src = {*sluice::Mesh::Create({size}, ranks), {sluice::Placement::Shard(0)}};
  std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
  tensor.dst = {*sluice::Mesh::Create({size}, ranks), {sluice::Placement::Shard(0)}};
  sluice::TransferSpec spec;
  spec.tensors.push_back(std::move(tensor));
  return spec;
}

bool Fails(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "sluice-smpi-messages: %s\n", status.ToString().c_str());
  return !status.ok();
}

// A run, verified.
absl::Status RunOnce(sluice::Session* session, sluice::Transfer* transfer, float value) {
  const int size = session->size();
  std::vector<float> src(kElements, value + static_cast<float>(session->rank()));
  std::vector<float> dst(kElements, -1);
  const auto view = [](std::vector<float>& of) {
    return sluice::DenseView(of.data(), {kElements}, sluice::DType::kF32);
  };
  SLUICE_ASSIGN_OR_RETURN(const auto run, session->Start(transfer, {view(src)}, {view(dst)}));
  SLUICE_RETURN_IF_ERROR(run.Wait());
  const float expected = value + static_cast<float>((session->rank() + size - 1) % size);
  if (std::count(dst.begin(), dst.end(), expected) == kElements) return absl::OkStatus();
  return absl::DataLossError("a part came wrong");
}

absl::Status CancelOne(sluice::Session* session, sluice::Transfer* transfer) {
  std::vector<float> memory(2 * kElements);
  SLUICE_ASSIGN_OR_RETURN(
      const auto run,
      session->Start(
          transfer, {sluice::DenseView(memory.data(), {kElements}, sluice::DType::kF32)},
          {sluice::DenseView(memory.data() + kElements, {kElements}, sluice::DType::kF32)}));
  SLUICE_RETURN_IF_ERROR(run.Cancel());
  const absl::Status status = run.Wait();
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

int Main() {
  Stages stages;
  stages.Begin();
  auto fabric = sluice::MakeMpiFabric(MPI_COMM_WORLD);
  if (Fails(fabric.status())) return 1;
  const int rank = (*fabric)->rank(), size = (*fabric)->size();
  stages.End("MakeMpiFabric");
  sluice::SessionOptions options;
  options.direct = false;
  stages.Begin();
  auto session = sluice::Session::Create(*std::move(fabric), options);
  if (Fails(session.status())) return 1;
  stages.End("Create");
  stages.Begin();
  const auto transfer = (*session)->Compile(ToTheNext(size));
  if (Fails(transfer.status())) return 1;
  stages.End("Compile");
  for (const char* name : {"first run", "second run"}) {
    stages.Begin();
    if (Fails(RunOnce(session->get(), *transfer, name[0] == 'f' ? 1000 : 2000))) return 1;
    stages.End(name);
  }
  stages.Begin();
  if (Fails(CancelOne(session->get(), *transfer))) return 1;
  stages.End("cancelled run");
  stages.Begin();
  if (Fails((*session)->Close())) return 1;
  session->reset();
  while (sluice::PollRetiredMpiCommunicators() > 0) sched_yield();
  stages.End("end");
  if (rank == 0) std::fputs(stages.Json(size).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int code = Main();
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
