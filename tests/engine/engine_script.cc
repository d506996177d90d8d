// The interpreter of engine scripts.
#include "engine_script.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/engine.h"
#include "tensor/check.h"

namespace sluice {
namespace {

int64_t Number(absl::string_view text) {
  int64_t number = 0;
  SLUICE_CHECK(absl::SimpleAtoi(text, &number), "a script has text where a number belongs");
  return number;
}

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

// The words of one command: its name, plain words, and key=value pairs, each of which must be used.
class Words {
 public:
  explicit Words(absl::string_view line) {
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> pair =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      if (word.find('=') == absl::string_view::npos) {
        plain_.emplace_back(word);
      } else {
        pairs_.insert(pair);
      }
    }
  }

  const std::string& name() const { return plain_.at(0); }
  int64_t number() const { return Number(plain_.at(1)); }
  std::string RestFrom(size_t first) const {
    const std::vector<std::string> rest(plain_.begin() + static_cast<std::ptrdiff_t>(first),
                                        plain_.end());
    return absl::StrJoin(rest, " ");
  }
  std::string Take(const std::string& key, std::string otherwise) {
    const auto found = pairs_.find(key);
    if (found == pairs_.end()) return otherwise;
    otherwise = found->second;
    pairs_.erase(found);
    return otherwise;
  }
  int Take(const std::string& key, int otherwise) {
    return static_cast<int>(Number(Take(key, std::to_string(otherwise))));
  }
  bool AllTaken() const { return pairs_.empty(); }

 private:
  std::vector<std::string> plain_;
  std::map<std::string, std::string> pairs_;
};

StageSet Stages(absl::string_view letters) {
  StageSet set = 0;
  for (const char letter : letters) {
    const StageSet stage = letter == 'F'   ? kStageFill
                           : letter == 'M' ? kStageMove
                           : letter == 'D' ? kStageDrain
                                           : StageSet{0};
    SLUICE_CHECK(stage != 0, "stages are spelled with F, M and D");
    set = static_cast<StageSet>(set | stage);
  }
  return set;
}

class Interpreter {
 public:
  std::string Answer(absl::string_view line) {
    Words words(line);
    std::string answer = words.name() == "engine" ? MakeEngine(words) : Ask(words);
    SLUICE_CHECK(words.AllTaken(), "a script names an unknown option");
    return answer;
  }

 private:
  std::string MakeEngine(Words& words) {
    EngineOptions options;
    options.channels = words.Take("channels", 1);
    options.max_in_flight = words.Take("max_in_flight", 2);
    options.slots = words.Take("slots", 16);
    options.slots_per_bucket_max = words.Take("cost_max", 1);
    options.look_ahead = words.Take("look_ahead", 64);
    options.lanes = words.Take("lanes", 1);
    engine_.emplace(options);
    tickets_.clear();
    return "";
  }

  std::string Ask(Words& words) {
    const std::string& name = words.name();
    if (name == "submit") return Submit(words);
    if (name == "next") return Next();
    if (name == "all") return All();
    if (name == "counters") return Counters();
    if (name == "channel") return Channel(words);
    if (name == "stall") return engine_->DescribeStall();
    if (name == "status") return absl::StrCat(engine_->status().ToString(), "\n");
    if (name == "room") return engine_->CanSubmit(words.Take("lane", 0)) ? "yes\n" : "no\n";
    if (name == "freeze") return Freeze(words);
    if (name == "standing") return Standing(words);
    if (name == "idle") return engine_->idle() ? "yes\n" : "no\n";
    Tell(words);
    return "";
  }

  void Tell(Words& words) {
    const std::string& name = words.name();
    if (name == "poison") return engine_->Poison(absl::InternalError(words.RestFrom(1)));
    if (name == "reset") return engine_->ResetCounters();
    if (name == "announce") return engine_->Announce(words.Take("lane", 0), Id(words));
    if (name == "close") return engine_->Close(words.Take("lane", 0));
    if (name == "thaw") return Thaw(words);
    const Ticket ticket = tickets_.at(words.number());
    if (name == "finish") return engine_->Finish(ticket);
    if (name == "cancel") return engine_->Cancel(ticket);
    if (name == "fail") return engine_->Fail(ticket, absl::InternalError(words.RestFrom(2)));
    SLUICE_CHECK(false, "a script has an unknown command");
  }

