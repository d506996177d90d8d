// connect_bench: how long Connect takes, and how much of that is planning.
//
// The lower half of the ranks has a model's weights by rows, the upper half wants them by columns.
// With --stages, each of the lower ranks has tensors of its own, so that no two of them share the
// work of describing them. Compile of the whole transfer, which all ranks know, comes beside it.
// Prints the slowest rank's times, medians of --rounds.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "sluice/connect.h"
#include "sluice/mpi.h"
#include "sluice/session.h"

namespace {

using sluice::ConnectSpec;
using sluice::DType;
using sluice::Layout;
using sluice::Mesh;
using sluice::Placement;

struct Options {
  int tensors = 1000;
  int rounds = 5;
  bool stages = false;
};

std::vector<int> Ranks(int begin, int end) {
  std::vector<int> ranks(static_cast<size_t>(end - begin));
  std::iota(ranks.begin(), ranks.end(), begin);
  return ranks;
}

std::string NameOf(int tensor) {
  static const char* const kParts[] = {
      "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
      "self_attn.o_proj.weight", "mlp.gate_proj.weight",    "mlp.up_proj.weight",
      "mlp.down_proj.weight",    "input_layernorm.weight",  "post_attention_layernorm.weight"};
  return absl::StrCat("model.layers.", tensor / 9, ".", kParts[tensor % 9]);
}

struct Job {
  sluice::TransferSpec whole;
  ConnectSpec own;
  std::vector<std::byte> memory;
  std::vector<sluice::TensorView> src, dst;
};

void MakeJob(const Options& options, int rank, int size, Job* job) {
  const int servers = std::max(1, size / 2), trainers = std::max(1, size - servers);
  const int first_server = size - servers;
  const std::vector<int64_t> shape = {1024, 64};
  int64_t bytes = 0;
  for (int t = 0; t < options.tensors; ++t) {
    Layout src, dst;
    if (options.stages) {
      src = {*Mesh::Create({1}, {t * trainers / options.tensors}), {Placement::Replicate()}};
    } else {
      src = {*Mesh::Create({trainers}, Ranks(0, trainers)), {Placement::Shard(0)}};
    }
    dst = {*Mesh::Create({servers}, Ranks(first_server, size)), {Placement::Shard(1)}};
    job->whole.tensors.push_back({NameOf(t), shape, DType::kBF16, DType::kBF16, src, dst});
    for (const auto& [layout, tensors] :
         {std::make_pair(src, &job->own.sources), std::make_pair(dst, &job->own.targets)}) {
      if (!layout.mesh.PositionOf(rank)) continue;
      const std::vector<int64_t> local = *sluice::LocalShape(layout, shape, rank);
      tensors->push_back({NameOf(t), shape, DType::kBF16, layout,
                          sluice::DenseView(nullptr, local, DType::kBF16), absl::nullopt});
      tensors->back().view.byte_offset = bytes;
      bytes += (local[0] * local[1] * 2 + 63) / 64 * 64;
    }
  }
  job->memory.resize(static_cast<size_t>(bytes));
  for (auto* tensors : {&job->own.sources, &job->own.targets}) {
    for (sluice::ConnectTensor& tensor : *tensors) tensor.view.data = job->memory.data();
  }
}

// The slowest rank's.
double Slowest(absl::Duration own) {
  double ms = absl::ToDoubleMilliseconds(own), slowest = 0;
  MPI_Allreduce(&ms, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool Fails(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "connect_bench: %s\n", status.ToString().c_str());
  return !status.ok();
}

int Measure(const Options& options) {
  auto fabric = sluice::MakeMpiFabric(MPI_COMM_WORLD);
  if (Fails(fabric.status())) return 1;
  const int rank = (*fabric)->rank(), size = (*fabric)->size();
  auto session = sluice::Session::Create(*std::move(fabric), {});
  if (Fails(session.status())) return 1;
  Job job;
  MakeJob(options, rank, size, &job);
  std::vector<double> connects, compiles;
  for (int round = 0; round < options.rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    absl::Time begin = absl::Now();
    const auto connection = sluice::Connect(session->get(), job.own);
    connects.push_back(Slowest(absl::Now() - begin));
    if (Fails(connection.status()) || Fails((*connection)->Drop())) return 1;
    MPI_Barrier(MPI_COMM_WORLD);
    begin = absl::Now();
    const auto transfer = (*session)->Compile(job.whole);
    compiles.push_back(Slowest(absl::Now() - begin));
    if (Fails(transfer.status()) || Fails((*session)->Drop(*transfer))) return 1;
  }
  if (Fails((*session)->Close())) return 1;
  if (rank != 0) return 0;
  std::printf(
      "%d ranks, %d tensors%s: Connect %.1f ms (first %.1f, slowest %.1f), "
      "Compile alone %.1f ms\n",
      size, options.tensors, options.stages ? ", stages" : "", Median(connects), connects.front(),
      *std::max_element(connects.begin(), connects.end()), Median(compiles));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options;
  CLI::App app("Measures Connect.");
  app.add_option("--tensors", options.tensors)->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_flag("--stages", options.stages);
  int code = 0;
  try {
    app.parse(argc, argv);
    code = Measure(options);
  } catch (const CLI::ParseError& error) {
    code = app.exit(error);
  }
  MPI_Finalize();
  return code;
}
