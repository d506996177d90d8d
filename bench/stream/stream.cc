// Sessions, rounds and their errors.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "commands.h"
#include "gpu/gpu.h"
#include "job/command.h"
#include "session/stream/stream_catalog.h"
#include "session/stream/stream_source.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "stream/contents.h"
#include "stream/options.h"
#include "stream/report.h"
#include "stream/rounds.h"

namespace sluice::bench {
namespace {

// The session's own memory is for transfers: here it needs next to none.
SessionOptions SessionOptionsOf(const StreamBenchOptions& options) {
  SessionOptions session;
  session.bucket_bytes = 64 << 10;
  session.budget_buckets = 1;
  session.budget_bytes = session.bucket_bytes;
  session.timeout = session.patience = options.timeout();
  if (!options.trace_file.empty()) session.trace_events = options.trace_events;
  session.progress_thread = options.progress_thread;
  return session;
}

// Rank 0's text on all ranks.
absl::StatusOr<std::string> ShareText(absl::StatusOr<std::string> text, absl::Duration timeout,
                                      Ranks* ranks) {
  SLUICE_RETURN_IF_ERROR(ranks->AllOk(text.status(), timeout));
  SLUICE_ASSIGN_OR_RETURN(auto all, ranks->AllGather(*text, timeout));
  return std::move(all.front());
}

absl::StatusOr<Catalog> LoadCatalog(const StreamOptions& stream, Ranks* ranks) {
  if (stream.source.uri.empty()) return Catalog();
  const auto address = ParseSourceAddress(stream.source.uri);
  absl::StatusOr<std::string> text = std::string();
  if (!address.ok()) {
    text = address.status();
  } else if (ranks->rank() == 0) {
    text = FetchCatalogText(*address, stream.source, stream.reads.retry);
  }
  text = ShareText(std::move(text), stream.timeout + stream.reads.retry.request_timeout, ranks);
  if (!text.ok()) return text.status();
  return ReadCatalogText(*text, stream.source);
}

// Collective. Rank 0 reads the index, or the headers of objects without one, and hands it on. So
// the benchmark asks a server for it once more, not once per rank. The status is this rank's, and
// may differ between ranks.
absl::StatusOr<std::unique_ptr<Contents>> LoadContents(const StreamBenchOptions& options,
                                                       Ranks* ranks) {
  SLUICE_ASSIGN_OR_RETURN(
      auto catalog, LoadCatalog(StreamOptionsOf(options, ranks->rank(), ranks->size()), ranks));
  return Contents::Make(options, std::move(catalog));
}

class StreamCommand final : public Command {
 public:
  explicit StreamCommand(const StreamBenchOptions& options)
      : Command({"stream", options.json_file, options.timeout()}, &report_), options_(options) {}

 private:
  absl::StatusOr<KnobList> Describe() override {
    KnobList knobs = KnobsOf(StreamConfig(options_));
    knobs.emplace_back("trace", options_.trace_file.empty() ? 0 : 1);
    return knobs;
  }

  absl::Status Run(Ranks* ranks, std::unique_ptr<Fabric> fabric) override {
    auto contents = LoadContents(options_, ranks);
    absl::Status status = contents.status();
    if (status.ok()) status = CheckItems(**contents);
    if (status = AllOk(ranks, status); !status.ok()) return status;
    GpuOptions gpu_options;
    gpu_options.dst_device = options_.is_emulated() ? "cpu" : options_.device;
    auto gpu = OpenGpu(gpu_options, ranks->local_rank());
    if (status = Needs(AllOk(ranks, gpu.status())); !status.ok()) return status;
    SessionOptions session_options = SessionOptionsOf(options_);
    session_options.accelerator = options_.is_emulated()
                                      ? MakeEmulatedAccelerator(1e9 * options_.device_gb_per_s)
                                      : gpu->accelerator;
    SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(std::move(fabric), session_options));
    Print(StreamTableHeader(options_, report_));
    RunRounds(**contents, ranks, session.get());
    return absl::OkStatus();
  }

  bool IsGood() const override { return report_.ok(); }
  std::string Json() const override { return StreamJsonText(options_, report_); }
  std::string Footer() const override { return StreamTableFooter(options_, report_); }

  absl::Status CheckItems(const Contents& contents) const {
    if (options_.items > contents.items()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--items: the source has only ", contents.items()));
    }
    constexpr double kCheckedMax = 1e10;  // a bit each
    if (options_.order == "completed" &&
        static_cast<double>(contents.items()) * static_cast<double>(options_.stream.order.epochs) >
            kCheckedMax) {
      return absl::InvalidArgumentError("--order completed: too many items to check off");
    }
    return absl::OkStatus();
  }

  void RunRounds(const Contents& contents, Ranks* ranks, Session* session) {
    Rounds rounds(&options_, &contents, ranks, session);
    bool lost = false;
    const auto so_far = [this](const std::vector<Result>& results) {
      std::string rows;
      for (const Result& result : results) absl::StrAppend(&rows, StreamTableRow(options_, result));
      SetLastWords(rows);
    };
    absl::Status status = rounds.Run(so_far, &report_.results, &lost);
    if (lost) End(status);
    if (!status.ok()) AddError("", status);
    const auto line = rounds.WriteTrace(&report_.trace);
    if (EndsAll(line.status())) End(line.status());
    if (!line.ok()) AddError("", line.status());
    for (std::string& error : GrowthErrors(options_, report_.results)) {
      report_.errors.push_back({"", std::move(error)});
    }
    for (const Result& result : report_.results) Print(StreamTableRow(options_, result));
    if (line.ok() && !line->empty()) {
      Print(absl::StrCat("# ", *line, "\n"));
      const int64_t left_out =
          report_.results.empty() ? 0 : report_.results.front().total.stats.trace_left_out;
      if (left_out > 0) {
        Print(absl::StrCat("# trace: ", left_out, " spans of epochs from ", TracedEpochs(options_),
                           " on were left out, see --trace-epochs\n"));
      }
    }
    status = session->Close();
    if (!status.ok()) End(status);
  }

  const StreamBenchOptions& options_;
  StreamReport report_;
};

}  // namespace

int RunStream(absl::StatusOr<std::unique_ptr<Job>> job, const StreamBenchOptions& options,
              const absl::Status& flags) {
  return StreamCommand(options).Execute(std::move(job), flags);
}

}  // namespace sluice::bench
