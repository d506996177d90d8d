// connect_bench: how long Connect takes, and how much of that is planning.
//
// The lower half of the ranks has a model's weights by rows, the upper half wants them by columns.
// With --stages, each of the lower ranks has tensors of its own, so that no two of them share the
// work of describing them. Compile of the whole transfer, which all ranks know, comes beside it.
// Prints medians over --rounds of the slowest rank's times.
//
//   scripts/spawn.sh -n 64 build/bin/connect_bench --json connect.json
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "job/fabric_ranks.h"
#include "sluice/connect.h"
#include "sluice/session.h"
#include "sluice/world.h"

namespace {

using sluice::ConnectSpec;
using sluice::DType;
using sluice::Layout;
using sluice::Mesh;
using sluice::Placement;
using sluice::bench::Ranks;

constexpr absl::Duration kTimeout = absl::Minutes(2);

struct Options {
  int tensors = 1000;
  int rounds = 11;
  bool stages = false;
  std::string json;
};

std::vector<int> RanksFrom(int begin, int end) {
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
      src = {*Mesh::Create({trainers}, RanksFrom(0, trainers)), {Placement::Shard(0)}};
    }
    dst = {*Mesh::Create({servers}, RanksFrom(first_server, size)), {Placement::Shard(1)}};
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

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool Fails(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "connect_bench: %s\n", status.ToString().c_str());
  return !status.ok();
}

absl::Status NoProgress() { return absl::OkStatus(); }

// Calls `work` on all ranks at once. Milliseconds of the slowest one; negative: it has failed.
template <typename Work>
double Time(Ranks* ranks, Work work) {
  if (Fails(ranks->Barrier(kTimeout, NoProgress))) return -1;
  const absl::Time begin = absl::Now();
  const absl::Status status = work();
  const double own = absl::ToDoubleMilliseconds(absl::Now() - begin);
  if (Fails(status)) return -1;
  std::string record(sizeof(own), '\0');
  std::memcpy(record.data(), &own, sizeof(own));
  const auto all = ranks->AllGather(record, kTimeout, NoProgress);
  if (Fails(all.status())) return -1;
  double slowest = 0;
  for (const std::string& each : *all) {
    double other = 0;
    std::memcpy(&other, each.data(), sizeof(other));
    slowest = std::max(slowest, other);
  }
  return slowest;
}

struct Times {
  std::vector<double> connects, compiles;  // milliseconds
};

bool Report(const Options& options, int size, const Times& times) {
  std::printf(
      "%d ranks, %d tensors%s: Connect %.1f ms (first %.1f, slowest %.1f), "
      "Compile alone %.1f ms\n",
      size, options.tensors, options.stages ? ", stages" : "", Median(times.connects),
      times.connects.front(), *std::max_element(times.connects.begin(), times.connects.end()),
      Median(times.compiles));
  if (options.json.empty()) return true;
  std::ofstream file(options.json);
  file << "{\"ranks\": " << size << ", \"tensors\": " << options.tensors
       << ", \"stages\": " << (options.stages ? "true" : "false") << ", \"connect_ms\": ["
       << absl::StrJoin(times.connects, ", ") << "], \"compile_ms\": ["
       << absl::StrJoin(times.compiles, ", ") << "]}\n";
  file.close();
  if (!file) std::fprintf(stderr, "connect_bench: cannot write %s\n", options.json.c_str());
  return static_cast<bool>(file);
}

int Measure(const Options& options) {
  const absl::StatusOr<sluice::WorldOptions> where = sluice::WorldOptionsFromEnvironment();
  if (Fails(where.status())) return 1;
  const auto world = sluice::World::Join(*where);
  if (Fails(world.status())) return 1;
  auto beside = (*world)->MakeFabric();  // for what is no part of the session
  if (Fails(beside.status())) return 1;
  auto ranks = sluice::bench::FabricRanks::Create(*std::move(beside), kTimeout);
  if (Fails(ranks.status())) return 1;
  auto fabric = (*world)->MakeFabric();
  if (Fails(fabric.status())) return 1;
  const int rank = (*fabric)->rank(), size = (*fabric)->size();
  sluice::SessionOptions session_options;
  session_options.timeout = kTimeout;
  const auto session = sluice::Session::Create(*std::move(fabric), session_options);
  if (Fails(session.status())) return 1;
  Job job;
  MakeJob(options, rank, size, &job);
  Times times;
  for (int round = 0; round < options.rounds; ++round) {
    std::unique_ptr<sluice::Connection> connection;
    times.connects.push_back(Time(ranks->get(), [&] {
      auto made = sluice::Connect(session->get(), job.own);
      if (made.ok()) connection = *std::move(made);
      return made.status();
    }));
    if (times.connects.back() < 0 || Fails(connection->Drop())) return 1;
    sluice::Transfer* transfer = nullptr;
    times.compiles.push_back(Time(ranks->get(), [&] {
      const auto made = (*session)->Compile(job.whole);
      if (made.ok()) transfer = *made;
      return made.status();
    }));
    if (times.compiles.back() < 0 || Fails((*session)->Drop(transfer))) return 1;
  }
  (*ranks)->Part(kTimeout);
  ranks->reset();  // it reports processes that end, so none does before all have come here
  if (Fails((*session)->Compile({}).status()) || Fails((*session)->Close())) return 1;
  return rank != 0 || Report(options, size, times) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures Connect on the ranks of a world.");
  app.add_option("--tensors", options.tensors)->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_flag("--stages", options.stages);
  app.add_option("--json", options.json, "what rank 0 writes");
  CLI11_PARSE(app, argc, argv);
  return Measure(options);
}
