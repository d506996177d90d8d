// connect_bench: how long Connect takes, and how much of that is planning.
//
// The lower half of the ranks has a model's weights by rows, the upper half wants them by columns.
// With --stages, each of the lower ranks has tensors of its own, so that no two of them share the
// work of describing them. Compile of the whole transfer, which all ranks know, comes beside it.
// Prints medians over --rounds of the slowest rank's times.
//
// With --experts, tensors are a mixture's, of shape (1536, 4096) and one for each expert and layer.
// The lower half has each by rows. On the upper half one rank wants it whole. With --spread each of
// them wants some columns. With --boxes these are two boxes instead of a placement. Processor time
// and memory of the hungriest rank come beside the times, as more ranks than cores wait for each
// other.
//
//   scripts/spawn.sh -n 64 build/bin/connect_bench --json connect.json
//   scripts/spawn.sh -n 16 build/bin/connect_bench --experts --tensors 37000 --rounds 1 --boxes
#include <sys/mman.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
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

using sluice::Box;
using sluice::BoxList;
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
  bool experts = false;
  bool boxes = false;
  bool spread = false;
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
};

// Addresses that nobody looks at: experts are more than a machine has memory for.
std::byte* MemoryOf(int64_t bytes) {
  void* const memory = mmap(nullptr, static_cast<size_t>(std::max<int64_t>(1, bytes)), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// Upper and lower rows of what each rank has of a matrix, which is cut by columns, as boxes.
// `own`: of this rank alone, as Connect takes them. A list of its own for each tensor, as callers
// have them.
Layout UpperAndLower(const std::vector<int64_t>& shape, const std::vector<int>& ranks,
                     absl::optional<int> own) {
  const int64_t upper = shape[0] / 2;
  const auto count = static_cast<int64_t>(ranks.size());
  std::vector<sluice::RankBoxes> lists;
  for (int64_t r = 0; r < count; ++r) {
    const int rank = ranks[static_cast<size_t>(r)];
    if (own && *own != rank) continue;
    const int64_t begin = r * shape[1] / count, end = (r + 1) * shape[1] / count;
    const Box boxes[] = {{{0, begin}, {upper, end - begin}},
                         {{upper, begin}, {shape[0] - upper, end - begin}}};
    lists.push_back({rank, {std::begin(boxes), std::end(boxes)}});
  }
  Layout layout;
  layout.boxes = *BoxList::Create(std::move(lists));
  return layout;
}

// This rank's view of a tensor, from `*bytes` on, which it moves on.
sluice::TensorView ViewOf(const Layout& layout, const std::vector<int64_t>& shape, int rank,
                          int64_t* bytes) {
  const auto next = [bytes](const std::vector<int64_t>& local) {
    sluice::TensorView view = sluice::DenseView(nullptr, local, DType::kBF16);
    view.byte_offset = *bytes;
    *bytes += (local[0] * local[1] * 2 + 63) / 64 * 64;
    return view;
  };
  if (layout.boxes.empty()) return next(*sluice::LocalShape(layout, shape, rank));
  sluice::TensorView view;
  for (const Box& box : layout.boxes.Of(rank)) view.boxes.push_back(next(box.shape));
  return view;
}

bool HasPart(const Layout& layout, int rank) {
  return layout.boxes.empty() ? layout.mesh.PositionOf(rank).has_value()
                              : !layout.boxes.Of(rank).empty();
}

bool MakeJob(const Options& options, int rank, int size, Job* job) {
  const int servers = std::max(1, size / 2), trainers = std::max(1, size - servers);
  const int first_server = size - servers;
  const std::vector<int64_t> shape =
      options.experts ? std::vector<int64_t>{1536, 4096} : std::vector<int64_t>{1024, 64};
  int64_t bytes = 0;
  for (int t = 0; t < options.tensors; ++t) {
    Layout src, dst;
    if (options.stages) {
      src = {*Mesh::Create({1}, {t * trainers / options.tensors}), {Placement::Replicate()}};
    } else {
      src = {*Mesh::Create({trainers}, RanksFrom(0, trainers)), {Placement::Shard(0)}};
    }
    std::vector<int> takers = RanksFrom(first_server, size);
    if (options.experts && !options.spread) takers = {first_server + t % servers};
    const auto count = static_cast<int64_t>(takers.size());
    Layout own_dst;  // as this rank gives it
    if (options.boxes) {
      dst = UpperAndLower(shape, takers, absl::nullopt);
      if (HasPart(dst, rank)) own_dst = UpperAndLower(shape, takers, rank);
    } else {
      dst = {*Mesh::Create({count}, takers), {Placement::Shard(1)}};
      own_dst = dst;
    }
    job->whole.tensors.push_back({NameOf(t), shape, DType::kBF16, DType::kBF16, src, dst});
    for (const auto& [layout, tensors] :
         {std::make_pair(src, &job->own.sources), std::make_pair(own_dst, &job->own.targets)}) {
      if (!HasPart(layout, rank)) continue;
      tensors->push_back({NameOf(t), shape, DType::kBF16, layout,
                          ViewOf(layout, shape, rank, &bytes), absl::nullopt});
    }
  }
  std::byte* const memory = MemoryOf(bytes);
  if (memory == nullptr) return false;
  for (auto* tensors : {&job->own.sources, &job->own.targets}) {
    for (sluice::ConnectTensor& tensor : *tensors) {
      tensor.view.data = tensor.view.boxes.empty() ? memory : nullptr;
      for (sluice::TensorView& box : tensor.view.boxes) box.data = memory;
    }
  }
  return true;
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

// The largest value of all ranks; negative: that has failed.
double Largest(Ranks* ranks, double own) {
  std::string record(sizeof(own), '\0');
  std::memcpy(record.data(), &own, sizeof(own));
  const auto all = ranks->AllGather(record, kTimeout, NoProgress);
  if (Fails(all.status())) return -1;
  double largest = 0;
  for (const std::string& each : *all) {
    double other = 0;
    std::memcpy(&other, each.data(), sizeof(other));
    largest = std::max(largest, other);
  }
  return largest;
}

double ProcessorMilliseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

double MegabytesResidentMax() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;  // Linux reports KiB
}

// Calls `work` on all ranks at once. Milliseconds of the slowest one; negative: it has failed.
// Processor time of the hungriest one comes to `processor`.
template <typename Work>
double Time(Ranks* ranks, double* processor, Work work) {
  if (Fails(ranks->Barrier(kTimeout, NoProgress))) return -1;
  const absl::Time begin = absl::Now();
  const double processor_begin = ProcessorMilliseconds();
  const absl::Status status = work();
  const double own = absl::ToDoubleMilliseconds(absl::Now() - begin);
  const double own_processor = ProcessorMilliseconds() - processor_begin;
  if (Fails(status)) return -1;
  *processor = Largest(ranks, own_processor);
  return *processor < 0 ? -1 : Largest(ranks, own);
}

struct Times {
  std::vector<double> connects, compiles;  // milliseconds
  // Of the last round.
  double connect_processor = 0, compile_processor = 0;
  double connect_megabytes = 0;  // that the first Connect has added to a rank, at most
};

bool Report(const Options& options, int size, const Times& times) {
  std::printf(
      "%d ranks, %d tensors%s: Connect %.1f ms (first %.1f, slowest %.1f), "
      "Compile alone %.1f ms\n",
      size, options.tensors, options.stages ? ", stages" : "", Median(times.connects),
      times.connects.front(), *std::max_element(times.connects.begin(), times.connects.end()),
      Median(times.compiles));
  std::printf("processor time %.1f ms and %.1f ms, memory of Connect at most %.0f MB\n",
              times.connect_processor, times.compile_processor, times.connect_megabytes);
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
  if (!MakeJob(options, rank, size, &job)) {
    std::fprintf(stderr, "connect_bench: no room for the tensors' addresses\n");
    return 1;
  }
  Times times;
  const double before_mb = MegabytesResidentMax();
  for (int round = 0; round < options.rounds; ++round) {
    std::unique_ptr<sluice::Connection> connection;
    times.connects.push_back(Time(ranks->get(), &times.connect_processor, [&] {
      auto made = sluice::Connect(session->get(), job.own);
      if (!made.ok()) return made.status();
      connection = *std::move(made);
      return absl::OkStatus();
    }));
    if (times.connects.back() < 0 || Fails(connection->Drop())) return 1;
    if (round == 0) {
      times.connect_megabytes = Largest(ranks->get(), MegabytesResidentMax() - before_mb);
      if (times.connect_megabytes < 0) return 1;
    }
    sluice::Transfer* transfer = nullptr;
    times.compiles.push_back(Time(ranks->get(), &times.compile_processor, [&] {
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
  CLI::Option* const experts = app.add_flag("--experts", options.experts);
  app.add_flag("--boxes", options.boxes);
  app.add_flag("--spread", options.spread)->needs(experts);
  app.add_option("--json", options.json, "what rank 0 writes");
  CLI11_PARSE(app, argc, argv);
  return Measure(options);
}
