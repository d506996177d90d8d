// The commands of one engine.
#include "deadlock/script_engine.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice::deadlock {
namespace {

const char* BlockedName(Blocked blocked) {
  switch (blocked) {
    case Blocked::kNothingWaiting:
      return "nothing waits";
    case Blocked::kChannel:
      return "channels full";
    case Blocked::kFrozen:
      return "frozen";
    case Blocked::kBudget:
      return "budget";
  }
  return "?";
}

BucketId IdFrom(ScriptWords& words) {
  return BucketId({.run = static_cast<uint64_t>(words.Take("run", 0)),
                   .n = static_cast<uint64_t>(words.number())});
}

}  // namespace

ScriptEngine::ScriptEngine(ScriptWords& words) {
  EngineOptions options;
  options.channels = words.Take("channels", 1);
  options.max_in_flight = words.Take("max_in_flight", 2);
  options.slots = words.Take("slots", 16);
  options.look_ahead = words.Take("look_ahead", 64);
  options.lanes = words.Take("lanes", 1);
  const std::string rule = words.Take("rule", std::string("escape"));
  if (rule == "escape") {
    engine_.emplace(options);
    return;
  }
  SLUICE_CHECK(rule == "plain" || rule == "ordered", "rules are escape, plain and ordered");
  plain_.emplace(options, rule == "plain" ? PlainRule::kRoundRobin : PlainRule::kHeadOfLine);
}

Engine& ScriptEngine::engine() {
  SLUICE_CHECK(engine_.has_value(), "a script asks a comparison gate what only the engine knows");
  return *engine_;
}

std::string ScriptEngine::Answer(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "submit") return Submit(words);
  if (name == "next") return Next();
  if (name == "all") return All();
  if (name == "counters") return Counters();
  if (name == "channel") return Channel(words);
  if (name == "stall") return engine().DescribeStall();
  if (name == "status") return absl::StrCat(engine().status().ToString(), "\n");
  if (name == "room") return engine().CanSubmit(words.Take("lane", 0)) ? "yes\n" : "no\n";
  if (name == "freeze") return Freeze(words);
  if (name == "standing") return StandingOf(words);
  if (name == "idle") return (plain_ ? plain_->idle() : engine_->idle()) ? "yes\n" : "no\n";
  if (name == "finish" && !buckets_.at(words.number()).under_way) return "not under way\n";
  Tell(words);
  return "";
}

void ScriptEngine::Tell(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "poison") return engine().Poison(absl::InternalError(words.RestFrom(1)));
  if (name == "reset") return engine().ResetCounters();
  if (name == "thaw") return Thaw(words);
  if (name == "announce" || name == "close") {
    const int lane = words.Take("lane", 0);
    if (plain_) {  // which does not listen
      words.Take("run", 0);
    } else if (name == "close") {
      engine_->Close(lane);
    } else {
      engine_->Announce(lane, IdFrom(words));
    }
    return;
  }
  if (name == "finish") return Finish(words.number());
  const Ticket ticket = buckets_.at(words.number()).ticket;
  if (name == "fail") return engine().Fail(ticket, absl::InternalError(words.RestFrom(2)));
  SLUICE_CHECK(false, "a script has an unknown command");
}

void ScriptEngine::Finish(int64_t number) {
  Standing& bucket = buckets_.at(number);
  bucket.under_way = false;
  if (NextStage(bucket.stage, bucket.stages) == Stage::kDone) bucket.stage = Stage::kDone;
  if (plain_) return plain_->Finish(bucket.ticket);
  engine_->Finish(bucket.ticket);
}

std::string ScriptEngine::Freeze(ScriptWords& words) {
  const BucketId last =
      engine().Freeze(words.Take("lane", 0), static_cast<uint64_t>(words.Take("run", 0)));
  return absl::StrCat("nothing above ", last.fields().n, "\n");
}

void ScriptEngine::Thaw(ScriptWords& words) {
  const BucketId last = IdFrom(words);
  engine().Thaw(words.Take("lane", 0), last.fields().run, last);
}

std::string ScriptEngine::StandingOf(ScriptWords& words) {
  const std::optional<BucketStanding> standing =
      engine().StandingOf(words.Take("lane", 0), IdFrom(words));
  if (!standing) return "not here\n";
  return absl::StrCat(StageName(standing->stage), standing->admitted ? "" : ", not admitted",
                      standing->under_way ? ", under way" : "", "\n");
}

std::string ScriptEngine::Submit(ScriptWords& words) {
  Submission submission;
  submission.id = IdFrom(words);
  submission.lane = words.Take("lane", 0);
  submission.channel = words.Take("channel", 0);
  submission.stages = ParseStages(words.Take("stages", std::string("D")));
  submission.staging_bytes = words.Take("bytes", 0);
  submission.operations = words.Take("ops", 1);
  submission.cookie = static_cast<uint64_t>(words.number());
  const Ticket ticket = plain_ ? plain_->Submit(submission) : engine_->Submit(submission);
  buckets_[words.number()] = {.ticket = ticket, .stages = submission.stages};
  return "";
}

bool ScriptEngine::NextCommand(Command* command) {
  if (!(plain_ ? plain_->Next(command) : engine_->Next(command))) return false;
  Standing& bucket = buckets_.at(static_cast<int64_t>(command->cookie));
  bucket.stage = command->stage;
  bucket.under_way = true;
  return true;
}

bool ScriptEngine::ObeyAll() {
  Command command;
  bool any = false;
  while (NextCommand(&command)) any = true;
  return any;
}

std::string ScriptEngine::Next() {
  Command command;
  if (!NextCommand(&command)) {
    return plain_ ? "none\n" : absl::StrCat("none (", BlockedName(engine_->blocked()), ")\n");
  }
  return absl::StrCat(command.cookie, " ", StageName(command.stage), " slot ", command.slot, "\n");
}

std::string ScriptEngine::All() {
  std::string lines;
  do {
    lines += Next();
  } while (!absl::StrContains(lines, "none"));
  return lines;
}

std::string ScriptEngine::Counters() {
  const EngineCounters& c = engine().counters();
  return absl::StrCat("submitted ", c.submitted, ", admitted ", c.admitted, ", finished ",
                      c.finished, ", failed ", c.failed, ", cancelled ", c.cancelled, "\n",
                      "waited for channel ", c.waited_for_channel, ", for budget ",
                      c.waited_for_budget, "\n", "held now (peak): buckets ", c.held_buckets, " (",
                      c.held_buckets_peak, "), bytes ", c.staging_bytes, " (", c.staging_bytes_peak,
                      "), operations ", c.operations, " (", c.operations_peak, ")\n");
}

std::string ScriptEngine::Channel(ScriptWords& words) {
  const ChannelCounters& c = engine().channel_counters(static_cast<int>(words.number()));
  return absl::StrCat("admitted ", c.admitted, ", finished ", c.finished,
                      "; now (peak): in flight ", c.in_flight, " (", c.in_flight_peak, "), bytes ",
                      c.staging_bytes, " (", c.staging_bytes_peak, "), operations ", c.operations,
                      " (", c.operations_peak, ")\n");
}

}  // namespace sluice::deadlock