  static BucketId Id(Words& words) {
    return BucketId({.run = static_cast<uint64_t>(words.Take("run", 0)),
                     .n = static_cast<uint64_t>(words.number())});
  }

  std::string Freeze(Words& words) {
    const BucketId last =
        engine_->Freeze(words.Take("lane", 0), static_cast<uint64_t>(words.Take("run", 0)));
    return absl::StrCat("nothing above ", last.fields().n, "\n");
  }

  void Thaw(Words& words) {
    const BucketId last = Id(words);
    engine_->Thaw(words.Take("lane", 0), last.fields().run, last);
  }

  std::string Standing(Words& words) {
    const std::optional<BucketStanding> standing =
        engine_->StandingOf(words.Take("lane", 0), Id(words));
    if (!standing) return "not here\n";
    return absl::StrCat(StageName(standing->stage), standing->admitted ? "" : ", not admitted",
                        standing->under_way ? ", under way" : "", "\n");
  }

  std::string Submit(Words& words) {
    Submission submission;
    submission.id = Id(words);
    submission.lane = words.Take("lane", 0);
    submission.channel = words.Take("channel", 0);
    submission.stages = Stages(words.Take("stages", std::string("D")));
    submission.slots = words.Take("slots", 1);
    submission.staging_bytes = words.Take("bytes", 0);
    submission.operations = words.Take("ops", 1);
    submission.cookie = static_cast<uint64_t>(words.number());
    tickets_[words.number()] = engine_->Submit(submission);
    return "";
  }

  std::string Next() {
    Command command;
    if (!engine_->Next(&command)) {
      return absl::StrCat("none (", BlockedName(engine_->blocked()), ")\n");
    }
    std::string line =
        absl::StrCat(command.cookie, " ", StageName(command.stage), " slot ", command.slots[0]);
    if (command.slots[1] >= 0) absl::StrAppend(&line, "+", command.slots[1]);
    return line + "\n";
  }

  std::string All() {
    std::string lines;
    do {
      lines += Next();
    } while (!absl::StrContains(lines, "none"));
    return lines;
  }

  std::string Counters() {
    const EngineCounters& c = engine_->counters();
    return absl::StrCat("submitted ", c.submitted, ", admitted ", c.admitted, ", finished ",
                        c.finished, ", failed ", c.failed, ", cancelled ", c.cancelled, "\n",
                        "waited for channel ", c.waited_for_channel, ", for budget ",
                        c.waited_for_budget, "\n", "held now (peak): buckets ", c.held_buckets,
                        " (", c.held_buckets_peak, "), slots ", c.held_slots, " (",
                        c.held_slots_peak, "), bytes ", c.staging_bytes, " (", c.staging_bytes_peak,
                        "), operations ", c.operations, " (", c.operations_peak, ")\n");
  }

  std::string Channel(Words& words) {
    const ChannelCounters& c = engine_->channel_counters(static_cast<int>(words.number()));
    return absl::StrCat("admitted ", c.admitted, ", finished ", c.finished,
                        "; now (peak): in flight ", c.in_flight, " (", c.in_flight_peak,
                        "), bytes ", c.staging_bytes, " (", c.staging_bytes_peak, "), operations ",
                        c.operations, " (", c.operations_peak, ")\n");
  }

  std::optional<Engine> engine_;
  std::map<int64_t, Ticket> tickets_;
};

}  // namespace

std::string RunEngineScript(absl::string_view script) {
  Interpreter interpreter;
  std::string output;
  for (const absl::string_view line : absl::StrSplit(script, '\n')) {
    if (line.empty() || line[0] == '#') {
      absl::StrAppend(&output, line, "\n");
    } else if (line[0] == '>') {
      absl::StrAppend(&output, line, "\n", interpreter.Answer(line.substr(1)));
    }
  }
  while (absl::EndsWith(output, "\n\n")) output.pop_back();
  return output;
}

}  // namespace sluice
