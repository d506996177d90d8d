// From a trace of events to the lines that tell engines of them.
#include "deadlock/script_writer.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deadlock/engine_script.h"
#include "deadlock/rank_feed.h"
#include "deadlock/script_words.h"
#include "engine/engine.h"

namespace sluice::deadlock {
namespace {

// In a gate's place: writes down what a feed tells it.
class Scribe {
 public:
  Scribe(const std::vector<JobPart>* parts, std::string* text) : parts_(parts), text_(text) {}

  Ticket Submit(const Submission& submission) {
    absl::StrAppend(text_, "> submit ", (*parts_)[submission.cookie].bucket, RunOf(submission.id),
                    LaneOf(submission.lane), " channel=", submission.channel,
                    " stages=", StageLetters(submission.stages), "\n");
    return 0;
  }
  void Announce(int lane, const BucketId& id) {
    absl::StrAppend(text_, "> announce ", id.fields().n, RunOf(id), LaneOf(lane), "\n");
  }
  void Close(int lane) { absl::StrAppend(text_, "> close", LaneOf(lane), "\n"); }

 private:
  static std::string RunOf(const BucketId& id) {
    return id.fields().run == 0 ? "" : absl::StrCat(" run=", id.fields().run);
  }
  static std::string LaneOf(int lane) { return lane == 0 ? "" : absl::StrCat(" lane=", lane); }

  const std::vector<JobPart>* parts_;
  std::string* text_;
};

class Writer {
 public:
  Writer(const Job& job, const Rules& rules) : job_(job), rules_(rules) {
    views_.reserve(static_cast<size_t>(job.ranks));
    for (int r = 0; r < job.ranks; ++r) {
      views_.push_back(ViewOf(job, r, rules.IsOff(Premise::kStartOrder)));
      const RankView& view = views_.back();
      feeds_.push_back({.gate = Scribe(&view.parts, &text_),
                        .parts = view.parts,
                        .lane = view.lane,
                        .runs_started = 0});
    }
  }

  std::string Write(const Outcome& outcome) {
    Describe();
    for (int r = 0; r < job_.ranks; ++r) MakeEngine(r);
    for (const WorldEvent& event : outcome.trace) Tell(event);
    AskWhereNeeded(-1);
    const bool beside = rules_.off && !rules_.IsOff(Premise::kStartOrder);
    if (!beside) text_ += "> settle\n";
    text_ += "# In the end nothing can happen:\n";
    for (const std::string& wait : outcome.waits) absl::StrAppend(&text_, "#   ", wait, "\n");
    return RunEngineScript(text_);
  }

 private:
  void Describe() {
    absl::StrAppend(&text_, "# Admission by the rule ", NameOf(rules_.rule));
    if (rules_.off) absl::StrAppend(&text_, ", with ", NameOf(*rules_.off), " switched off");
    absl::StrAppend(&text_, ". Buckets and their members:\n");
    for (size_t i = 0; i < job_.buckets.size(); ++i) {
      absl::StrAppend(&text_, "#   bucket ", i, ": ranks");
      for (const JobMember& member : job_.buckets[i]) {
        absl::StrAppend(&text_, " ", member.rank, member.owner ? " (owner)" : "");
      }
      if (job_.runs() > 1) absl::StrAppend(&text_, ", run ", job_.run[i]);
      if (rules_.IsOff(Premise::kSlots)) absl::StrAppend(&text_, ", ", job_.bytes[i], " bytes");
      text_ += "\n";
    }
    if (rules_.IsOff(Premise::kSlots)) {
      absl::StrAppend(&text_, "#   each rank has an arena of ", job_.options.slots * kSlotBytes,
                      " bytes\n");
    }
  }

  void MakeEngine(int r) {
    const EngineOptions& options = views_[static_cast<size_t>(r)].options;
    // A comparison gate is fed without a limit; the engine is to understand the same script.
    const int look_ahead =
        rules_.rule == GateRule::kEscape
            ? options.look_ahead
            : std::max(1, static_cast<int>(views_[static_cast<size_t>(r)].parts.size()));
    absl::StrAppend(&text_, "> engine rank=", r, " rule=", NameOf(rules_.rule),
                    " channels=", options.channels, " max_in_flight=", options.max_in_flight,
                    " slots=", options.slots, " look_ahead=", look_ahead, " lanes=", options.lanes,
                    "\n");
  }

  void Tell(const WorldEvent& event) {
    RankFeed<Scribe>& feed = feeds_[static_cast<size_t>(event.rank)];
    const std::vector<JobPart>& parts = views_[static_cast<size_t>(event.rank)].parts;
    const auto says = [&](const auto&... words) { absl::StrAppend(&text_, words..., "\n"); };
    const bool is_start = event.kind == WorldEvent::Kind::kStart;
    if (is_start && (parts.empty() || TellsNothing(feed))) return feed.StartNextRun();
    AskWhereNeeded(event.rank);
    switch (event.kind) {
      case WorldEvent::Kind::kStart:
        return Start(feed);
      case WorldEvent::Kind::kFeed:
        feed.Feed(event.index);
        // What is admitted may depend on it.
        is_asked_ = false;
        return;
      case WorldEvent::Kind::kFinish:
        says("> finish ", parts[event.index].bucket);
        is_asked_ = false;
        return;
      case WorldEvent::Kind::kExchange:
        return says("# Bucket ", parts[event.index].bucket, ": rank ", event.rank,
                    " and its next partner exchange.");
      case WorldEvent::Kind::kTake:
        return says("# The consumer of rank ", event.rank, " takes its next bucket.");
    }
  }

  // A single run is not announced, and only a comparison gate is fed as it starts.
  bool TellsNothing(const RankFeed<Scribe>& feed) const {
    return feed.lane.size() == 1 && rules_.rule == GateRule::kEscape;
  }

  void Start(RankFeed<Scribe>& feed) {
    const int run = feed.runs_started;
    feed.StartNextRun();
    is_asked_ = false;
    if (rules_.rule == GateRule::kEscape) return;
    for (size_t i = 0; i < feed.parts.size(); ++i) {
      if (feed.parts[i].run == run) feed.Feed(i);
    }
  }

  // Every event is followed by the question what it leads to; then another rank may be spoken to.
  void AskWhereNeeded(int rank) {
    if (!is_asked_) text_ += "> all\n";
    is_asked_ = true;
    if (rank >= 0 && rank != rank_) absl::StrAppend(&text_, "> rank ", rank, "\n");
    if (rank >= 0) rank_ = rank;
  }

  const Job& job_;
  const Rules rules_;
  std::vector<RankView> views_;          // of every rank
  std::vector<RankFeed<Scribe>> feeds_;  // of every rank
  std::string text_;
  int rank_ = -1;         // the one spoken to
  bool is_asked_ = true;  // what its engine commands
};

}  // namespace

std::string ScriptOf(const Job& job, const Rules& rules, const Outcome& outcome) {
  return Writer(job, rules).Write(outcome);
}

}  // namespace sluice::deadlock
